// SPDX-License-Identifier: Apache-2.0
// Shared by the kernels of this folder: their parameter types and the checks of shapes on entry.
//
// Every kernel is a template over T, instantiated for float and double: training runs in float, the
// gradient checks run the same code in double. T is deduced from the outputs.
#pragma once

#include <string_view>
#include <type_traits>

#include "fovea/base/check.h"
#include "fovea/base/view.h"

namespace fovea {

/// Inputs. Views of mutable memory convert to these; T is not deduced from them.
template <class T>
using InRows = Rows<const std::type_identity_t<T>>;
template <class T>
using InVec = Vec<const std::type_identity_t<T>>;

/// Whether a kernel replaces what its output holds, or adds to it.
enum class Store { kWrite, kAdd };

/// Throws Error(kShape) unless x is [rows, columns]: "softmax: y must be [2, 5]; it is [2, 4]".
template <class T>
void check_rows(std::string_view operation, std::string_view name, const Rows<T>& x, index rows,
                index columns) {
  check(x.rows == rows && x.columns == columns, "{}: {} must be [{}, {}]; it is [{}, {}]",
        operation, name, rows, columns, x.rows, x.columns);
}

/// Throws Error(kShape) unless x is [size]: "layer_norm: gain must be [C=5]; it is [4]".
template <class T>
void check_vec(std::string_view operation, std::string_view name, const Vec<T>& x,
               std::string_view letter, index size) {
  check(x.size == size, "{}: {} must be [{}={}]; it is [{}]", operation, name, letter, size,
        x.size);
}

/// As check_vec, for an argument that may be left out (empty).
template <class T>
void check_optional(std::string_view operation, std::string_view name, const Vec<T>& x,
                    std::string_view letter, index size) {
  if (!x.empty()) check_vec(operation, name, x, letter, size);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Arrays as numpy stores them, one to a file or to a member of an .npz:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1 to 3.
#pragma once

#include <string>
#include <string_view>

#include "fovea/tensor/tensor.h"

namespace fovea {

/// The array: float32, float64, int32, int64, uint8, or bool as uint8, in C order, little-endian,
/// of at most 6 axes. The header is not trusted: exactly its three keys, and as many bytes behind
/// it as its shape takes. `where` begins each message. Throws kInputFormat.
Tensor parse_npy(std::string_view bytes, std::string_view where);

/// Such an array, version 1.0, its values on a boundary of 64 bytes. Throws kShape for bfloat16,
/// which numpy does not know.
std::string npy_bytes(const Tensor& tensor);

}  // namespace fovea

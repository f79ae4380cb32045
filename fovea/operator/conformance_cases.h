// SPDX-License-Identifier: Apache-2.0
// The cases of the conformance kit: every variant of attention, and how its tensors are made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/operator/attention_settings.h"
#include "fovea/tensor/named_tensor.h"

namespace fovea {

/// A tensor that every implementation can make: its values are given, or drawn by the formula of
/// make_tensor.
struct TensorRecipe {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape = {};
  std::vector<index> values = {};  ///< all values; empty: they are drawn
  index below = 0;                 ///< values are drawn from 0 .. below - 1; 0: from [-2, 2)
  index zeros = 0;                 ///< how many values at the end are 0
  index poison = 0;                ///< how many at the end are NaN, inf, -inf, NaN, ...
};

struct ConformanceCase {
  std::string name;  ///< letters, digits and hyphens
  AttentionSettings settings;
  std::vector<TensorRecipe> tensors;
};

/// The cases, with unique names. Every case has gradients, and the observers that its norm allows.
std::vector<ConformanceCase> conformance_cases();

/// Value n is made from this word, with the CRC-32 of both names:
///
///   w = philox4x32((n div 4, 4, crc32(tensor), 0), (crc32(case), 0))[n mod 4]
///
/// The value is ((w div 256) - 2^23) / 2^22, which float32 holds exactly, or, with `below`, (w
/// below) div 2^32.
Tensor make_tensor(const TensorRecipe& recipe, std::string_view case_name);

}  // namespace fovea

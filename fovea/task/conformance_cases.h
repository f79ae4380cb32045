// SPDX-License-Identifier: Apache-2.0
// The cases of the conformance kit: every variant of attention, and how its tensors are made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/task/attention_settings.h"
#include "fovea/tensor/named_tensor.h"

namespace fovea {

/// A tensor that anyone can make again: values given, or drawn by the formula of make_tensor.
struct TensorRecipe {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape = {};
  std::vector<index> values = {};  ///< all of them; none: they are drawn
  index below = 0;                 ///< drawn from 0 .. below - 1; 0: from [-2, 2)
  index zeros = 0;                 ///< so many at the end are 0
  index poison = 0;                ///< so many at the end are NaN, inf, -inf, NaN, ...
};

struct ConformanceCase {
  std::string name;  ///< letters, digits and hyphens
  AttentionSettings settings;
  std::vector<TensorRecipe> tensors;
};

/// In the order of the table, a name each. Every case has gradients, and the observers that its
/// norm allows.
std::vector<ConformanceCase> conformance_cases();

/// With CRC-32 of both names, value n is made of the word
///
///   w = philox4x32((n div 4, 4, crc32(tensor), 0), (crc32(case), 0))[n mod 4]
///
/// ((w div 256) - 2^23) / 2^22, which float32 holds exactly, or (w below) div 2^32.
Tensor make_tensor(const TensorRecipe& recipe, std::string_view case_name);

}  // namespace fovea

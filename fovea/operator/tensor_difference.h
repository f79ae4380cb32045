// SPDX-License-Identifier: Apache-2.0
// The largest difference between computed and expected tensors.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fovea/tensor/named_tensor.h"

namespace fovea {

/// The error of a value is its distance from the expected value, divided by the largest finite
/// magnitude expected in its tensor, or by 1 if that is larger. Whole numbers and values that are
/// not finite must be equal: otherwise the error is infinite.
struct TensorDifference {
  double error = 0;          ///< the largest of all
  std::string tensor = {};   ///< the tensor with the largest error
  std::string place = {};    ///< "[0, 3, 1]"
  std::string problem = {};  ///< a tensor that is missing or has another shape; "" if there is
                             ///< none
};

/// The problem with the shape of an expected tensor; "" if there is none. Needs no values.
std::string shape_problem(std::span<const NamedTensor> made, std::string_view name,
                          const Shape& expected);

/// The largest difference over all expected tensors. Other tensors in `made` are ignored.
TensorDifference largest_difference(std::span<const NamedTensor> made,
                                    std::span<const NamedTensor> expected);

}  // namespace fovea

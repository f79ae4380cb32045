// SPDX-License-Identifier: Apache-2.0
// How far computed tensors are from what is expected.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fovea/tensor/named_tensor.h"

namespace fovea {

/// The error of a value is its distance from what is expected, as a share of the largest finite
/// value that is expected in its tensor, or of 1 where that is larger. Whole numbers must be equal,
/// and what is not finite: else the error is infinite.
struct TensorDifference {
  double error = 0;          ///< the largest of all
  std::string tensor = {};   ///< where it is
  std::string place = {};    ///< "[0, 3, 1]"
  std::string problem = {};  ///< a tensor that was not made, or has another shape; "" if there is
                             ///< none
};

/// What is wrong with the shape of an expected tensor, known before its values are; "" if nothing.
std::string shape_problem(std::span<const NamedTensor> made, std::string_view name,
                          const Shape& expected);

/// Of every expected tensor; what was made beside them is not looked at.
TensorDifference largest_difference(std::span<const NamedTensor> made,
                                    std::span<const NamedTensor> expected);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/tensor_difference.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fovea/base/option.h"
#include "fovea/base/words.h"

namespace fovea {

namespace {

bool is_whole(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUInt8;
}

double scale_of(Vec<const double> expected) {
  double largest = 1;
  for (const double x : expected) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  return largest;
}

// If values must be equal, the scale is 0.
double error_of(double got, double expected, double scale) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return 0;
  const double distance = std::abs(got - expected);
  if (scale > 0 && std::isfinite(distance)) return distance / scale;
  return std::numeric_limits<double>::infinity();
}

// The place of value n: "[0, 3]" for value 3 of [2, 5].
std::string place_of(index n, const Shape& shape) {
  std::string place;
  for (int axis = shape.axes() - 1; axis >= 0; --axis) {
    place = fmt::format("{}{}{}", n % shape[axis], place.empty() ? "" : ", ", place);
    n /= shape[axis];
  }
  return "[" + place + "]";
}

void compare(const Tensor& made, const NamedTensor& expected, TensorDifference& farthest) {
  const Tensor a = made.to(DType::kFloat64), b = expected.tensor.to(DType::kFloat64);
  const Vec<const double> got = a.vec<double>(), wanted = b.vec<double>();
  const double scale = is_whole(expected.tensor.dtype()) ? 0 : scale_of(wanted);
  for (index n = 0; n < got.size; ++n) {
    const double error = error_of(got[n], wanted[n], scale);
    if (error <= farthest.error) continue;
    farthest.error = error;
    farthest.tensor = expected.name;
    farthest.place = place_of(n, expected.tensor.shape());
  }
}

}  // namespace

std::string shape_problem(std::span<const NamedTensor> made, std::string_view name,
                          const Shape& expected) {
  const NamedTensor* const found = find_named(made, name);
  if (found != nullptr && found->tensor.shape() == expected) return {};
  return fmt::format("{} must be {}; {}", printable(name), to_string(expected),
                     found == nullptr ? "the operator does not make it"
                                      : "it is " + to_string(found->tensor.shape()));
}

TensorDifference largest_difference(std::span<const NamedTensor> made,
                                    std::span<const NamedTensor> expected) {
  TensorDifference farthest;
  for (const NamedTensor& tensor : expected) {
    farthest.problem = shape_problem(made, tensor.name, tensor.tensor.shape());
    if (!farthest.problem.empty()) return farthest;
    compare(find_named(made, tensor.name)->tensor, tensor, farthest);
  }
  return farthest;
}

}  // namespace fovea

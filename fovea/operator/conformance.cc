// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/conformance.h"

#include <utility>

#include "fovea/base/check.h"
#include "fovea/operator/attention_parts.h"
#include "fovea/operator/run_attention.h"
#include "fovea/operator/tensor_difference.h"

namespace fovea {

namespace {

// Expected values are read only if their shapes are those of the results.
TensorDifference difference_from(const TensorFile& expected,
                                 const std::vector<NamedTensor>& results) {
  std::vector<TensorInfo> infos;
  for (const std::string& name : expected.names()) {
    infos.push_back(expected.info(name));
    const std::string problem = shape_problem(results, name, infos.back().shape);
    if (!problem.empty()) return {.problem = problem};
  }
  return largest_difference(results, expected.read(infos));
}

TensorDifference difference_of(const Context& context, const std::filesystem::path& folder,
                               const KitCase& one, AttentionPrecision precision) {
  const TensorFile expected = open_kit_file(folder, one.expected);
  if (expected.names().empty()) return {.problem = "nothing is expected"};
  const TensorFile inputs = open_kit_file(folder, one.inputs);
  AttentionSettings settings = one.settings;
  settings.precision = precision;
  try {
    const AttentionTensors tensors(inputs, attention_tensor_specs(), one.inputs.name);
    return difference_from(expected, run_attention(context, settings, tensors));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutOfMemory) throw;  // it says nothing about the operator
    return {.problem = error.what()};
  }
}

}  // namespace

KitResult check_kit_case(const Context& context, const std::filesystem::path& folder,
                         const KitCase& one, AttentionPrecision precision) {
  check(precision == AttentionPrecision::kFloat32 || precision == AttentionPrecision::kFloat64,
        "conformance: the precision must be f32 or f64");
  const bool f32 = precision == AttentionPrecision::kFloat32;
  const TensorDifference farthest = difference_of(context, folder, one, precision);
  const double tolerance = f32 ? one.tolerance.f32 : one.tolerance.f64;
  return {.name = one.name,
          .precision = precision,
          .passed = farthest.problem.empty() && farthest.error <= tolerance,
          .error = farthest.error,
          .tolerance = tolerance,
          .tensor = farthest.tensor,
          .place = farthest.place,
          .problem = farthest.problem};
}

}  // namespace fovea

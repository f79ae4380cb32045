// SPDX-License-Identifier: Apache-2.0
// In which precision products are computed.
#pragma once

#include <array>
#include <string_view>

namespace fovea {

/// kBFloat16: the operands of products are rounded to bfloat16, and all else stays float32 (but for
/// the results of attention in training, docs/precision.md): sums, results, norms, softmax, losses,
/// weights and the optimizer.
enum class Precision { kFloat32, kBFloat16 };

/// By which options and files know them, in the order of the enum.
inline constexpr std::array<std::string_view, 2> kPrecisionNames = {"float32", "bf16"};

constexpr std::string_view precision_name(Precision precision) {
  return kPrecisionNames[static_cast<std::size_t>(precision)];
}

}  // namespace fovea

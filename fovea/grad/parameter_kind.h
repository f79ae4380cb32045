// SPDX-License-Identifier: Apache-2.0
// What a parameter is, for optimizers that treat some unlike others.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "fovea/grad/parameter.h"

namespace fovea {

enum class ParameterKind : std::uint8_t {
  kVector,       ///< without weight decay, or with one axis: gains, biases, parts of attention
  kTable,        ///< a step reads few of its rows (RowUse::kSparse)
  kMatrix,       ///< others, such as embeddings and outputs that are tied
  kLayerMatrix,  ///< of two axes, in a layer: its name has the layer's number, "blocks.0.ff.weight"
};
inline constexpr std::size_t kParameterKinds = 4;

ParameterKind kind_of(const Parameter& parameter);

/// How many values there are of each kind, and the sides of the largest kLayerMatrix.
struct ParameterSizes {
  std::array<double, kParameterKinds> values = {};
  double rows = 0, columns = 0;

  double of(ParameterKind kind) const { return values[static_cast<std::size_t>(kind)]; }
};

/// Of those that are not frozen.
ParameterSizes sizes_of(std::span<Parameter* const> parameters);

}  // namespace fovea

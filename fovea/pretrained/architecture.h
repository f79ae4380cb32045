// SPDX-License-Identifier: Apache-2.0
// The table of architectures: what a pretrained model of each is called, how its sizes and tensors
// are named, and which layers of ours it is. A model that is not a row, or that asks for what its
// row does not know, is refused by an error that names it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/model/language_model_config.h"
#include "fovea/nn/module.h"
#include "fovea/tensor/named_tensor.h"

namespace fovea {

/// How the rows of a tensor lie.
enum class RowOrder : std::uint8_t {
  kAsTheyAre,
  /// Of queries or keys: in a GGUF file of Llama the two columns of each rotary pair are
  /// neighbours; here they are half a head apart, as in transformers.
  kQueryPairs,
  kKeyPairs,
};

/// A tensor, or the rows of one.
struct WeightPart {
  std::string_view name;  ///< in a GGUF file; {} is the number of the layer
  index (*rows)(const LanguageModelConfig& config);
  RowOrder order = RowOrder::kAsTheyAre;
};

/// One of our parameters, made of the rows of its parts, one behind another.
struct WeightRow {
  std::string_view parameter;  ///< {} is the number of the layer
  std::vector<WeightPart> parts;
};

struct Architecture {
  std::string_view name;  ///< general.architecture of a GGUF file: "llama"
  /// The keys of a GGUF file behind "llama." that are read, or say nothing that could matter.
  std::span<const std::string_view> keys;
  std::span<const WeightRow> weights;
};

std::span<const Architecture> architectures();

/// The row of this name. Throws kModelWrongKind, which lists the known ones.
const Architecture& architecture(std::string_view name);

/// Sets all parameters from the tensors of a file. Each tensor must have the shape that the
/// configuration asks for, and none may be left over. Throws kModelDamaged for a tensor that is
/// missing or has another shape, kModelWrongKind for one that the architecture does not know.
void set_weights(std::span<Parameter* const> parameters, const Architecture& architecture,
                 const LanguageModelConfig& config, const TensorSource& tensors);

}  // namespace fovea

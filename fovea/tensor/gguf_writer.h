// SPDX-License-Identifier: Apache-2.0
// Writes GGUF files, version 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fovea/tensor/named_tensor.h"

namespace fovea {

struct GgufEntry {
  std::string key;
  std::variant<std::uint32_t, float, bool, std::string, std::vector<std::string>,
               std::vector<std::int32_t>, std::vector<float>>
      value;
};

/// A type in which a file may hold the values of a matrix.
struct GgufWeightType {
  std::string_view name;    ///< "q8_0"
  std::uint32_t number;     ///< of the type in a file
  std::uint32_t file_type;  ///< general.file_type of a file whose matrices have it
  index block;              ///< values of a block; those of a row must be a multiple
  index bytes;              ///< of a block
  /// Rounds the values of a block as ggml's reference does.
  void (*narrow)(const float* from, std::uint8_t* to);
};

/// f32, f16, bf16, q8_0, q4_0, q4_1.
std::span<const GgufWeightType> gguf_weight_types();

/// The same with the metadata of another file, as gguf_without_tensors() gives them, of which
/// general.file_type alone is changed. Throws kModelWrongKind for an alignment that is not usual.
std::string gguf_bytes(std::string_view metadata, std::span<const NamedTensor> tensors,
                       const GgufWeightType& type);

/// The bytes of a file. Values of matrices have the given type; vectors, and matrices whose rows
/// are no multiple of its block, stay float32.
std::string gguf_bytes(std::span<const GgufEntry> metadata, std::span<const NamedTensor> tensors,
                       const GgufWeightType& type);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// The types of values in GGUF files (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md),
// and how they are widened to float32. A quantised type holds blocks of 32 or 256 values with
// common scales; the layouts are those of ggml's block_q4_0 and so on.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fovea/base/types.h"

namespace fovea {

struct QuantizedType {
  std::uint32_t number;   ///< in a file
  std::string_view name;  ///< "Q4_K"
  index block;            ///< values of a block
  std::uint64_t bytes;    ///< of a block
  /// The values of a block; null: fovea does not know this type.
  void (*widen)(const std::uint8_t* from, float* to);
};

/// Every type that a file may name, in the order of the numbers.
std::span<const QuantizedType> quantized_types();
/// The row of this number, or null.
const QuantizedType* quantized_type(std::uint32_t number);

/// The value of an IEEE half. A NaN keeps its bits.
float float_of_half(std::uint16_t half);

/// Widens as many whole blocks as `to` holds. The type must be one that can be widened.
void widen_blocks(const QuantizedType& type, std::span<const std::uint8_t> from,
                  std::span<float> to);

}  // namespace fovea

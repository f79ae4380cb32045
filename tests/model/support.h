// SPDX-License-Identifier: Apache-2.0
// Small models and batches.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/model/language_model.h"
#include "tests/support/vectors.h"

namespace fovea {

inline LanguageModelConfig small_config() {
  LanguageModelConfig c;
  c.layers = 2;
  c.heads = 2;
  c.width = 8;
  c.block = 8;
  c.vocabulary = 11;
  return c;
}

/// Spec L12: the Transformer of book chapter 6.
inline LanguageModelConfig source_config() {
  LanguageModelConfig c;
  c.layers = 1;
  c.heads = 4;
  c.width = 128;
  c.ff = 512;
  c.block = 40;
  c.norm_position = NormPosition::kPost;
  c.ln_variant = LayerNormVariant::kUnbiased;
  c.bias = true;
  c.activation = LayerActivation::kRelu;
  c.tie = false;
  c.vocabulary = 1071;
  return c;
}

/// Sequences of the given lengths, of random tokens.
struct OwnedBatch {
  OwnedBatch(std::vector<index> lengths, index vocabulary) {
    Random random(1, RandomUse::kTest);
    for (const index length : lengths) {
      for (index n = 0; n < length; ++n) {
        ids.push_back(static_cast<std::int32_t>(random.below(vocabulary)));
        targets.push_back(n % 5 == 4 ? -1 : static_cast<std::int32_t>(random.below(vocabulary)));
      }
      offsets.push_back(static_cast<std::int32_t>(ids.size()));
      samples.push_back(random.next_u64());
    }
  }

  TokenBatch view() const {
    return {{ids.data(), static_cast<index>(ids.size())},
            {targets.data(), static_cast<index>(targets.size())},
            {offsets.data(), static_cast<index>(offsets.size())},
            {samples.data(), static_cast<index>(samples.size())}};
  }

  std::vector<std::int32_t> ids, targets, offsets{0};
  std::vector<std::uint64_t> samples;
};

}  // namespace fovea

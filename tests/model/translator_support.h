// SPDX-License-Identifier: Apache-2.0
// Small translators and batches of pairs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/model/translator.h"

namespace fovea {

inline TranslatorConfig translator_config() {
  TranslatorConfig c;
  c.encoder_layers = 1;
  c.decoder_layers = 1;
  c.heads = 2;
  c.width = 8;
  c.ff = 3;
  c.activation = LayerActivation::kGelu;  // whose gradient finite differences can check everywhere
  c.block = 12;
  c.dropout = 0;
  c.vocabulary = 9;
  c.target_vocabulary = 7;
  return c;
}

/// That configuration with a recurrent decoder.
inline TranslatorConfig recurrent_config() {
  TranslatorConfig c = translator_config();
  c.kind = TranslatorKind::kBahdanauGru;
  c.encoder_layers = TranslatorConfig().encoder_layers;
  return c;
}

/// Pairs of sentences of the given lengths (source, target), of random tokens; every fifth target
/// does not count.
struct OwnedPairs {
  OwnedPairs(const std::vector<std::pair<index, index>>& lengths, const TranslatorConfig& c,
             std::uint64_t seed = 2) {
    Random random(seed, RandomUse::kTest);
    const auto below = [&](index n) { return static_cast<std::int32_t>(random.below(n)); };
    for (const auto& [from, to] : lengths) {
      for (index n = 0; n < from; ++n) source.push_back(below(c.vocabulary));
      for (index n = 0; n < to; ++n) {
        target.push_back(below(c.target_vocabulary));
        targets.push_back(n % 5 == 4 ? -1 : below(c.target_vocabulary));
      }
      source_offsets.push_back(static_cast<std::int32_t>(source.size()));
      target_offsets.push_back(static_cast<std::int32_t>(target.size()));
      samples.push_back(random.next_u64());
    }
  }

  TranslationBatch view() const {
    const auto of = [](const std::vector<std::int32_t>& values) {
      return Vec<const std::int32_t>{values.data(), static_cast<index>(values.size())};
    };
    const Vec<const std::uint64_t> names{samples.data(), static_cast<index>(samples.size())};
    return {.source = {.ids = of(source), .offsets = of(source_offsets), .samples = names},
            .target = {.ids = of(target), .offsets = of(target_offsets), .samples = names},
            .targets = of(targets)};
  }

  std::vector<std::int32_t> source, target, targets, source_offsets{0}, target_offsets{0};
  std::vector<std::uint64_t> samples;
};

}  // namespace fovea

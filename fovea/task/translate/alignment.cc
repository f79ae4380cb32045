// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/alignment.h"

#include <algorithm>

namespace fovea {

std::vector<double> attention_to_source(const Context& context, const Translator& model,
                                        const AlignedPair& pair, index layer) {
  const auto M = static_cast<std::int32_t>(pair.source.size()),
             N = static_cast<std::int32_t>(pair.target.size());
  if (M < 2 || N < 1) return {};
  const std::int32_t from[] = {0, M}, to[] = {0, N};
  std::vector<HeadStatistics> seen(static_cast<std::size_t>(model.attentions()));
  HeadStatistics& cross = seen[static_cast<std::size_t>(model.cross_attention(layer))];
  cross.keeps_weights = true;
  Tape tape(context, TapeMode::kInference);
  model.logits(tape,
               {.source = {.ids = {pair.source.data(), M}, .offsets = {from, 2}},
                .target = {.ids = {pair.target.data(), N}, .offsets = {to, 2}}},
               {.attention = seen});
  const auto H = static_cast<index>(cross.weights.size()) / (index{M} * N);
  std::vector<double> mean(static_cast<std::size_t>((M - 1) * N));
  for (index n = 0; n < N; ++n) {
    for (index h = 0; h < H; ++h) {
      const float* const row = cross.weights.data() + (h * N + n) * M;
      double* const to_row = mean.data() + n * (M - 1);
      for (index m = 0; m + 1 < M; ++m) to_row[m] += double{row[m]} / static_cast<double>(H);
    }
  }
  return mean;
}

index default_alignment_layer(const TranslatorConfig& config) {
  return std::max<index>(config.decoder_layers - 2, 0);
}

std::vector<std::pair<index, index>> align(const Context& context, const Translator& model,
                                           const AlignedPair& pair, index layer) {
  std::vector<std::pair<index, index>> links;
  const auto M = std::ssize(pair.source) - 1, N = std::ssize(pair.target);
  if (M < 1 || N < 2) return links;
  const std::vector<double> weights = attention_to_source(context, model, pair, layer);
  // Row n predicts the token behind it.
  for (auto row = weights.begin(); row + M < weights.end(); row += M) {
    links.emplace_back(std::max_element(row, row + M) - row, (row - weights.begin()) / M);
  }
  return links;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_memory.h"

#include <algorithm>

#include "fovea/kernel/cross_entropy.h"
#include "fovea/model/language_model_stages.h"
#include "fovea/nn/kv_cache.h"

namespace fovea {

namespace {

constexpr double kFloat = sizeof(float);

// Scratch memory of the fused output projection and loss: the logits of a chunk of rows, and
// partial sums of the gradient of the bias.
double loss_scratch(const LanguageModelConfig& c, const TapeLoad& load) {
  const auto rows = static_cast<double>(logit_rows<float>(load.tokens, c.vocabulary));
  constexpr double kMostSums = 32;  // as add_chunk_sums has them
  const double sums = c.bias && !c.tie && load.mode == TapeMode::kTrain ? kMostSums : 0;
  return kFloat *
         (static_cast<double>(c.vocabulary) * (rows + sums) + static_cast<double>(load.tokens));
}

// The values that a session of one layer keeps of `tokens` tokens: keys and values, or the last
// rows that a convolution sees.
double cache_values(const EncoderLayerSpec& s, index in, index block, index tokens) {
  constexpr index kWithoutEnd = index{1} << 60;
  if (s.kind == EncoderLayerKind::kConvolution) {
    return static_cast<double>(s.kernel - 1) * static_cast<double>(s.dilation) *
           static_cast<double>(in);
  }
  if (s.kind == EncoderLayerKind::kAttentionRnn) {
    const index window = *s.window > 0 ? std::min(*s.window, block) : block;
    return 2 * static_cast<double>(KvCache::room_needed(kWithoutEnd, window)) *
           static_cast<double>(s.width);
  }
  if (s.kv_heads == 0) return 0;
  const index held = std::min(tokens, KvCache::room_needed(block, *s.window));
  return 2 * static_cast<double>(held) * static_cast<double>(s.kv_heads * s.head_dim);
}

}  // namespace

double activation_bytes(const LanguageModelConfig& config, const TapeLoad& load) {
  const LanguageModelConfig c = resolve(config);
  const std::vector<SizedStage> stages = sized_stages(c);
  double columns = encoder_columns(c, stages, load);
  if (load.mode == TapeMode::kTrain) {  // the loss computes its gradient at once
    columns +=
        static_cast<double>(last_width(c, stages)) + encoder_gradient_columns(c, stages, load);
  }
  return kFloat * static_cast<double>(load.tokens) * columns;
}

double packed_bytes(const LanguageModelConfig& config, const TapeLoad& load) {
  const LanguageModelConfig c = resolve(config);
  const std::vector<SizedStage> stages = sized_stages(c);
  return encoder_packed_bytes(c, stages, load) +
         packed_bytes(WeightShape{c.vocabulary, last_width(c, stages)}, load);
}

double scratch_bytes(const Context& context, const LanguageModelConfig& config,
                     const TapeLoad& load) {
  const LanguageModelConfig c = resolve(config);
  const EncoderScratch layers = encoder_scratch(c, sized_stages(c), load);
  return context.threads() * (kThreadScratch + layers.of_thread) +
         std::max(layers.of_call, loss_scratch(c, load));
}

double gradient_bytes(const LanguageModelConfig& config, index tokens) {
  const LanguageModelConfig c = resolve(config);
  const double all = kFloat * static_cast<double>(parameter_count(c));
  if (c.tie) return all;
  // The gradient of the embeddings has the rows of an update, in memory that grows by half (the old
  // one exists until it is copied). The optimizer has two numbers for each row of the table.
  const auto rows = static_cast<double>(c.vocabulary);
  const double used = std::min(rows, static_cast<double>(tokens));
  const double held = std::min(rows, 1.5 * used) + used;
  return all + kFloat * ((held - rows) * static_cast<double>(c.width) + 2 * rows);
}

double cache_bytes(const LanguageModelConfig& config, index tokens) {
  const LanguageModelConfig c = resolve(config);
  double values = 0;
  for (const SizedStage& stage : sized_stages(c)) {
    for (const SizedLayer& layer : stage.branches) {
      // All but the first read the columns that they make.
      values += cache_values(layer.spec, layer.in, c.block, tokens) +
                static_cast<double>(layer.spec.layers - 1) *
                    cache_values(layer.spec, layer.out, c.block, tokens);
    }
  }
  return kFloat * values;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// The layers of a language model. The memory of their parameters is elsewhere, so they can also be
// built from shapes alone, to count parameters.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fovea/model/language_model_config.h"
#include "fovea/nn/block.h"
#include "fovea/nn/embedding.h"
#include "fovea/nn/kv_cache.h"

namespace fovea {

/// `config` must be resolved. Parameters, in this order: embedding.*, blocks.N.*, norm.* (pre-norm
/// models), output.weight [V, C] (unless tied) and output.bias [V] (untied models with biases).
class LanguageModelLayers {
 public:
  LanguageModelLayers(const LanguageModelConfig& config, const ParameterScope& scope);

  /// The last hidden states [N, C], from which the next tokens are predicted. `seen` is empty, or
  /// has an element for each layer.
  Variable hidden(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                  const DropoutKey& key, std::span<HeadStatistics> seen) const;
  /// The same for the newest tokens of one sequence; its earlier tokens are in the caches.
  Variable hidden(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                  std::vector<KvCache>& caches) const;

  Parameter& output_weight() const { return output_ ? output_->weight() : embedding_.tokens(); }
  Parameter* output_bias() const { return output_ ? output_->bias() : nullptr; }

  /// An empty cache for each layer.
  std::vector<KvCache> make_caches(index capacity) const;

 private:
  Variable finish(Tape& tape, Variable x) const { return norm_ ? norm_->forward(tape, x) : x; }

  double dropout_;
  Embedding embedding_;
  std::vector<Block> blocks_;
  std::optional<NormLayer> norm_;
  std::optional<Linear> output_;
};

}  // namespace fovea

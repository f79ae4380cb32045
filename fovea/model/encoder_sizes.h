// SPDX-License-Identifier: Apache-2.0
// The layers of a language model, with every size: what builds them, counts them and predicts their
// memory reads one list.
#pragma once

#include <vector>

#include "fovea/model/language_model_config.h"
#include "fovea/nn/encoder_spec.h"

namespace fovea {

/// `spec` with every size filled in; of its `layers` the first turns rows of `in` columns into rows
/// of `out`, the others take and give `out`.
struct SizedLayer {
  EncoderLayerSpec spec;
  index in = 0;
  index out = 0;
};

/// Layers side by side: each reads `in` columns. Several are joined to `out` columns.
struct SizedStage {
  std::vector<SizedLayer> branches;
  index in = 0;
  index out = 0;
};

/// The stages of a resolved configuration. Throws kOptionValue or kShape.
std::vector<SizedStage> sized_stages(const LanguageModelConfig& config);

/// How many layers they are; more than kMostLayers are an error of resolve().
index layer_count(const std::vector<SizedStage>& stages);
inline constexpr index kMostLayers = 65536;

/// Whether the last norm of a pre-norm model is there: a residual sum needs it.
bool ends_with_norm(const LanguageModelConfig& config, const std::vector<SizedStage>& stages);

/// The values in the matrices of a layer's products, all its `layers` together: as many
/// multiply-adds for one token.
double matrix_values(const SizedLayer& layer);
/// Keys that a query of a sequence of `block` tokens sees in the mean, times the columns of its
/// heads; 0 without attention. Windows are left out of it.
double score_columns(const SizedLayer& layer, index block);

/// The configuration of a layer with attention or a feed-forward network: what its spec says counts
/// more than what the model says.
LanguageModelConfig config_of_layer(const LanguageModelConfig& config, const SizedLayer& layer);

}  // namespace fovea

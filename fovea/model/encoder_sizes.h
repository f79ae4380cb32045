// SPDX-License-Identifier: Apache-2.0
// The layers of an encoder, with every size: what builds them, counts them and predicts their
// memory reads one list.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "fovea/model/encoder_config.h"
#include "fovea/model/encoder_spec.h"

namespace fovea {

/// `spec` with every size filled in; of its `layers` the first turns rows of `in` columns into rows
/// of `out`, the others take and give `out`.
struct SizedLayer {
  EncoderLayerSpec spec;
  index in = 0;
  index out = 0;
  bool projected_once = false;  ///< its q, k and v are those of projected_once_columns()
};

/// Layers side by side: each reads `in` columns. Several are joined to `out` columns.
struct SizedStage {
  std::vector<SizedLayer> branches;
  index in = 0;
  index out = 0;
};

/// The stages with the sizes of a resolved configuration. Throws kOptionValue or kShape.
std::vector<SizedStage> size_stages(const EncoderConfig& config,
                                    std::span<const EncoderStage> stages);

/// Throws kOptionValue or kShape if these are too many layers, or one with attention that does not
/// fit together.
void check_stages(const EncoderConfig& config, const std::vector<SizedStage>& stages);

/// The fewest tokens that a model must be able to read for its convolutions and windows to fit.
index reach_of(std::string_view encoder);

/// The columns of the result: the width of the model if there are no stages.
index last_width(const EncoderConfig& config, const std::vector<SizedStage>& stages);

/// Whether they end with the windows of a TextCNN, of which a text takes the maxima.
bool ends_with_text_cnn(const std::vector<SizedStage>& stages);

/// The last columns of the result, of a direction that ends at the first row of a text; 0: none.
index reverse_columns(const std::vector<SizedStage>& stages);

/// How many layers they are, at most a little more than kMostLayers each.
index layer_count(const std::vector<SizedStage>& stages);
inline constexpr index kMostLayers = 65536;

/// Whether the last norm of a pre-norm model is there: a residual sum needs it.
bool ends_with_norm(const EncoderConfig& config, const std::vector<SizedStage>& stages);

/// The columns of q, k and v of the first layer, if training computes them once for each different
/// token of a batch, else 0. It does where attention alone reads embeddings of tokens, without a
/// norm, a residual sum or dropout before it, and positions, if any, are added.
index projected_once_columns(const EncoderConfig& config, const std::vector<SizedStage>& stages);

/// The configuration of a layer with attention or a feed-forward network: what its spec says counts
/// more than what the model says.
EncoderConfig config_of_layer(const EncoderConfig& config, const SizedLayer& layer);

}  // namespace fovea

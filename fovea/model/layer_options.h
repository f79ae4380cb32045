// SPDX-License-Identifier: Apache-2.0
// The options of a model's layers, from its configuration.
#pragma once

#include "fovea/model/encoder_config.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/nn/block.h"
#include "fovea/nn/embedding.h"

namespace fovea {

/// How the book's recurrent networks, the projections of their attention and the output above them
/// start.
inline constexpr double kSourceRnnDeviation = 0.01;

/// How a matrix [out, in] starts, and how the bias beside it.
Init matrix_init(const EncoderConfig& config, index in, index out);
BiasStart bias_start(const EncoderConfig& config);
/// Whether the layers have biases.
Biases biases(const EncoderConfig& config);

NormOptions norm_options(const EncoderConfig& config, index width);
ResidualOptions residual_options(const EncoderConfig& config, index width);
EmbeddingOptions embedding_options(const EncoderConfig& config);

/// The two below are for a layer with the sizes of `config`. `depth`: the pairs of residual sums of
/// the model, for how the projections start that end in one.
MultiHeadAttentionOptions attention_options(const EncoderConfig& config,
                                            const EncoderLayerSpec& spec, index depth);
FeedForwardOptions feed_forward_options(const EncoderConfig& config, index depth);

}  // namespace fovea

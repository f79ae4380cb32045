// SPDX-License-Identifier: Apache-2.0
// Layers as an encoder has them: in a residual connection with a norm (Residual in block.h), whose
// parameters are those of norm.*, or over another axis of the rows. Layers that are no EncoderLayer
// by themselves become one here, and those that several callers make are made here.
#pragma once

#include <memory>
#include <optional>

#include "fovea/nn/block.h"
#include "fovea/nn/convolution.h"
#include "fovea/nn/encoder.h"
#include "fovea/nn/recurrent.h"

namespace fovea {

using ResidualIf = std::optional<ResidualOptions>;

std::unique_ptr<EncoderLayer> attention_layer(const MultiHeadAttentionOptions& options,
                                              const ResidualIf& residual,
                                              const ParameterScope& scope);
std::unique_ptr<EncoderLayer> feed_forward_layer(const FeedForwardOptions& options,
                                                 const ResidualIf& residual,
                                                 const ParameterScope& scope);
std::unique_ptr<EncoderLayer> recurrent_layer(const RecurrentLayersOptions& options,
                                              const ResidualIf& residual,
                                              const ParameterScope& scope);
std::unique_ptr<EncoderLayer> convolution_layer(const ConvolutionLayerOptions& options,
                                                const ResidualIf& residual,
                                                const ParameterScope& scope);
std::unique_ptr<EncoderLayer> text_cnn_layer(const TextCnnOptions& options,
                                             const ParameterScope& scope);

/// The layer in a residual connection, if any; norm.* are added behind its parameters.
std::unique_ptr<EncoderLayer> in_residual(std::unique_ptr<EncoderLayer> layer,
                                          const ResidualIf& residual, const ParameterScope& scope);

/// The layer along the other axis of its rows (PackedRows::across): the rows are put in that order,
/// and back.
std::unique_ptr<EncoderLayer> layer_across(std::unique_ptr<EncoderLayer> layer);

}  // namespace fovea

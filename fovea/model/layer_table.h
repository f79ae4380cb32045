// SPDX-License-Identifier: Apache-2.0
// The table of layers: a row for each name that --encoder knows, with all that differs from layer
// to layer. The parser, sizes, construction, forecasts of memory and explanations ask the row, so a
// new layer touches none of them. The table stands above `nn`, so that layers know nothing of names
// and options. Beside it: the options of layers, from the configuration of a model.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "fovea/model/encoder_config.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/nn/block.h"
#include "fovea/nn/embedding.h"
#include "fovea/nn/encoder_layers.h"

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
/// Those of `experts`, if the configuration has any.
std::optional<ExpertsOptions> experts_options(const EncoderConfig& config, index depth);

/// The biases by distance that all layers share, distances.weight [buckets, heads] of `scope`; null
/// where each layer has its own, or none.
Parameter* shared_distances(const EncoderConfig& config, const ParameterScope& scope);
/// Lets a layer have these, if there are any.
void share_distances(MultiHeadAttentionOptions& options, Parameter* distances);

/// How a layer stands in a residual connection with a norm.
enum class LayerSum : std::uint8_t {
  kNever,
  kIfSaid,  ///< if the text says `residual`
  kUsual,   ///< where the width stays, unless the text says `plain`
  kInside,  ///< its two parts have one each
};

/// The parts from which a layer is built.
struct LayerParts {
  EncoderConfig config;          ///< with the sizes of the layer; its width is that of the input
  const EncoderLayerSpec& spec;  ///< with every size filled in
  index depth;                   ///< pairs of residual sums of the model
  ResidualIf residual;
  Parameter* distances = nullptr;  ///< shared_distances()
};

struct LayerKind {
  std::string_view name;      ///< "bilstm"
  std::string_view settings;  ///< those that a text may give it, with blanks between
  bool numbered = false;      ///< its width in tokens follows the name: conv3
  bool windowed = false;      ///< the widths of its windows follow a colon: textcnn:3,4,5

  RecurrentKind cell = RecurrentKind::kRnn;
  bool is_recurrent = false;  ///< a state goes from row to row
  bool reads_back = false;    ///< from the last row to the first, too
  bool in_one = false;        ///< one object has all its `layers`
  bool attends = false;       ///< to the rows, as the options about attention say
  bool shows_heads = false;   ///< explain can show the weights of its heads
  bool mixes = false;         ///< rows read other rows otherwise than by attention
  bool feeds_forward = false;
  bool has_first_step = false;  ///< projected_once_columns() of encoder_spec.h
  bool is_last = false;         ///< and alone: a text takes the maxima of its result
  LayerSum sum = LayerSum::kNever;

  /// Fills in what the text has left out and checks what is said; `in`: columns of its input.
  void (*fill)(EncoderLayerSpec& spec, const EncoderConfig& config, index in);
  /// Columns of its result.
  index (*out)(const EncoderLayerSpec& spec, index in);
  std::unique_ptr<EncoderLayer> (*make)(const LayerParts& parts, const ParameterScope& scope);
  /// The numbers that a session of one of its `layers` keeps of `tokens` tokens; null: few.
  double (*kept)(const EncoderLayerSpec& spec, index in, index block, index tokens) = nullptr;

  bool has_setting(std::string_view setting) const;
};

std::span<const LayerKind> layer_kinds();

/// The row of this name. Throws kInternal if there is none.
const LayerKind& layer_kind(std::string_view name);

}  // namespace fovea

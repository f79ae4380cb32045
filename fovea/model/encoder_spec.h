// SPDX-License-Identifier: Apache-2.0
// The text that names the layers of an encoder, such as
// "conv3,attention:heads=8:window=8,bilstm:256".
//
//   encoder := stage ("," stage)*           one after another
//   stage   := layer ("+" layer)*           side by side: their results are concatenated, and
//                                           projected to the width of the model
//   layer   := name (":" setting)*          a name of model/layer_table.cc; its row says whether a
//                                           width in tokens follows (conv3), or several, of windows
//                                           (textcnn:3,4,5)
//   setting := number | key "=" value | flag       a number alone is the width of the result
//
// A setting that the text leaves out is 0 or absent in EncoderLayerSpec; the model fills it in.
// SizedLayer has every size: what builds the layers, counts them and predicts their memory reads
// one list of these.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/model/encoder_config.h"
#include "fovea/nn/options.h"

namespace fovea {

struct LayerKind;  // a row of model/layer_table.h

/// One layer, or several equal ones in a row.
struct EncoderLayerSpec {
  const LayerKind* kind = nullptr;
  index width = 0;                 ///< of the result, or of one direction of it
  index layers = 1;                ///< one after another
  index kernel = 0;                ///< convolution: its width in tokens
  std::vector<index> widths = {};  ///< textcnn: of its windows, in tokens
  index dilation = 1;              ///< convolution, attention: steps between what it sees
  index strided = 0;               ///< attention: nearer keys and every so many-th; 0: all
  bool gated = false;              ///< convolution: GLU (ConvS2S)
  index heads = 0, kv_heads = 0, head_dim = 0;
  index ff = 0;
  std::optional<index> window = {};  ///< 0: all keys
  std::optional<PositionKind> position = {};
  std::optional<LayerActivation> activation = {};
  std::optional<double> scale = {};   ///< of the scores; none: the usual one, 1 / sqrt(head_dim)
  bool no_output = false;             ///< attention: the heads side by side, not projected
  bool joints = false;                ///< over the joints of each time step, instead of over time
  std::optional<bool> residual = {};  ///< x + f(norm(x)) or norm(x + f(x)), instead of f(x)

  friend bool operator==(const EncoderLayerSpec&, const EncoderLayerSpec&) = default;
};

/// Layers side by side.
using EncoderStage = std::vector<EncoderLayerSpec>;

/// Throws kOptionValue, which says where in the text the error is, and lists what is possible.
std::vector<EncoderStage> parse_encoder(std::string_view text);

/// How the text calls the layer, without settings: "bilstm", "conv3".
std::string layer_name(const EncoderLayerSpec& spec);

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

/// The kind of layer that a part belongs to. A field whose FieldTraits name a part has no effect on
/// a model without it.
enum class PartOwner { kAny, kAttention, kTransformer, kLstm };
PartOwner owner_of_part(std::string_view part);

/// The missing thing without which a field of this part ("": a part of all models) has no effect,
/// as "an attention layer in --encoder"; "" if it has one. `stages` are those of the resolved
/// configuration.
std::string_view lacks_for_effect(std::string_view part, const EncoderConfig& config,
                                  const std::vector<SizedStage>& stages);

}  // namespace fovea

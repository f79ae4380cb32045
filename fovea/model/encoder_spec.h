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
// A setting that the text leaves out is 0 or absent here; the model fills it in.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
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

}  // namespace fovea

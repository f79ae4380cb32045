// SPDX-License-Identifier: Apache-2.0
// The attentions of an encoder, in the order in which HeadStatistics come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/model/encoder_sizes.h"
#include "fovea/model/translator_config.h"

namespace fovea {

/// The place of an attention layer: which text attends to which.
enum class AttentionPlace : std::uint8_t {
  kText,     ///< the text at itself; of a translator the source
  kDecoder,  ///< the translation at what is written of it
  kCross,    ///< the translation at the source
};

struct AttentionLayerName {
  std::string name;  ///< "layer 1 (transformer)"; the number counts attentions, from 1
  index heads = 0;
  bool residual = false;      ///< its result is added to its input
  bool side_by_side = false;  ///< other layers read the same rows
  bool across = false;        ///< over the joints of each time step
  AttentionPlace place = AttentionPlace::kText;
};

std::vector<AttentionLayerName> attention_layers(const std::vector<SizedStage>& stages);
/// "encoder 1 (transformer)", then of each layer of the decoder "decoder 1 (self-attention)" and
/// "decoder 1 (cross-attention)"; of a recurrent one "decoder (additive attention)" alone.
/// `config` must be resolved.
std::vector<AttentionLayerName> attention_layers(const TranslatorConfig& config);

/// Layers without attention that mix tokens: recurrent layers and convolutions.
bool has_other_mixing(const std::vector<SizedStage>& stages);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// The attentions of an encoder, in the order in which HeadStatistics come.
#pragma once

#include <string>
#include <vector>

#include "fovea/model/encoder_sizes.h"

namespace fovea {

struct AttentionLayerName {
  std::string name;  ///< "layer 1 (transformer)"; the number counts attentions, from 1
  index heads = 0;
  bool residual = false;      ///< its result is added to its input
  bool side_by_side = false;  ///< other layers read the same rows
  bool across = false;        ///< over the joints of each time step
};

std::vector<AttentionLayerName> attention_layers(const std::vector<SizedStage>& stages);

/// Layers without attention that mix tokens: recurrent layers and convolutions.
bool has_other_mixing(const std::vector<SizedStage>& stages);

}  // namespace fovea

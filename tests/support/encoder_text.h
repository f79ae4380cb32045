// SPDX-License-Identifier: Apache-2.0
// The other way round of parse_encoder(): what an encoder is made of, as text.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "fovea/model/encoder_spec.h"

namespace fovea {

/// What a text can leave out is left out.
inline std::string text_of(const EncoderLayerSpec& spec) {
  std::string text = layer_name(spec);
  if (!spec.widths.empty()) text += fmt::format(":{}", fmt::join(spec.widths, ","));
  const auto add = [&](const char* name, index value, index usual) {
    if (value != usual) text += fmt::format(":{}={}", name, value);
  };
  add("width", spec.width, 0);
  add("layers", spec.layers, 1);
  add("dilation", spec.dilation, 1);
  add("strided", spec.strided, 0);
  add("heads", spec.heads, 0);
  add("kv-heads", spec.kv_heads, 0);
  add("head-dim", spec.head_dim, 0);
  add("ff", spec.ff, 0);
  if (spec.gated) text += ":gated";
  if (spec.window) text += fmt::format(":window={}", *spec.window);
  if (spec.position) text += fmt::format(":position={}", to_string(*spec.position));
  if (spec.activation) text += fmt::format(":activation={}", to_string(*spec.activation));
  if (spec.residual) text += *spec.residual ? ":residual" : ":plain";
  return text;
}

inline std::string text_of(const std::vector<EncoderStage>& stages) {
  std::string text;
  for (const EncoderStage& stage : stages) {
    if (!text.empty()) text += ',';
    for (std::size_t n = 0; n < stage.size(); ++n) text += (n > 0 ? "+" : "") + text_of(stage[n]);
  }
  return text;
}

}  // namespace fovea

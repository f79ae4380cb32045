// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_config.h"

#include <string>

#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/field.h"
#include "fovea/model/compat.h"
#include "fovea/model/language_model_layers.h"
#include "fovea/model/language_model_stages.h"

namespace fovea {

namespace {

void check_kind(const LanguageModelConfig& c) {
  const bool is_encoder = c.kind == LanguageModelKind::kEncoder;
  if (is_encoder && c.encoder.empty()) {
    throw Error(ErrorCode::kOptionValue, "--model encoder: no layers are given",
                "say which: --encoder conv3,attention:window=8,lstm");
  }
  if (!is_encoder && !c.encoder.empty()) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("--encoder belongs to --model encoder; it is --model {}", to_string(c.kind)),
        "give --model encoder, or leave out --encoder");
  }
  compat_of(c);
}

// Checks the limits that all layers together must keep.
void check_layers(const LanguageModelConfig& c) {
  const std::vector<SizedStage> stages = sized_stages(c);
  check_stages(c, stages);
  if (c.tie && stages.back().out != c.width) {
    throw Error(ErrorCode::kShape,
                fmt::format("--tie: the last layer has {} columns, the token embeddings {}",
                            stages.back().out, c.width),
                "give --no-tie, or let the last layer have the width of the model");
  }
}

}  // namespace

std::vector<index> layer_windows(const LanguageModelConfig& c) {
  const auto layers = static_cast<std::size_t>(c.layers);
  if (c.window.empty()) return std::vector<index>(layers, 0);
  std::vector<index> windows = parse_numbers(c.window, ',');
  if (windows.empty()) {
    fail_option("window", printable(c.window), "whole numbers, such as 64 or 64,0",
                ErrorCode::kOptionValue, Hint{"write digits, with a comma between layers"});
  }
  for (const index window : windows) check_size("window", window, 0);
  if (windows.size() == 1) windows.resize(layers, windows[0]);
  if (windows.size() != layers) {
    fail_option("window", printable(c.window),
                fmt::format("one number, or one for each of the {} layers", layers),
                ErrorCode::kOptionValue,
                Hint{"a layer with the window 0 sees all; --layers says how many there are"});
  }
  return windows;
}

LanguageModelConfig resolve(LanguageModelConfig c) {
  check_ranges(c);
  check_size("layers", c.layers, 1, kMostLayers);
  resolve_encoder(c);
  check_kind(c);
  if (c.head_dim == 0 && c.kind == LanguageModelKind::kTransformer) {
    throw Error(ErrorCode::kShape,
                fmt::format("--width: {} is not divisible by --heads ({})", c.width, c.heads),
                "make --width a multiple of --heads, or choose --head-dim yourself");
  }
  layer_windows(c);
  check_layers(c);
  return c;
}

namespace {

index count_by_shapes(const LanguageModelConfig& resolved) {
  ParameterSet shapes({.memory = ParameterMemory::kShapesOnly});
  const LanguageModelLayers layers(resolved, ParameterScope(shapes));
  return shapes.size();
}

}  // namespace

// All layers of a Transformer are alike, so one and two of them say what any number has: to make
// tens of thousands would take hundreds of megabytes.
index parameter_count(const LanguageModelConfig& config) {
  LanguageModelConfig c = resolve(config);
  const index layers = c.layers;
  if (c.kind != LanguageModelKind::kTransformer || layers <= 2) return count_by_shapes(c);
  c.window.clear();  // it may list the layers, and changes no shape
  c.layers = 1;
  const index one = count_by_shapes(c);
  c.layers = 2;
  return one + (layers - 1) * (count_by_shapes(c) - one);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "fovea/base/option.h"
#include "fovea/base/printable.h"
#include "fovea/model/compat.h"
#include "fovea/model/encoder_sizes.h"
#include "fovea/model/language_model_layers.h"

namespace fovea {

namespace {

// Ids, offsets and positions are int32. Larger sizes do not fit into any machine.
constexpr index kLargest = std::numeric_limits<std::int32_t>::max();

void check_size(std::string_view name, index value, index least, index most) {
  require_option(value >= least && value <= most, name, value, "in {} to {}", least, most);
}

void check_sizes(const LanguageModelConfig& c) {
  check_size("vocabulary", c.vocabulary, 1, kLargest);
  check_size("layers", c.layers, 1, kMostLayers);
  check_size("heads", c.heads, 1, kLargest);
  require_option(c.kv_heads >= 0 && c.kv_heads <= c.heads, "kv_heads", c.kv_heads,
                 "0 (as many as --heads) to --heads ({})", c.heads);
  check_size("head_dim", c.head_dim, 0, kLargest);
  check_size("width", c.width, 1, kLargest);
  check_size("ff", c.ff, 0, kLargest);
  check_size("block", c.block, 1, kLargest);
}

// Rows of positions that are joined to the embeddings.
void check_positions(const LanguageModelConfig& c) {
  const index least = adds_position_rows(c.position) ? c.block : 1;
  require_option(c.position_max == 0 || (c.position_max >= least && c.position_max <= kLargest),
                 "position_max", c.position_max, "0 (as many as --block), or {} to {}", least,
                 kLargest);
  constexpr double kLargestScale = 1e6;
  require_option(c.embedding_scale >= 0 && c.embedding_scale <= kLargestScale, "embedding_scale",
                 c.embedding_scale, "in 0 (chosen by --position) to {}", kLargestScale);
  if (c.position_join == PositionJoin::kConcatenate && !adds_position_rows(c.position)) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--position-join concat: --position {} has no rows to concatenate",
                            to_string(c.position)),
                "take --position learned or sinusoidal, or leave out --position-join");
  }
  if (c.position == PositionKind::kSinusoidal && c.width % 2 != 0) {
    throw Error(ErrorCode::kShape,
                fmt::format("--width: sinusoidal positions need an even one; it is {}", c.width),
                "make --width even, or choose another --position");
  }
}

// Choices that exclude each other, and sizes that a choice needs.
void check_attention(const LanguageModelConfig& c) {
  check_size("t5_buckets", c.t5_buckets, 2, kLargest);
  check_size("t5_max_distance", c.t5_max_distance, 1, kLargest);
  if (part_tensor(c.position) == "t5") {
    require_option(c.t5_max_distance > c.t5_buckets / 2, "t5_max_distance", c.t5_max_distance,
                   "above half of --t5-buckets ({}), for so many distances have a bucket each",
                   c.t5_buckets);
  }
  check_size("shaw_clip", c.shaw_clip, 1, kLargest);
  require_option(c.rope_base > 0 && std::isfinite(c.rope_base), "rope_base", c.rope_base,
                 "above 0");
  require_option(c.softcap >= 0 && std::isfinite(c.softcap), "softcap", c.softcap,
                 "above 0, or 0 (none)");
  require_option(!c.log_n_scale || c.block > 1, "block", c.block,
                 "at least 2 with --log-n-scale, whose logarithm it is");
  if (c.sink && c.attention_norm != AttentionNormKind::kSoftmax) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--sink: a sink needs softmax; --attention-norm is {}",
                            to_string(c.attention_norm)),
                "leave out --sink, or take --attention-norm softmax");
  }
  if (part_tensor(c.position) == "shaw_k" && c.score == AttentionScoreKind::kConcat) {
    throw Error(ErrorCode::kOptionValue, "--position shaw and --score concat exclude each other",
                "shaw joins the keys of a product q.k, and w.[q; k] is none");
  }
  if (c.position == PositionKind::kRotary && c.head_dim % 2 != 0) {
    throw Error(ErrorCode::kShape,
                fmt::format("--head-dim: rotary positions need an even one; it is {}", c.head_dim),
                "make --head-dim even (it is --width / --heads), or choose another --position");
  }
}

// Sinusoids are as large as 1. Tokens start far smaller and would be lost beside them, so their
// embeddings are multiplied by the square root of the width (Vaswani et al. 2017, 3.4).
double embedding_scale(const LanguageModelConfig& c) {
  const bool sinusoidal = c.position == PositionKind::kSinusoidal;
  return sinusoidal ? std::sqrt(static_cast<double>(c.width)) : 1;
}

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

// What all layers together must fit.
void check_layers(const LanguageModelConfig& c) {
  const std::vector<SizedStage> stages = sized_stages(c);
  if (layer_count(stages) > kMostLayers) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--encoder: it has {} layers", layer_count(stages)),
                fmt::format("{} are the most", kMostLayers));
  }
  for (const SizedStage& stage : stages) {
    for (const SizedLayer& layer : stage.branches) {
      if (layer.spec.head_dim > 0) check_attention(config_of_layer(c, layer));
    }
  }
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
    fail_option("window", printable(c.window), "whole numbers, such as 64 or 64,0");
  }
  for (const index window : windows) check_size("window", window, 0, kLargest);
  if (windows.size() == 1) windows.resize(layers, windows[0]);
  if (windows.size() != layers) {
    fail_option("window", printable(c.window),
                fmt::format("one number, or one for each of the {} layers", layers));
  }
  return windows;
}

LanguageModelConfig resolve(LanguageModelConfig c) {
  check_sizes(c);
  check_kind(c);
  require_option(c.dropout >= 0 && c.dropout < 1, "dropout", c.dropout, "at least 0 and below 1");
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.heads % c.kv_heads != 0) {
    throw Error(ErrorCode::kShape,
                fmt::format("--heads: {} is not divisible by --kv-heads ({})", c.heads, c.kv_heads),
                "make --heads a multiple of --kv-heads: each of those serves a group of heads");
  }
  if (c.ff == 0) c.ff = checked_product(4, c.width, "--ff: 4 x --width");
  if (c.head_dim == 0) {
    if (c.width % c.heads == 0) {
      c.head_dim = c.width / c.heads;
    } else if (c.kind == LanguageModelKind::kTransformer) {
      throw Error(ErrorCode::kShape,
                  fmt::format("--width: {} is not divisible by --heads ({})", c.width, c.heads),
                  "make --width a multiple of --heads, or choose --head-dim yourself");
    }
  }
  check_positions(c);
  if (c.position_max == 0) c.position_max = c.block;
  if (c.embedding_scale == 0) c.embedding_scale = embedding_scale(c);
  check_attention(c);
  layer_windows(c);
  check_size("ff", c.ff, 1, kLargest);
  checked_product(c.heads, c.head_dim, "--heads x --head-dim");
  check_layers(c);
  return c;
}

index parameter_count(const LanguageModelConfig& config) {
  ParameterSet shapes({.memory = ParameterMemory::kShapesOnly});
  const LanguageModelLayers layers(resolve(config), ParameterScope(shapes));
  return shapes.size();
}

double flops_per_token(const LanguageModelConfig& config) {
  const LanguageModelConfig c = resolve(config);
  double matrices = 0, scores = 0;
  index width = c.width;
  for (const SizedStage& stage : sized_stages(c)) {
    double joined = 0;
    for (const SizedLayer& layer : stage.branches) {
      matrices += matrix_values(layer);
      scores += score_columns(layer, c.block);
      joined += static_cast<double>(layer.out);
    }
    if (stage.branches.size() > 1) matrices += joined * static_cast<double>(stage.out);
    width = stage.out;
  }
  const auto C = static_cast<double>(c.width);
  const double output = static_cast<double>(c.vocabulary) * static_cast<double>(width);
  const double join = c.position_join == PositionJoin::kConcatenate ? 2 * C * C : 0;
  return 6 * (matrices + output + join) + 14 * scores;
}

}  // namespace fovea

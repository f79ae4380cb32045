// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_config.h"

#include <limits>
#include <string>

#include "fovea/base/option.h"
#include "fovea/model/language_model_layers.h"

namespace fovea {

namespace {

// Ids, offsets and positions are int32. Larger sizes do not fit into any machine.
constexpr index kLargest = std::numeric_limits<std::int32_t>::max();
constexpr index kMostLayers = 65536;

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

// The number of values in the matrices of a layer: as many multiply-adds for one token.
double matrix_parameters(const LanguageModelConfig& c) {
  const double C = static_cast<double>(c.width), F = static_cast<double>(c.ff),
               qo = 2 * static_cast<double>(c.heads * c.head_dim),
               kv = 2 * static_cast<double>(c.kv_heads * c.head_dim);
  return C * (qo + kv) + 2 * C * F;
}

}  // namespace

LanguageModelConfig resolve(LanguageModelConfig c) {
  check_sizes(c);
  require_option(c.dropout >= 0 && c.dropout < 1, "dropout", c.dropout, "at least 0 and below 1");
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.heads % c.kv_heads != 0) {
    throw Error(ErrorCode::kShape,
                fmt::format("--heads: {} is not divisible by --kv-heads ({})", c.heads, c.kv_heads),
                "make --heads a multiple of --kv-heads: each of those serves a group of heads");
  }
  if (c.ff == 0) c.ff = checked_product(4, c.width, "--ff: 4 x --width");
  if (c.head_dim == 0) {
    if (c.width % c.heads != 0) {
      throw Error(ErrorCode::kShape,
                  fmt::format("--width: {} is not divisible by --heads ({})", c.width, c.heads),
                  "make --width a multiple of --heads, or choose --head-dim yourself");
    }
    c.head_dim = c.width / c.heads;
  }
  if (c.position == PositionKind::kSinusoidal && c.width % 2 != 0) {
    throw Error(ErrorCode::kShape,
                fmt::format("--width: sinusoidal positions need an even one; it is {}", c.width),
                "make --width even, or choose another --position");
  }
  check_size("ff", c.ff, 1, kLargest);
  checked_product(c.heads, c.head_dim, "--heads x --head-dim");
  return c;
}

index parameter_count(const LanguageModelConfig& config) {
  ParameterSet shapes({.memory = ParameterMemory::kShapesOnly});
  const LanguageModelLayers layers(resolve(config), ParameterScope(shapes));
  return shapes.size();
}

double flops_per_token(const LanguageModelConfig& config) {
  const LanguageModelConfig c = resolve(config);
  const auto layers = static_cast<double>(c.layers);
  const double keys = (static_cast<double>(c.block) + 1) / 2;
  const double scores = keys * static_cast<double>(c.heads * c.head_dim);
  const double output = static_cast<double>(c.vocabulary) * static_cast<double>(c.width);
  return 6 * (layers * matrix_parameters(c) + output) + layers * 14 * scores;
}

}  // namespace fovea

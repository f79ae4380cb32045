// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/encoder_config.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "fovea/base/option.h"
#include "fovea/base/words.h"

namespace fovea {

namespace {

void check_sizes(const EncoderConfig& c) {
  check_size("vocabulary", c.vocabulary, c.features > 0 ? 0 : 1);
  require_option(c.kv_heads >= 0 && c.kv_heads <= c.heads,
                 Hint{"leave --kv-heads out, or choose more --heads"}, "kv_heads", c.kv_heads,
                 "0 (as many as --heads) to --heads ({})", c.heads);
}

// Rows of positions that are joined to the embeddings.
void check_positions(const EncoderConfig& c) {
  const index least = adds_position_rows(c.position) ? c.block : 1;
  require_option(c.position_max == 0 || (c.position_max >= least && c.position_max <= kLargestSize),
                 Hint{"leave --position-max out, or choose a smaller --block"}, "position_max",
                 c.position_max, "0 (as many as --block), or {} to {}", least, kLargestSize);
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

// Sinusoids are as large as 1. Tokens start far smaller and would be lost beside them, so their
// embeddings are multiplied by the square root of the width (Vaswani et al. 2017, 3.4). Rows
// projected from normalised numbers are about as large from the start.
double embedding_scale(const EncoderConfig& c) {
  const bool sinusoidal = c.position == PositionKind::kSinusoidal && c.features == 0;
  return sinusoidal ? std::sqrt(static_cast<double>(c.width)) : 1;
}

}  // namespace

void check_size(std::string_view name, index value, index least, index most) {
  require_option(value >= least && value <= most, name, value, "in {} to {}", least, most);
}

// Models compute in float32, where a smaller cap is 0.
void check_softcap(std::string_view name, double cap) {
  using Floats = std::numeric_limits<float>;
  require_option(cap == 0 || (cap >= Floats::min() && cap <= Floats::max()), name, cap,
                 "0 (none), or in {} to {}", Floats::min(), Floats::max());
}

// Choices that exclude each other, and sizes that a choice needs.
void check_attention(const EncoderConfig& c) {
  if (part_tensor(c.position) == "t5") {
    check_size("t5_buckets", c.t5_buckets, c.sight == Sight::kWhole ? 4 : 2);
    require_option(c.t5_max_distance > c.t5_buckets / 2,
                   Hint{"choose fewer --t5-buckets, or a larger --t5-max-distance"},
                   "t5_max_distance", c.t5_max_distance,
                   "above half of --t5-buckets ({}), for so many distances have a bucket each",
                   c.t5_buckets);
  }
  check_softcap("softcap", c.softcap);
  require_option(std::isfinite(c.score_scale), "score_scale", c.score_scale, "a number");
  require_option(!c.log_n_scale || c.block > 1,
                 Hint{"leave --log-n-scale out, or choose a larger --block"}, "block", c.block,
                 "at least 2 with --log-n-scale, whose logarithm it is");
  if (c.sink && c.attention_norm != AttentionNormKind::kSoftmax) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--sink: a sink needs softmax; --attention-norm is {}",
                            to_string(c.attention_norm)),
                "leave out --sink, or take --attention-norm softmax");
  }
  if (learns_tensor(c.position, "shaw_k") && c.score == AttentionScoreKind::kConcat) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("--position {} and --score concat exclude each other", to_string(c.position)),
        "choose another --position or another --score: shaw joins the keys of a product "
        "q.k, and w.[q; k] is none");
  }
  if (c.position == PositionKind::kRotary && c.head_dim % 2 != 0) {
    throw Error(ErrorCode::kShape,
                fmt::format("--head-dim: rotary positions need an even one; it is {}", c.head_dim),
                "make --head-dim even (it is --width / --heads), or choose another --position");
  }
}

void resolve_encoder(EncoderConfig& c) {
  check_sizes(c);
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.heads % c.kv_heads != 0) {
    throw Error(ErrorCode::kShape,
                fmt::format("--heads: {} is not divisible by --kv-heads ({})", c.heads, c.kv_heads),
                "make --heads a multiple of --kv-heads: each of those serves a group of heads");
  }
  if (c.ff == 0) c.ff = checked_product(4, c.width, "--ff: 4 x --width");
  if (c.head_dim == 0 && c.width % c.heads == 0) c.head_dim = c.width / c.heads;
  check_positions(c);
  if (c.position_max == 0) c.position_max = c.block;
  if (c.embedding_scale == 0) c.embedding_scale = embedding_scale(c);
  check_attention(c);
  check_size("ff", c.ff, 1);
  checked_product(c.heads, c.head_dim, "--heads x --head-dim");
}

std::vector<double> divisors_of(const EncoderConfig& c) {
  std::vector<double> divisors;
  for (std::string_view rest = c.rotary_divisors; !rest.empty();) {
    const std::string_view text = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    const char* const end = text.data() + text.size();
    double& value = divisors.emplace_back(0);
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc{} && stop == end && value > 0 && std::isfinite(value)) continue;
    throw Error(ErrorCode::kOptionValue,
                fmt::format("rotary_divisors: expected numbers over 0, got {}", printable(text)),
                "they are those of the model from elsewhere that this one began from");
  }
  return divisors;
}

std::string divisors_text(std::span<const double> divisors) {
  return fmt::format("{}", fmt::join(divisors, ","));
}

}  // namespace fovea

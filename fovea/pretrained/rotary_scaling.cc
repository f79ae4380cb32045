// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/rotary_scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

namespace fovea {

namespace {

constexpr double kLeast = std::numeric_limits<double>::min(), kMost = 1e30;
constexpr double kTurn = 2 * std::numbers::pi;

// f(angle of position 1) of each pair.
template <class F>
RotaryScaling each_pair(const RotarySizes& sizes, F&& f) {
  RotaryScaling scaling;
  for (index c = 0; c < sizes.columns / 2; ++c) {
    const double power = 2 * static_cast<double>(c) / static_cast<double>(sizes.columns);
    scaling.divisors.push_back(f(c, std::pow(sizes.base, -power)));
  }
  return scaling;
}

// Divides by `factor` as far as `kept`, in [0, 1], is 0.
double divisor(double factor, double kept) { return 1 / ((1 - kept) / factor + kept); }

}  // namespace

RotaryScaling linear_scaling(const RotarySizes& sizes, double factor) {
  return each_pair(sizes, [&](index, double) { return factor; });
}

RotaryScaling llama3_scaling(const RotarySizes& sizes, const Llama3Rule& rule) {
  return each_pair(sizes, [&](index, double angle) {
    const double waves = sizes.trained * angle / kTurn;
    if (waves > rule.high) return 1.0;
    if (waves < rule.low) return rule.factor;
    return divisor(rule.factor, (waves - rule.low) / (rule.high - rule.low));
  });
}

RotaryScaling yarn_scaling(const RotarySizes& sizes, const YarnRule& rule) {
  // The pair, as a real number, of which `waves` lie within the trained positions.
  const auto pair_of = [&](double waves) {
    return static_cast<double>(sizes.columns) * std::log(sizes.trained / (waves * kTurn)) /
           (2 * std::log(sizes.base));
  };
  double first = pair_of(rule.fast), last = pair_of(rule.slow);
  if (rule.whole) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(sizes.columns - 1));
  if (first == last) last += 0.001;
  RotaryScaling scaling = each_pair(sizes, [&](index c, double) {
    const double ramp = std::clamp((static_cast<double>(c) - first) / (last - first), 0.0, 1.0);
    return divisor(rule.factor, 1 - ramp);
  });
  if (rule.factor > 1) scaling.amplitude = 0.1 * std::log(rule.factor) + 1;
  return scaling;
}

namespace {

RotaryScaling read_llama3(const ForeignObject& rules, const RotarySizes& sizes) {
  const Llama3Rule rule{.factor = rules.number("factor", kLeast, kMost),
                        .low = rules.number("low_freq_factor", kLeast, kMost),
                        .high = rules.number("high_freq_factor", kLeast, kMost)};
  if (!(rule.high > rule.low)) rules.fail_value("high_freq_factor", "more than low_freq_factor");
  return llama3_scaling(sizes, rule);
}

RotaryScaling read_yarn(const ForeignObject& rules, const RotarySizes& sizes, double factor) {
  if (!(sizes.base > 1)) rules.refuse("rope_theta", "bases over 1 with yarn");
  RotaryScaling scaling = yarn_scaling(sizes, {.factor = factor,
                                               .fast = rules.number("beta_fast", kLeast, kMost, 32),
                                               .slow = rules.number("beta_slow", kLeast, kMost, 1),
                                               .whole = rules.flag("truncate", true)});
  // DeepSeek's two numbers, as a ratio of amplitudes.
  const double above = rules.number("mscale", 0, kMost, 0);
  const double below = rules.number("mscale_all_dim", 0, kMost, 0);
  if (above > 0 && below > 0 && factor > 1) {
    const double log = 0.1 * std::log(factor);
    scaling.amplitude = (above * log + 1) / (below * log + 1);
  }
  scaling.amplitude = rules.number("attention_factor", kLeast, kMost, scaling.amplitude);
  return scaling;
}

}  // namespace

RotaryRules read_rotary_rules(const ForeignObject& rules, RotarySizes sizes) {
  const std::string type = rules.text("rope_type", rules.text("type", "default"));
  sizes.base = rules.number("rope_theta", kLeast, kMost, sizes.base);
  rules.require("partial_rotary_factor", 1.0);
  RotaryRules read{.base = sizes.base};
  if (type == "linear") {
    read.scaling = linear_scaling(sizes, rules.number("factor", kLeast, kMost));
  } else if (type == "llama3" || type == "yarn") {
    sizes.trained = rules.number("original_max_position_embeddings", 1, kMost, sizes.trained);
    if (type == "llama3") {
      read.scaling = read_llama3(rules, sizes);
    } else {
      const double factor = rules.number("factor", kLeast, kMost);
      read.scaling = read_yarn(rules, sizes, factor);
      read.reach = factor * sizes.trained;
    }
  } else if (type != "default") {
    rules.refuse(rules.has("rope_type") ? "rope_type" : "type", "default, linear, llama3 and yarn");
  }
  rules.refuse_others();
  return read;
}

}  // namespace fovea

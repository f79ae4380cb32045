// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/numbers.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fovea/base/check.h"

namespace fovea {

namespace {

struct Suffix {
  double unit;
  const char* name;
};

constexpr std::array kSuffixes = {Suffix{1e9, "G"}, Suffix{1e6, "M"}, Suffix{1e3, "k"}};

// The labels of one axis share one unit: 0, 500k, 1000k.
Suffix suffix_for(double largest, double step) {
  for (const Suffix suffix : kSuffixes) {
    if (largest >= 5 * suffix.unit && step >= suffix.unit / 10) return suffix;
  }
  return {1, ""};
}

std::string label(double value, double step, Suffix suffix) {
  if (value == 0) return "0";
  if (std::abs(value) >= 1e12 || step < 1e-6) return fmt::format("{:.6g}", value);
  const double decimals = std::max(0.0, -std::floor(std::log10(step / suffix.unit) + 1e-9));
  return fmt::format("{:.{}f}{}", value / suffix.unit, static_cast<int>(decimals), suffix.name);
}

// The smallest of 1, 2, 5, 10 times a power of ten that is at least `step`.
double round_up(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::vector<Tick> linear_ticks(double low, double high, int most) {
  double step = round_up((high - low) / (most + 1));
  // Among three or more ticks of one step there is always one of the next larger step, so at least
  // one tick is left.
  while (std::floor(high / step + 1e-9) - std::ceil(low / step - 1e-9) + 1 > most) {
    step = round_up(step * 1.5);
  }
  const Suffix suffix = suffix_for(std::max(std::abs(low), std::abs(high)), step);
  std::vector<Tick> ticks;
  const double first = std::ceil(low / step - 1e-9);
  const double count = std::floor(high / step + 1e-9) - first + 1;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const double value = (first + i) * step;
    ticks.push_back({value, label(value, step, suffix)});
  }
  return ticks;
}

}  // namespace

std::vector<Tick> axis_ticks(double low, double high, int most) {
  check(std::isfinite(low) && std::isfinite(high) && low < high && std::isfinite(high - low),
        "axis: [{}, {}] is not a range", low, high);
  most = std::max(most, 2);
  return linear_ticks(low, high, most);
}

std::string short_number(double value) {
  for (const Suffix suffix : kSuffixes) {
    if (std::abs(value) >= 10 * suffix.unit && std::abs(value) < 1e12) {
      return fmt::format("{:.4g}{}", value / suffix.unit, suffix.name);
    }
  }
  return fmt::format("{:.4g}", value);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/size_text.h"

#include <fmt/core.h>

#include <array>
#include <cmath>

namespace fovea {

namespace {

constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

int decimals(double value) { return std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0; }

}  // namespace

std::string size_text(double bytes) {
  // A value that would round to 1024 is written as 1 of the next unit.
  constexpr double kNextUnit = 1023.5;
  if (!(std::abs(bytes) >= kNextUnit)) return fmt::format("{:.0f} B", bytes);
  double value = bytes / 1024;
  std::size_t unit = 0;
  for (; std::abs(value) >= kNextUnit && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, decimals(value), kUnits[unit]);
}

}  // namespace fovea

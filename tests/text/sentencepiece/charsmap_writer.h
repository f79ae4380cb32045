// SPDX-License-Identifier: Apache-2.0
// Writes the rules of a normalization as a double array (fovea/text/sentencepiece/normalizer.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

constexpr std::uint32_t kValue = std::uint32_t{1} << 31, kEndsRule = 1u << 8;

/// `offset`: below 2^21.
constexpr std::uint32_t unit(std::uint32_t offset, char label, bool ends = false) {
  return offset << 10 | (ends ? kEndsRule : 0) | static_cast<unsigned char>(label);
}

inline std::string little_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

inline std::string map_of(const std::vector<std::uint32_t>& units, std::string_view texts) {
  std::string bytes = little_endian(static_cast<std::uint32_t>(4 * units.size()));
  for (const std::uint32_t unit : units) bytes += little_endian(unit);
  return bytes.append(texts);
}

/// One rule. What follows its first n bytes stands from 256 (n + 1) on.
inline std::string map_of_rule(std::string_view rule, std::string_view replacement) {
  std::vector<std::uint32_t> units(256 * (rule.size() + 2), kValue);
  units[0] = unit(256, 0);
  std::uint32_t base = 256;
  for (std::size_t n = 0; n < rule.size(); ++n) {
    const std::uint32_t at = base ^ static_cast<unsigned char>(rule[n]);
    base += 256;
    units[at] = unit(at ^ base, rule[n], n + 1 == rule.size());
  }
  return map_of(units, std::string(replacement) + '\0');
}

}  // namespace fovea

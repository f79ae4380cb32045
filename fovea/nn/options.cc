// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/options.h"

#include <algorithm>
#include <vector>

#include "fovea/parts/part_table.h"

namespace fovea {

namespace {

constexpr auto kFirst = static_cast<std::size_t>(PositionKind::kFirstPart);

PositionKind kind_of_part(std::size_t number) { return static_cast<PositionKind>(kFirst + number); }

std::vector<EnumName<PositionKind>> position_names() {
  std::vector<EnumName<PositionKind>> names = {{PositionKind::kLearned, "learned"},
                                               {PositionKind::kSinusoidal, "sinusoidal"}};
  const auto parts = attention_parts();
  for (std::size_t n = 0; n < parts.size(); ++n) {
    if (!parts[n].position.empty()) names.push_back({kind_of_part(n), parts[n].position});
  }
  const auto year = [&](const EnumName<PositionKind>& name) {
    return part_of(name.value)->source.year;
  };
  std::stable_sort(names.begin() + 2, names.end(),
                   [&](const auto& a, const auto& b) { return year(a) > year(b); });
  names.push_back({PositionKind::kRotary, "rotary"});
  names.push_back({PositionKind::kNone, "none"});
  return names;
}

}  // namespace

std::span<const EnumName<PositionKind>> enum_names(PositionKind) {
  static const std::vector<EnumName<PositionKind>> names = position_names();
  return names;
}

const AttentionPart* part_of(PositionKind position) {
  const auto number = static_cast<std::size_t>(position);
  return number < kFirst ? nullptr : &attention_parts()[number - kFirst];
}

std::string_view part_tensor(PositionKind position) {
  const AttentionPart* const part = part_of(position);
  return part == nullptr ? std::string_view() : part->tensor;
}

bool learns_tensor(PositionKind position, std::string_view tensor) {
  const AttentionPart* const part = part_of(position);
  return part != nullptr && (part->tensor == tensor || part->and_tensor == tensor);
}

}  // namespace fovea

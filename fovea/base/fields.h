// SPDX-License-Identifier: Apache-2.0
// How a configuration lists its fields. The same list serves the command line, TOML, JSON, the help
// and comparisons.
//
// A configuration is a plain struct with a member
//
//   template <class Visitor> void visit_fields(Visitor&& visit) {
//     visit("layers", layers, "number of Transformer layers");
//     visit("activation", activation, "activation of the feed-forward network");
//   }
//
// Field types: bool, int, index (std::int64_t), std::uint64_t, float, double, std::string,
// std::vector<std::string>, enums that have names, and std::vector of index or of such enums:
//
//   inline constexpr EnumName<Activation> kActivationNames[] = {{Activation::kRelu, "relu"}, ...};
//   inline auto enum_names(Activation) { return std::span(kActivationNames); }
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "fovea/base/check.h"

namespace fovea {

template <class Enum>
struct EnumName {
  Enum value;
  std::string_view name;
};

template <class Enum>
std::string_view to_string(Enum value) requires std::is_enum_v<Enum> {
  for (const auto& [candidate, name] : enum_names(value)) {
    if (candidate == value) return name;
  }
  return "?";
}

/// The value called `name`. Throws kOptionValue, which lists the known names, if there is none.
template <class Enum>
Enum enum_from_name(std::string_view name) {
  std::string known;
  for (const auto& [value, candidate] : enum_names(Enum{})) {
    if (candidate == name) return value;
    known += known.empty() ? "" : ", ";
    known += candidate;
  }
  fail(ErrorCode::kOptionValue, "'{}' is not one of: {}", name, known);
}

}  // namespace fovea

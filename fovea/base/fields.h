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
//
// Other names that are read, but neither written nor listed, are in an enum_aliases of the same
// form.
#pragma once

#include <optional>
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

/// The value called `name`, if there is one.
template <class Enum>
std::optional<Enum> find_enum(std::string_view name) {
  for (const auto& [value, candidate] : enum_names(Enum{})) {
    if (candidate == name) return value;
  }
  if constexpr (requires { enum_aliases(Enum{}); }) {
    for (const auto& [value, candidate] : enum_aliases(Enum{})) {
      if (candidate == name) return value;
    }
  }
  return std::nullopt;
}

/// The value called `name`. Throws kOptionValue, which lists the known names, if there is none.
template <class Enum>
Enum enum_from_name(std::string_view name) {
  if (const std::optional<Enum> found = find_enum<Enum>(name)) return *found;
  std::string known;
  for (const auto& [value, candidate] : enum_names(Enum{})) {
    known += known.empty() ? "" : ", ";
    known += candidate;
  }
  fail(ErrorCode::kOptionValue, "'{}' is not one of: {}", name, known);
}

}  // namespace fovea

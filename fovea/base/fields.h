// SPDX-License-Identifier: Apache-2.0
// How a configuration lists its fields. The same list serves the command line, TOML, JSON, the help
// and comparisons.
//
// A configuration is a plain struct with a member
//
//   template <class Visitor> void visit_fields(Visitor&& visit) {
//     visit("layers", layers, "number of Transformer layers", {.range = ValueRange::from(1)});
//     visit("activation", activation, "activation of the feed-forward network");
//   }
//
// A field says there, in FieldTraits, all that a part of the program has to know about it, so that
// no part keeps a list of names of its own.
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

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "fovea/base/check.h"

namespace fovea {

/// The numbers that a field may be.
struct ValueRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above = false;          ///< least itself is not one of them
  bool below = false;          ///< most itself is not one of them
  std::string_view zero = {};  ///< what 0 means: "never"

  /// [least, most]
  static constexpr ValueRange from(double least, std::string_view zero = {}) {
    return {.least = least, .zero = zero};
  }
  static constexpr ValueRange in(double least, double most, std::string_view zero = {}) {
    return {.least = least, .most = most, .zero = zero};
  }
  /// (least, most]
  static constexpr ValueRange over(double least,
                                   double most = std::numeric_limits<double>::infinity()) {
    return {.least = least, .most = most, .above = true};
  }
  /// [0, 1)
  static constexpr ValueRange share(std::string_view zero = {}) {
    return {.least = 0, .most = 1, .below = true, .zero = zero};
  }
};

/// The need of a field, without which it has no effect: one of these fields with one of these
/// values. Names and values are separated by '|'; without values, any but "", 0, false and none.
struct FieldNeeds {
  std::string_view fields = {};
  std::string_view values = {};
};

/// Whether a run that is resumed may have another value.
enum class OnResume : unsigned char {
  kAsGroup,      ///< as the nested struct says that the field is in; else kQuiet
  kNo,           ///< no: the weights depend on it
  kUnlessSplit,  ///< no, where the run splits its data into training and validation
  kNoted,        ///< yes, and the user is told, because the next updates depend on it
  kBySchedule,   ///< yes; told where the schedule of the learning rate depends on the end
  kQuiet,        ///< yes: no update depends on it
};

/// Which options help shows first, in this order: those that most people set. The others stand
/// below, under headings.
enum class HelpPlace : unsigned char { kData, kOutput, kModel, kTraining, kResume, kBelow };

struct FieldTraits {
  ValueRange range = {};
  FieldNeeds needs = {};
  FieldNeeds also_needs = {};  // g++ 12 does not take lists of lists
  std::string_view part = {};  ///< of a model, on which alone it has an effect: "attention"
  OnResume resume = OnResume::kAsGroup;
  bool only_command_line = false;  ///< neither TOML nor the environment sets it
  bool is_option = true;           ///< no: the data or this version say what it is
  bool is_path = false;            ///< of a file, or of several
  HelpPlace place = HelpPlace::kBelow;
  std::string_view heading = {};     ///< below which help shows it; else that of its group
  std::string_view shown = {};       ///< in place of a value in the help: "N[,N...]"
  std::string (*names)() = nullptr;  ///< makes that of a text that is one of some names: "a|b"
  std::string_view bare = {};        ///< the value of the option alone, as --compat is all
  std::string_view also = {};        ///< another name: of an option, or of a table of TOML
};

/// The same visitor, for fields that help shows below this heading.
template <class Visitor>
auto under(std::string_view heading, Visitor& visit) {
  return [heading, &visit](std::string_view name, auto& value, std::string_view help,
                           FieldTraits traits = {}) {
    traits.heading = heading;
    visit(name, value, help, traits);
  };
}

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

/// The names of all values, "relu, gelu".
template <class Enum>
std::string names_of(std::string_view between) {
  std::string names;
  for (const auto& [value, name] : enum_names(Enum{})) {
    if (!names.empty()) names += between;
    names += name;
  }
  return names;
}

/// The value called `name`. Throws kOptionValue, which lists the known names, if there is none.
template <class Enum>
Enum enum_from_name(std::string_view name) {
  if (const std::optional<Enum> found = find_enum<Enum>(name)) return *found;
  fail(ErrorCode::kOptionValue, "'{}' is not one of: {}", name, names_of<Enum>(", "));
}

}  // namespace fovea

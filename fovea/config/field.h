// SPDX-License-Identifier: Apache-2.0
// The fields of any configuration struct, as JSON, TOML, the environment and the command line read
// and write them. See base/fields.h for how a struct lists its fields.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/base/types.h"

namespace fovea {

/// A field whose value is one of a few names: an enum.
struct Choice {
  std::vector<std::string> names;
  std::function<std::string()> get;
  /// Returns false, and sets nothing, for a text that is no name.
  std::function<bool(const std::string&)> set;
};

/// A field that is a std::vector of index or of an enum: as text its values with commas, "2,3". One
/// value alone is written as any value, so that a field may become one of these and read what was
/// written before.
struct Several {
  std::vector<std::string> names;  ///< of the enum; none: whole numbers
  std::function<std::vector<std::string>()> get;
  /// Returns false, and sets nothing, if there is no text or one is no such value.
  std::function<bool(const std::vector<std::string>&)> set;
};

using FieldTarget = std::variant<bool*, int*, index*, std::uint64_t*, float*, double*, std::string*,
                                 std::vector<std::string>*, Choice, Several>;

/// One field. It points into the configuration that it was made from, and must not outlive it.
struct Field {
  std::string name;  ///< "head_dim"; inside a nested struct "model.head_dim"
  std::string help;
  FieldTarget target;
  FieldTraits traits = {};           ///< with what its nested struct says for all its fields
  std::string_view table_also = {};  ///< another name of that struct

  /// "head_dim" of "model.head_dim", and "model"; "" for a field of no nested struct.
  std::string_view last_name() const { return std::string_view(name).substr(name.rfind('.') + 1); }
  std::string_view table() const;
};

/// The description of the field's valid values: "a whole number", "one of: relu, gelu", ...
std::string expected_value(const Field& field);

/// The value as text: numbers with the fewest digits that read back to the same value, lists with
/// commas.
std::string value_text(const Field& field);

/// Sets the field from texts: a list takes any number of them, other types take one ("2,3"). Throws
/// kOptionValue; its message begins with `called` (the name that the user knows: "--head-dim") and
/// says what is expected.
void set_from_text(Field& field, std::span<const std::string> texts, std::string_view called);
void set_from_text(Field& field, const std::string& text, std::string_view called);

/// Each sets the field to a value. Returns false if the field has another type or the value is out
/// of its range (not whole, negative, not finite).
bool set_number(Field& field, std::int64_t value);
bool set_number(Field& field, std::uint64_t value);
bool set_number(Field& field, double value);
bool set_bool(Field& field, bool value);
bool set_text(Field& field, const std::string& value);
bool set_list(Field& field, std::vector<std::string> values);

/// Throws kOptionValue for the first number that is out of its range: "--lr: 0 is not above 0".
void require_ranges(std::span<const Field> fields);

/// The need without which the field has no effect, as a user says it ("--tokenizer word"), if these
/// fields, among which it is, do not meet it; else "". A field that is not among them is no
/// obstacle.
std::string unmet_need(const Field& field, std::span<const Field> fields);

template <class T>
concept HasFields = requires(T& config) {
  config.visit_fields([](auto&&...) {});
};

namespace detail {

template <class T>
inline constexpr bool kIsSeveral = false;
template <class T>
inline constexpr bool kIsSeveral<std::vector<T>> = std::is_enum_v<T> || std::is_same_v<T, index>;

Several several_of(std::vector<index>& values);

template <class Enum>
Several several_of(std::vector<Enum>& values) {
  Several several;
  for (const auto& [candidate, name] : enum_names(Enum{})) several.names.emplace_back(name);
  several.get = [&values] {
    std::vector<std::string> texts;
    for (const Enum value : values) texts.emplace_back(to_string(value));
    return texts;
  };
  several.set = [&values](const std::vector<std::string>& texts) {
    std::vector<Enum> found;
    for (const std::string& text : texts) {
      const std::optional<Enum> value = find_enum<Enum>(text);
      if (!value) return false;
      found.push_back(*value);
    }
    if (found.empty()) return false;
    values = std::move(found);
    return true;
  };
  return several;
}

template <class T>
FieldTarget target_of(T& value) {
  if constexpr (kIsSeveral<T>) {
    return several_of(value);
  } else if constexpr (std::is_enum_v<T>) {
    Choice choice;
    for (const auto& [candidate, name] : enum_names(T{})) choice.names.emplace_back(name);
    choice.get = [&value] { return std::string(to_string(value)); };
    choice.set = [&value](const std::string& name) {
      const std::optional<T> found = find_enum<T>(name);
      if (found) value = *found;
      return found.has_value();
    };
    return choice;
  } else {
    return &value;
  }
}

}  // namespace detail

namespace detail {

/// The struct whose fields are listed.
struct FieldGroup {
  std::string path = {};
  FieldTraits traits = {};

  FieldGroup nested(std::string_view name, const FieldTraits& traits) const;
  void add(std::string_view name, std::string_view help, FieldTarget target,
           const FieldTraits& traits, std::vector<Field>& fields) const;
};

}  // namespace detail

/// Adds the fields of `config`, in their order; those of nested structs as "outer.inner".
template <HasFields Config>
void append_fields(Config& config, std::vector<Field>& fields,
                   const detail::FieldGroup& group = {}) {
  config.visit_fields([&]<class T>(std::string_view name, T& value, std::string_view help,
                                   const FieldTraits& traits = {}) {
    if constexpr (HasFields<T>) {
      append_fields(value, fields, group.nested(name, traits));
    } else {
      group.add(name, help, detail::target_of(value), traits, fields);
    }
  });
}

template <HasFields Config>
std::vector<Field> fields_of(Config& config) {
  std::vector<Field> fields;
  append_fields(config, fields);
  return fields;
}

/// Throws as require_ranges() for the fields of a configuration.
template <HasFields Config>
void check_ranges(Config config) {
  require_ranges(fields_of(config));
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Errors about the values of options. They name an option as the user types it.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/types.h"

namespace fovea {

/// "--head-dim" for the field "head_dim", or for "model.head_dim".
std::string option_name(std::string_view field);

/// Throws `code`: "--head-dim: -1 is not `rule`". Without a hint of its own, the hint names --help,
/// which says what the option is for.
[[noreturn]] void fail_option(std::string_view field, std::string_view value, std::string_view rule,
                              ErrorCode code = ErrorCode::kOptionValue, Hint hint = {});

/// Throws kOptionValue as above unless `ok` and the value is finite. `rule` is a format string.
template <class Number, class... Args>
void require_option(bool ok, Hint hint, std::string_view field, Number value,
                    fmt::format_string<Args...> rule, Args&&... args) {
  if (ok && std::isfinite(static_cast<double>(value))) return;
  fail_option(field, fmt::format("{}", value), fmt::format(rule, std::forward<Args>(args)...),
              ErrorCode::kOptionValue, hint);
}

template <class Number, class... Args>
void require_option(bool ok, std::string_view field, Number value, fmt::format_string<Args...> rule,
                    Args&&... args) {
  require_option(ok, Hint{}, field, value, rule, std::forward<Args>(args)...);
}

/// Throws kOptionValue: "--data: expected one of: blocks, lines; got 'words'".
[[noreturn]] void fail_choice(std::string_view field, std::string_view value,
                              std::string_view choices);

/// "3,-4" with ',' between the numbers; empty if the text is no list of whole numbers.
std::vector<index> parse_numbers(std::string_view text, char between);

/// The entry of a table whose member `name` equals `name`, or nullptr.
template <class Table>
auto find_named(const Table& table, std::string_view name) -> decltype(&*std::begin(table)) {
  for (const auto& entry : table) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

/// The names of a table's entries, as a list.
template <class Table>
std::string names_in(const Table& table, std::string_view separator = ", ") {
  std::string names;
  for (const auto& entry : table) {
    if (!names.empty()) names += separator;
    names += entry.name;
  }
  return names;
}

/// The entry called `name`. Calls fail_choice if there is none.
template <class Table>
const auto& choose(const Table& table, std::string_view name, std::string_view field) {
  const auto* entry = find_named(table, name);
  if (entry == nullptr) fail_choice(field, name, names_in(table));
  return *entry;
}

}  // namespace fovea

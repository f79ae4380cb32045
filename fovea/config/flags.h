// SPDX-License-Identifier: Apache-2.0
// Describes fields as command-line options and environment variables.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/field.h"

namespace fovea {

enum class FlagKind { kSwitch, kValue, kList };

struct Flag {
  std::string name;         ///< "head-dim", from head_dim or model.head_dim
  std::string environment;  ///< "FOVEA_HEAD_DIM"; "" where only the command line sets the field
  FlagKind kind = FlagKind::kValue;
  std::string placeholder;  ///< "N", "X", "TEXT", "relu|gelu", as the field says; "" for a switch
  std::string help;
  std::string default_text;          ///< the value that the field had when the flag was made
  std::vector<std::string> choices;  ///< empty unless the field is an enum
  Field field;

  /// An empty text is the option without a value, if that means something (FieldTraits::bare).
  /// Throws kOptionValue that begins with the option's name: "--head-dim: expected ...".
  void set(std::span<const std::string> values);
};

/// The environment variable of an option: "FOVEA_HEAD_DIM" for "head-dim".
std::string environment_name(std::string_view flag);

/// One flag for each field, in order. Throws kInternal if two fields give the same name.
std::vector<Flag> flags_of(std::span<const Field> fields);

/// Sets the fields whose environment variables are set (a list is separated by commas) and returns
/// their names. `lookup` is std::getenv, except in tests. Throws kOptionValue, which names the
/// variable.
std::vector<std::string> set_from_environment(
    std::span<Flag> flags, const std::function<const char*(const char* name)>& lookup);

}  // namespace fovea

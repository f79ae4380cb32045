// SPDX-License-Identifier: Apache-2.0
#include "fovea/config/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "fovea/base/check.h"

namespace fovea {

namespace {

std::string flag_name(const Field& field) {
  std::string name(field.last_name());
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

FlagKind kind_of(const Field& field) {
  if (std::holds_alternative<bool*>(field.target)) return FlagKind::kSwitch;
  if (std::holds_alternative<std::vector<std::string>*>(field.target)) return FlagKind::kList;
  return FlagKind::kValue;
}

std::string placeholder_of(const Field& field) {
  const FieldTraits& traits = field.traits;
  if (!traits.shown.empty()) return std::string(traits.shown);
  if (traits.names != nullptr) return traits.names();
  if (traits.is_path) return "FILE";
  if (const auto* choice = std::get_if<Choice>(&field.target)) {
    const std::string names = fmt::format("{}", fmt::join(choice->names, "|"));
    return traits.bare.empty() ? names : "[=" + names + "]";
  }
  if (const auto* several = std::get_if<Several>(&field.target)) {
    return several->names.empty() ? "N" : fmt::format("{}", fmt::join(several->names, "|"));
  }
  if (std::holds_alternative<bool*>(field.target)) return "";
  if (std::holds_alternative<double*>(field.target)) return "X";
  if (std::holds_alternative<float*>(field.target)) return "X";
  if (std::holds_alternative<std::string*>(field.target)) return "TEXT";
  if (std::holds_alternative<std::vector<std::string>*>(field.target)) return "TEXT...";
  return "N";
}

Flag flag_of(const Field& field) {
  const auto* choice = std::get_if<Choice>(&field.target);
  const std::string name = flag_name(field);
  return {.name = name,
          .environment = field.traits.only_command_line ? "" : environment_name(name),
          .kind = kind_of(field),
          .placeholder = placeholder_of(field),
          .help = field.help,
          .default_text = value_text(field),
          .choices = choice ? choice->names : std::vector<std::string>{},
          .field = field};
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

}  // namespace

std::string environment_name(std::string_view flag) {
  std::string name = "FOVEA_";
  for (const char c : flag) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

void Flag::set(std::span<const std::string> values) {
  const std::string bare(field.traits.bare);
  const bool is_bare = !bare.empty() && values.size() == 1 && values[0].empty();
  set_from_text(field, is_bare ? std::span(&bare, 1) : values, "--" + name);
}

std::vector<Flag> flags_of(std::span<const Field> fields) {
  std::vector<Flag> flags;
  for (const Field& field : fields) {
    Flag flag = flag_of(field);
    for (const Flag& other : flags) {
      if (other.name == flag.name) {
        fail(ErrorCode::kInternal, "two fields are called --{}: {} and {}", flag.name,
             other.field.name, field.name);
      }
    }
    flags.push_back(std::move(flag));
  }
  return flags;
}

std::vector<std::string> set_from_environment(
    std::span<Flag> flags, const std::function<const char*(const char* name)>& lookup) {
  std::vector<std::string> names;
  for (Flag& flag : flags) {
    const char* text = flag.environment.empty() ? nullptr : lookup(flag.environment.c_str());
    if (text == nullptr) continue;
    const bool list = flag.kind == FlagKind::kList;
    const auto values = list ? split_at_commas(text) : std::vector<std::string>{text};
    set_from_text(flag.field, values, flag.environment);
    names.push_back(flag.field.name);
  }
  return names;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "cli/field_options.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cli/output.h"
#include "fovea/config/suggest.h"

namespace fovea::cli {

namespace {

OptionKind kind_of(const Flag& flag) {
  switch (flag.kind) {
    case FlagKind::kSwitch:
      return OptionKind::kSwitch;
    case FlagKind::kList:
      return OptionKind::kList;
    case FlagKind::kValue:
      break;
  }
  return flag.field.traits.bare.empty() ? OptionKind::kValue : OptionKind::kOptionalValue;
}

// The heading below which help shows the option.
std::string heading_of(const FieldTraits& traits, std::string_view group) {
  if (traits.place != HelpPlace::kBelow) return OptionSpec().group;
  return std::string(traits.heading.empty() ? group : traits.heading);
}

}  // namespace

std::vector<Field> settable(std::vector<Field> fields) {
  std::erase_if(fields, [](const Field& field) { return !field.traits.is_option; });
  return fields;
}

std::vector<OptionSpec> options_of(std::span<const Flag> flags, std::string_view group) {
  std::vector<OptionSpec> options;
  for (const Flag& flag : flags) {
    options.push_back({.name = flag.name,
                       .kind = kind_of(flag),
                       .placeholder = flag.kind == FlagKind::kList ? "FILE" : flag.placeholder,
                       .help = flag.default_text.empty()
                                   ? flag.help
                                   : fmt::format("{} [{}]", flag.help, flag.default_text),
                       .group = heading_of(flag.field.traits, group),
                       .also = std::string(flag.field.traits.also),
                       .environment = flag.environment,
                       .place = flag.field.traits.place});
  }
  return options;
}

std::vector<OptionSpec> said_or_not(std::vector<OptionSpec> options) {
  constexpr std::string_view kDefault = " [false]";
  for (OptionSpec& option : options) {
    if (option.kind != OptionKind::kSwitch) continue;
    option.kind = OptionKind::kFlag;
    option.help.erase(option.help.size() - kDefault.size());
  }
  return options;
}

void warn_of_unread_variables(std::span<const OptionSpec> options) {
  constexpr std::string_view kPrefix = "FOVEA_";
  std::vector<std::string> read = {"ISA"};
  for (const OptionSpec& option : options) {
    if (!option.environment.empty()) read.push_back(option.environment.substr(kPrefix.size()));
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const std::string name(variable.substr(0, variable.find('=')));
    if (!name.starts_with(kPrefix)) continue;
    const std::string rest = name.substr(kPrefix.size()), meant = closest(rest, read);
    if (meant == rest) continue;
    const auto option = std::find_if(options.begin(), options.end(), [&](const OptionSpec& spec) {
      return environment_name(spec.name) == name;
    });
    if (option != options.end()) {
      warn(fmt::format("the environment variable {} is not read; say --{}", name, option->name));
    } else if (!meant.empty()) {
      warn(fmt::format("the environment variable {} is not read; did you mean {}{}?", name, kPrefix,
                       meant));
    }
  }
}

std::vector<std::string> set_from_outside(std::vector<Flag> flags, const Arguments& arguments) {
  std::vector<std::string> set = set_from_environment(flags, [](const char* name) -> const char* {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
  });
  for (Flag& flag : flags) {
    if (!arguments.has(flag.name)) continue;
    const std::string_view bare = flag.field.traits.bare;
    const bool is_bare = !bare.empty() && arguments.text(flag.name).empty();
    flag.set(is_bare ? std::vector{std::string(bare)} : arguments.list(flag.name));
    set.push_back(flag.field.name);
  }
  for (const Flag& flag : flags) {
    if (std::find(set.begin(), set.end(), flag.field.name) == set.end()) continue;
    require_ranges({&flag.field, 1});
  }
  return set;
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/completion_words.h"

namespace fovea::cli {

namespace {

constexpr std::string_view kZshHead = R"sh(#compdef fovea
# Completion of fovea for zsh, made by: fovea completion zsh

_fovea() {
  local command=${words[2]}
  local -a found
  if ((CURRENT == 2)); then
    found=(
)sh";

constexpr std::string_view kZshMiddle = R"sh(    )
    _describe -t commands 'command of fovea' found
    _arguments '--help[what the commands are]' '--version[the version]'
    return
  fi
  integer taken=1
  case $command in
)sh";

constexpr std::string_view kZshBelow = R"sh(  esac
  if (($#found)); then
    if ((CURRENT == 3)); then
      _describe -t commands "command of fovea $command" found
      return
    fi
    command+=" ${words[3]}" taken=2
  fi
  shift $taken words
  ((CURRENT -= taken))
  case $command in
)sh";

constexpr std::string_view kZshTail = R"sh(  esac
}

# Autoloaded from a folder in fpath it is the function itself; sourced, it makes it known.
if [[ ${funcstack[1]-} == _fovea ]]; then
  _fovea "$@"
else
  compdef _fovea fovea
fi
)sh";

// ":FILE:_files", as _arguments reads it.
std::string zsh_value(std::string_view message, const ValueWords& value) {
  std::string action = " ";
  if (value.files) action = "_files";
  if (value.folders) action = "_files -/";
  if (!value.words.empty() && !value.files && !value.folders) {
    action = fmt::format("({})", fmt::join(value.words, " "));
  }
  return fmt::format(":{}:{}", escaped(message, ":\\", "\\"), action);
}

// The equals sign or none behind the name, then "[help]" and the value.
std::string zsh_takes(const CommandSpec& command, const OptionSpec& option,
                      std::string_view spelling) {
  const bool is_long = spelling.substr(0, 2) == "--";
  const std::string help = fmt::format("[{}]", escaped(option.help, "[]:\\", "\\"));
  const std::string value = zsh_value(option.placeholder, value_words(option.placeholder));
  const std::string sign = is_long ? "=" : "+";
  switch (option.kind) {
    case OptionKind::kFlag:
      return help;
    case OptionKind::kSwitch:
      return spelling.substr(0, 5) == "--no-" ? help : "=-" + help + "::bool:(true false)";
    case OptionKind::kList:
    case OptionKind::kValue:
      return sign + help + value;
    case OptionKind::kOptionalValue:
      break;
  }
  return (needs_equals(command, option) ? "=-" : "=") + help + ":" + value;
}

std::string zsh_arguments(const CommandSpec& command) {
  std::string text = fmt::format("    '{}')\n      _arguments -S", command.name);
  for (const OptionSpec& option : options_with_help(command)) {
    const std::vector<std::string> names = spellings(option);
    // An option that was given is not offered again, nor is another spelling of it.
    const std::string others = names.size() < 2 || option.kind == OptionKind::kList
                                   ? ""
                                   : fmt::format("({})", fmt::join(names, " "));
    for (const std::string& name : names) {
      const std::string many = option.kind == OptionKind::kList ? "*" : "";
      text += " \\\n        " + in_quotes(others + many + name + zsh_takes(command, option, name));
    }
  }
  // _arguments would end a list only behind the next option: its further values stand as arguments.
  ValueWords further;
  std::string name;
  for (const OptionSpec& option : command.options) {
    if (option.kind != OptionKind::kList) continue;
    name = option.placeholder;
    further = value_words(name);
  }
  for (const PositionalSpec& positional : command.positionals) {
    if (positional.is_list) {
      if (name.empty()) further = value_words(positional);
      name = positional.name;
      continue;
    }
    text += " \\\n        " + in_quotes((positional.required ? "" : ":") +
                                        zsh_value(positional.name, value_words(positional)));
  }
  if (!name.empty()) text += " \\\n        " + in_quotes("*" + zsh_value(name, further));
  return text + " ;;\n";
}

std::string zsh_described(std::string_view word, std::string_view summary) {
  return in_quotes(fmt::format("{}:{}", word, escaped(summary, ":\\", "\\")));
}

}  // namespace

std::string zsh_completion(std::span<const CommandSpec> commands) {
  std::string text(kZshHead), below;
  for (const FirstWord& word : first_words(commands)) {
    text += fmt::format("      {}\n", zsh_described(word.word, word.summary));
    if (word.below.empty()) continue;
    below += fmt::format("    {}) found=(", word.word);
    for (const CommandSpec* command : word.below) {
      below += " " + zsh_described(second_word(*command), command->summary);
    }
    below += " ) ;;\n";
  }
  text += std::string(kZshMiddle) + below + std::string(kZshBelow);
  for (const CommandSpec& command : commands) text += zsh_arguments(command);
  return text + std::string(kZshTail);
}

}  // namespace fovea::cli

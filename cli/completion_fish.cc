// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "cli/completion_words.h"

namespace fovea::cli {

namespace {

constexpr std::string_view kFishHead =
    R"sh(# Completion of fovea for fish, made by: fovea completion fish

# Whether the words before the one that is typed are `fovea` and $argv.
function __fovea_at
    set -l words (commandline -opc)
    test "$words[2..-1]" = "$argv"
end

# Whether the words of the command $argv are typed already.
function __fovea_in
    set -l words (commandline -opc)
    set -l last (math (count $argv) + 1)
    test (count $words) -ge $last; and test "$words[2..$last]" = "$argv"
end

complete -c fovea -f
complete -c fovea -n __fovea_at -l help -s h -d 'what the commands are'
complete -c fovea -n __fovea_at -l version -d 'the version'
)sh";

// In fish a backslash counts inside quotes, too.
std::string fish_quoted(std::string_view text) { return in_quotes(escaped(text, "\\", "\\")); }

// The offered words, in an option of their own: -F would offer files behind other options as well.
std::string fish_words(const ValueWords& value) {
  if (value.files) return " -a '(__fish_complete_path (commandline -ct))'";
  if (value.folders) return " -a '(__fish_complete_directories (commandline -ct))'";
  if (value.words.empty()) return "";
  return fmt::format(" -a '{}'", fmt::join(value.words, " "));
}

std::string fish_option(const std::string& begin, const OptionSpec& option) {
  const ValueWords value = value_words(option.placeholder);
  const bool needs_value = option.kind == OptionKind::kValue || option.kind == OptionKind::kList;
  std::string takes = needs_value ? " -x" + fish_words(value) : fish_words(value);
  if (value.files) takes = needs_value ? " -r -F" : " -F";
  std::string text;
  for (const std::string& name : spellings(option)) {
    const bool is_long = name.substr(0, 2) == "--";
    const bool is_switch = option.kind == OptionKind::kSwitch && name == "--" + option.name;
    text +=
        fmt::format("{} -{} {}{} -d {}\n", begin, is_long ? 'l' : 's', name.substr(is_long ? 2 : 1),
                    is_switch ? " -a 'true false'" : takes, fish_quoted(option.help));
  }
  return text;
}

std::string fish_command(const CommandSpec& command) {
  const std::string begin = fmt::format("complete -c fovea -n '__fovea_in {}'", command.name);
  std::string text;
  std::vector<std::string> offered;  // each once
  const auto offer = [&](const ValueWords& value) {
    const std::string words = fish_words(value);
    if (words.empty() || std::count(offered.begin(), offered.end(), words) > 0) return;
    offered.push_back(words);
    text += begin + words + "\n";
  };
  for (const OptionSpec& option : options_with_help(command)) {
    text += fish_option(begin, option);
    // Fish cannot tell the further values of a list from arguments.
    if (option.kind == OptionKind::kList) offer(value_words(option.placeholder));
  }
  for (const PositionalSpec& positional : command.positionals) offer(value_words(positional));
  return text;
}

}  // namespace

std::string fish_completion(std::span<const CommandSpec> commands) {
  std::string text(kFishHead);
  const auto describe = [&](const std::string& at, const std::string& word,
                            const std::string& summary) {
    text += fmt::format("complete -c fovea -n '__fovea_at{}' -a {} -d {}\n", at, word,
                        fish_quoted(summary));
  };
  for (const FirstWord& word : first_words(commands)) {
    describe("", word.word, word.summary);
    for (const CommandSpec* command : word.below) {
      describe(" " + word.word, second_word(*command), command->summary);
    }
  }
  for (const CommandSpec& command : commands) text += fish_command(command);
  return text;
}

}  // namespace fovea::cli

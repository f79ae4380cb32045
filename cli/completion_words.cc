// SPDX-License-Identifier: Apache-2.0
#include "cli/completion_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"

namespace fovea::cli {

namespace {

// The parts of `text` between characters of `separators`, without empty ones.
std::vector<std::string> parts_of(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Capitals name a kind of value (N, FILE); anything else is typed as it stands.
bool is_typed(const std::string& word) {
  return word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+-_.") == std::string::npos;
}

}  // namespace

ValueWords value_words(std::string_view placeholder) {
  constexpr std::string_view kFiles[] = {"FILE", "PATH", "IN", "OUT", "MODEL"};
  ValueWords value;
  if (placeholder.find(", ") != std::string_view::npos) return value;  // a list is typed by hand
  if (placeholder.substr(0, 2) == "[=") placeholder = placeholder.substr(2, placeholder.size() - 3);
  for (const std::string& part : parts_of(placeholder, "|; ")) {
    if (is_typed(part)) {
      const bool seen = std::count(value.words.begin(), value.words.end(), part) > 0;
      if (!seen) value.words.push_back(part);
    } else if (part == "DIR") {
      value.folders = true;
    } else if (std::count(std::begin(kFiles), std::end(kFiles), part) > 0) {
      value.files = true;
    }
  }
  value.folders = value.folders && !value.files;
  return value;
}

ValueWords value_words(const PositionalSpec& positional) {
  if (positional.name == "COMMAND") {
    std::string words;
    for (const CommandSpec& command : command_specs()) words += command.name + " ";
    return value_words(words);
  }
  return value_words(positional.choices.empty() ? positional.name : positional.choices);
}

std::vector<std::string> spellings(const OptionSpec& option) {
  std::vector<std::string> names = {"--" + option.name};
  if (option.also.size() == 1) names.insert(names.begin(), "-" + option.also);
  if (option.also.size() > 1) names.push_back("--" + option.also);
  if (option.kind == OptionKind::kSwitch) names.push_back("--no-" + option.name);
  return names;
}

std::vector<OptionSpec> options_with_help(const CommandSpec& command) {
  std::vector<OptionSpec> options = {help_option()};
  options.insert(options.end(), command.options.begin(), command.options.end());
  return options;
}

bool needs_equals(const CommandSpec& command, const OptionSpec& option) {
  return option.kind == OptionKind::kOptionalValue && !command.positionals.empty();
}

std::string second_word(const CommandSpec& command) {
  const std::size_t space = command.name.find(' ');
  return space == std::string::npos ? "" : command.name.substr(space + 1);
}

std::vector<FirstWord> first_words(std::span<const CommandSpec> commands) {
  std::vector<FirstWord> words;
  for (const CommandSpec& command : commands) {
    const std::string word = command.name.substr(0, command.name.find(' '));
    auto found = std::find_if(words.begin(), words.end(),
                              [&](const FirstWord& known) { return known.word == word; });
    if (found == words.end()) found = words.insert(found, {word, command.summary, {}});
    if (second_word(command).empty()) continue;
    found->below.push_back(&command);
    std::vector<std::string> seconds;
    for (const CommandSpec* below : found->below) seconds.push_back(second_word(*below));
    found->summary = fmt::format("{}", fmt::join(seconds, ", "));
  }
  return words;
}

std::string escaped(std::string_view text, std::string_view characters, std::string_view mark) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) != std::string_view::npos) result += mark;
    result += c;
  }
  return result;
}

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace fovea::cli

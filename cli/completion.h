// SPDX-License-Identifier: Apache-2.0
// fovea completion: a script by which a shell completes commands, options and values.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"

namespace fovea::cli {

/// The possible values.
struct ValueWords {
  bool files = false;
  bool folders = false;            ///< and no files
  std::vector<std::string> words;  ///< a fixed set, or what may stand instead of a number
};

/// The values of a placeholder: the words of "adamw|sgd", files for FILE, folders for DIR.
ValueWords value_words(std::string_view placeholder);
/// COMMAND stands for the words of all commands.
ValueWords value_words(const PositionalSpec& positional);

/// The spellings of an option as they are typed: "-o", "--output". A switch has "--no-x", too.
std::vector<std::string> spellings(const OptionSpec& option);

/// The options of a command, --help in front.
std::vector<OptionSpec> options_with_help(const Command& command);

/// Whether its value may stand only behind an equals sign: --causal=top-left.
bool needs_equals(const Command& command, const OptionSpec& option);

/// First words of commands, each once: "train" stands for all that begin with it.
struct FirstWord {
  std::string word, summary;
  std::vector<const Command*> below;  ///< those with a second word
};
std::vector<FirstWord> first_words(std::span<const Command> commands);
/// "lm" of "train lm"; "" if there is no second word.
std::string second_word(const Command& command);

/// `text` with each character of `characters` behind `mark`.
std::string escaped(std::string_view text, std::string_view characters, std::string_view mark);
/// 'text', as every shell reads it.
std::string in_quotes(std::string_view text);

std::string bash_completion(std::span<const Command> commands);
std::string zsh_completion(std::span<const Command> commands);
std::string fish_completion(std::span<const Command> commands);

}  // namespace fovea::cli

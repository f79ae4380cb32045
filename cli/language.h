// SPDX-License-Identifier: Apache-2.0
// The language in which the command speaks to people: help, errors and hints, warnings, notes,
// progress, pages. It is chosen once, before a command runs. Results, JSON and files stay as they
// are.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "fovea/report/html.h"
#include "fovea/report/terminal.h"

namespace fovea::cli {

/// Chooses the language: of --lang among the words of the command line, else FOVEA_LANG, else that
/// of LC_ALL, LC_MESSAGES or LANG, the first that is set: Chinese if it begins with zh and the
/// terminal shows UTF-8. Throws kOptionValue for a language that is not known.
void choose_language(std::span<const std::string> words, const Environment& environment);
void choose_language(std::span<const std::string> words);

/// The language that was chosen; English before.
PageLanguage language();

/// The text in that language: itself, or Chinese.
std::string in_language(std::string_view english);

/// The colon behind a heading or a label: ":", or the full-width one, which needs no blank.
std::string_view colon_of_language();

/// --lang, which every command has.
OptionSpec language_option();
/// The command with --lang, and with its help in that language.
Command in_language(Command command);

}  // namespace fovea::cli

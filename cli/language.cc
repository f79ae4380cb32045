// SPDX-License-Identifier: Apache-2.0
#include "cli/language.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "cli/output.h"
#include "fovea/base/words.h"
#include "fovea/catalogue/catalogue.h"

namespace fovea::cli {

namespace {

constexpr std::string_view kOption = "--lang";
constexpr std::string_view kVariable = "FOVEA_LANG";

// Read while there is no memory for a message, too.
constinit PageLanguage chosen = PageLanguage::kEnglish;

PageLanguage named(std::string_view called, std::string_view name) {
  if (const std::optional<PageLanguage> found = find_enum<PageLanguage>(name)) return *found;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{}: expected one of: {}; got {}", called, names_of<PageLanguage>(", "),
                          printable(name)),
              "en: English, zh: Chinese");
}

// The last value of --lang, as the parser of options takes it.
std::optional<std::string> said(std::span<const std::string> words) {
  std::optional<std::string> value;
  for (std::size_t n = 0; n < words.size() && words[n] != "--"; ++n) {
    if (words[n] == kOption && n + 1 < words.size()) value = words[n + 1];
    if (words[n].starts_with(std::string(kOption) + "="))
      value = words[n].substr(kOption.size() + 1);
  }
  return value;
}

bool speaks_chinese(const Environment& environment) {
  for (const char* variable : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const char* locale = environment(variable);
    if (locale == nullptr || *locale == '\0') continue;
    return std::string_view(locale).starts_with("zh") &&
           inspect_terminal(STDERR_FILENO, environment).unicode;
  }
  return false;
}

}  // namespace

void choose_language(std::span<const std::string> words, const Environment& environment) {
  const char* variable = environment(kVariable.data());
  if (const std::optional<std::string> name = said(words)) {
    chosen = named(kOption, *name);
  } else if (variable != nullptr && *variable != '\0') {
    chosen = named(kVariable, variable);
  } else {
    chosen = speaks_chinese(environment) ? PageLanguage::kChinese : PageLanguage::kEnglish;
  }
}

void choose_language(std::span<const std::string> words) {
  choose_language(words, [](const char* name) { return std::getenv(name); });
}

PageLanguage language() { return chosen; }

std::string in_language(std::string_view english) {
  return chosen == PageLanguage::kChinese ? in_chinese(english) : std::string(english);
}

std::string_view colon_of_language() { return chosen == PageLanguage::kChinese ? "：" : ":"; }

OptionSpec language_option() {
  return {.name = "lang",
          .placeholder = "en|zh",
          .help =
              "language of help, messages and pages; without it that of FOVEA_LANG, or of the "
              "locale",
          .group = "Messages",
          .environment = std::string(kVariable)};
}

Command in_language(Command command) {
  std::vector<OptionSpec>& options = command.options;
  std::erase_if(options, [](const OptionSpec& option) { return option.name == "lang"; });
  const auto color = std::ranges::find(options, "color", &OptionSpec::name);
  options.insert(color == options.end() ? color : color + 1, language_option());
  if (chosen == PageLanguage::kEnglish) return command;
  command.summary = in_chinese(command.summary);
  command.epilog = epilog_in_chinese(command.epilog);
  for (PositionalSpec& positional : command.positionals) {
    positional.help = in_chinese(positional.help);
  }
  for (OptionSpec& option : options) {
    option.help = in_chinese(option.help);
    option.group = in_chinese(option.group);
  }
  return command;
}

}  // namespace fovea::cli

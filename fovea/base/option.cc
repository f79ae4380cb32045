// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/option.h"

#include <algorithm>
#include <charconv>

#include "fovea/base/words.h"

namespace fovea {

std::string option_name(std::string_view field) {
  std::string name(field.substr(field.rfind('.') + 1));  // npos + 1 is 0
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

void fail_option(std::string_view field, std::string_view value, std::string_view rule,
                 ErrorCode code, Hint hint) {
  const std::string option = option_name(field);
  throw Error(code, fmt::format("{}: {} is not {}", option, value, rule),
              hint.text.empty() ? fmt::format("--help says what {} is for, and what it is if left "
                                              "out",
                                              option)
                                : std::string(hint.text));
}

std::vector<index> parse_numbers(std::string_view text, char between) {
  std::vector<index> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data();; ++at) {
    const auto [stopped, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc()) return {};
    if (stopped == end) return numbers;
    if (*stopped != between) return {};
    at = stopped;
  }
}

void fail_choice(std::string_view field, std::string_view value, std::string_view choices) {
  const std::string option = option_name(field);
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{}: expected one of: {}; got {}", option, choices, printable(value)),
              fmt::format("see --help for what {} takes", option));
}

}  // namespace fovea

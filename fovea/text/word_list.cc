// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/word_list.h"

#include <algorithm>

#include "fovea/base/check.h"
#include "fovea/base/printable.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

std::string hint_for(std::string_view line) {
  if (line.starts_with("\xEF\xBB\xBF")) {
    return "remove the byte order mark at the start of the file";
  }
  if (line.ends_with('\r')) return "end lines with \\n alone, without \\r before it";
  return "a vocabulary has a word a line, as in the vocab.txt of a model: <pad>, <unk>, with "
         "--marks <s> and </s>, then the words";
}

[[noreturn]] void fail_line(std::string_view name, index line, std::string_view expected,
                            std::string_view got) {
  throw Error(ErrorCode::kInputFormat,
              fmt::format("{}:{}: expected {}, got {}", name, line, expected, printable(got)),
              hint_for(got));
}

}  // namespace

std::string word_list_text(const TokenizerData& data) {
  std::string text;
  for (const std::string_view word : special_words(data.marks)) text += fmt::format("{}\n", word);
  for (const CountedWord& word : data.words) text += word.word + '\n';
  return text;
}

std::vector<std::string> words_of_list(std::string_view text, std::string_view name, bool marks) {
  require_utf8(text, name);
  const auto special = special_words(marks);
  std::vector<std::string> words;
  KeyedSet<std::string_view> seen;  // parts of the text
  for (index number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto id = static_cast<std::size_t>(number - 1);
    if (id < special.size()) {
      if (line != special[id]) fail_line(name, number, special[id], line);
      continue;
    }
    if (!is_one_word(line)) fail_line(name, number, "one word", line);
    if (is_special_word(line, marks) || !seen.insert(line).second) {
      fail_line(name, number, "a word that is not listed yet", line);
    }
    words.emplace_back(line);
  }
  if (words.empty()) {
    throw Error(
        ErrorCode::kInputFormat,
        fmt::format("{}:{}: expected a word, got the end of the file", name, special.size() + 1),
        hint_for(""));
  }
  return words;
}

}  // namespace fovea

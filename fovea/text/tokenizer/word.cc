// SPDX-License-Identifier: Apache-2.0
// One token a word of the training text; any other word is the unknown one.
#include <algorithm>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/tokenizer.h"
#include "fovea/text/utf8.h"
#include "fovea/text/vocabulary.h"
#include "fovea/text/words.h"

namespace fovea {

namespace {

LetterCase letters_of(bool lower) { return lower ? LetterCase::kLower : LetterCase::kKept; }

// Whether valid UTF-8 is one word, and nothing else.
bool is_one_word(std::string_view text, WordSplit split) {
  std::string_view rest = text;
  return !text.empty() && take_word(rest, split) == text;
}

class WordTokenizer final : public Tokenizer {
 public:
  explicit WordTokenizer(const TokenizerData& data)
      : data_(data),
        first_(static_cast<token>(special_words(data.marks).size())),
        ids_(data_.words.size()) {
    token id = first_;
    for (const auto& [word, count] : data_.words) {
      const bool is_word = !find_invalid_utf8(word) && is_one_word(word, data_.split) &&
                           !is_special_word(word, data_.marks) && count >= 0;
      if (!is_word || !ids_.add(word, id++)) {
        fail(ErrorCode::kModelDamaged, "word tokenizer: {} is listed twice or no word",
             printable(word));
      }
    }
  }

  TokenizerData data() const override { return data_; }
  index vocabulary_size() const override { return first_ + static_cast<index>(data_.words.size()); }
  SpecialTokens special() const override {
    return {.begin = data_.marks ? kBeginWord : kNoToken,
            .end = data_.marks ? kEndWord : kNoToken,
            .unknown = kUnknownWord};
  }
  std::string_view separator() const override { return " "; }

  index token_count(std::string_view text) const override { return count_words(text, data_.split); }

  void append_tokens(std::vector<token>& ids, std::string_view text,
                     std::string_view name) const override {
    require_utf8(text, name);
    std::string lower;
    for (std::string_view word = take_word(text, data_.split); !word.empty();
         word = take_word(text, data_.split)) {
      if (data_.lower) {
        lower.clear();
        append_lower(lower, word);
        word = lower;
      }
      const token found = ids_.find(word);
      ids.push_back(found == kNoToken ? kUnknownWord : found);
    }
  }

  bool occurs_in_learned_text(token id) const override {
    if (id == kUnknownWord) return data_.unknown > 0;
    return id >= first_ && data_.words[static_cast<std::size_t>(id - first_)].count > 0;
  }

 private:
  void append_known(std::string& out, token id) const override {
    if (id >= first_) {
      out += data_.words[static_cast<std::size_t>(id - first_)].word;
    } else if (id == kUnknownWord) {
      out += kSpecialWords[kUnknownWord];
    }
  }

  const TokenizerData data_;
  const token first_;  // the id of the first word
  WordTable ids_;      // of parts of data_
};

// The words of a list that was given, with their counts in the text; 0 where it has them not.
std::vector<CountedWord> count_listed(const std::vector<CountedWord>& found,
                                      std::span<const std::string> listed) {
  KeyedMap<std::string_view, index> counts;
  for (const auto& [word, count] : found) counts.emplace(word, count);
  std::vector<CountedWord> words;
  words.reserve(listed.size());
  for (const std::string& word : listed) {
    const auto at = counts.find(word);
    words.push_back({word, at == counts.end() ? 0 : at->second});
  }
  return words;
}

index occurrences(const std::vector<CountedWord>& words) {
  index sum = 0;
  for (const CountedWord& word : words) sum += word.count;
  return sum;
}

}  // namespace

TokenizerData learn_words(std::string_view text, std::string_view name,
                          const LearnOptions& options) {
  std::vector<CountedWord> found =
      distinct_words(text, name, letters_of(options.lower), options.split);
  const index all = occurrences(found);
  TokenizerData data{.kind = std::string(kWordKind), .lower = options.lower};
  data.marks = options.marks;
  data.split = options.split;
  if (options.words.empty()) {
    std::erase_if(
        found, [&](const CountedWord& word) { return is_special_word(word.word, options.marks); });
    data.words = frequent_words(std::move(found), options.min_count);
  } else {
    data.words = count_listed(found, options.words);
  }
  const index known = occurrences(data.words);
  data.unknown = all - known;
  if (known == 0 && all > 0 && !options.words.empty()) {
    throw Error(ErrorCode::kInputTooSmall,
                fmt::format("the {} has none of the words of the vocabulary", name),
                "give a vocabulary of this text; with --lower its words are in lower case");
  }
  if (known == 0) {
    throw Error(ErrorCode::kInputTooSmall,
                all == 0 ? fmt::format("{} has no words", name)
                         : fmt::format("{} is too small: none of its {} words occurs {} times",
                                       name, all, options.min_count),
                "give more text, or a smaller --min-count");
  }
  return data;
}

std::unique_ptr<Tokenizer> make_word_tokenizer(const TokenizerData& data) {
  if (!data.characters.empty()) {
    fail(ErrorCode::kModelDamaged, "a word tokenizer has no characters; this one lists {}",
         data.characters.size());
  }
  return std::make_unique<WordTokenizer>(data);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// One token a character of the training text; any other character is spelled in bytes.

#include <algorithm>

#include "fovea/base/check.h"
#include "fovea/text/tokenizer.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"

namespace fovea {

namespace {

class CharTokenizer final : public Tokenizer {
 public:
  explicit CharTokenizer(const TokenizerData& data) : data_(data) {
    token id = kFirstLearnedToken;
    for (const char32_t c : data_.characters) {
      const bool fits = is_scalar_value(c) && (c >= ids_.size() || ids_[c] == 0);
      if (!fits) {
        fail(ErrorCode::kModelDamaged, "char tokenizer: U+{:04X} is listed twice or no character",
             static_cast<std::uint32_t>(c));
      }
      if (c >= ids_.size()) ids_.resize(c + 1, 0);
      ids_[c] = id++;
    }
  }

  TokenizerData data() const override { return data_; }
  index vocabulary_size() const override {
    return kFirstLearnedToken + static_cast<index>(data_.characters.size());
  }
  SpecialTokens special() const override { return marks_before_bytes(data_); }

  index token_count(std::string_view text) const override { return count_characters(text); }

  void append_tokens(std::vector<token>& ids, std::string_view text,
                     std::string_view name) const override {
    require_utf8(text, name);
    while (!text.empty()) {
      const TakenCharacter c = take_character(text);
      const char32_t value = data_.lower ? lower_character(c.value) : c.value;
      const token id = value < ids_.size() ? ids_[value] : 0;
      if (id != 0) {
        ids.push_back(id);
      } else {
        append_spelled(ids, value);
      }
    }
  }

  // Every character of that text is in the vocabulary, so none of it was spelled in bytes.
  bool occurs_in_learned_text(token id) const override { return id >= kFirstLearnedToken; }

 private:
  static void append_spelled(std::vector<token>& ids, char32_t c) {
    std::string bytes;
    append_utf8(bytes, c);
    for (const char byte : bytes) ids.push_back(byte_token(byte));
  }

  void append_known(std::string& out, token id) const override {
    if (id < kFirstLearnedToken) return append_byte(out, id);
    append_utf8(out, data_.characters[static_cast<std::size_t>(id - kFirstLearnedToken)]);
  }

  const TokenizerData data_;
  std::vector<token> ids_;  // by code point; 0: not in the vocabulary
};

}  // namespace

TokenizerData learn_characters(std::string_view text, std::string_view name,
                               const LearnOptions& options) {
  const LetterCase letters = options.lower ? LetterCase::kLower : LetterCase::kKept;
  TokenizerData data{.kind = "char", .characters = characters_by_frequency(text, name, letters)};
  data.lower = options.lower;
  data.marks = options.marks;
  return data;
}

std::unique_ptr<Tokenizer> make_char_tokenizer(const TokenizerData& data) {
  if (!data.words.empty()) {
    fail(ErrorCode::kModelDamaged, "a char tokenizer has no words; this one lists {}",
         data.words.size());
  }
  return std::make_unique<CharTokenizer>(data);
}

// One token a byte.

namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  explicit ByteTokenizer(const TokenizerData& data) : data_(data) {}

  TokenizerData data() const override { return data_; }
  index vocabulary_size() const override { return kFirstLearnedToken; }
  SpecialTokens special() const override { return marks_before_bytes(data_); }

  index token_count(std::string_view text) const override {
    return static_cast<index>(text.size());
  }

  void append_tokens(std::vector<token>& ids, std::string_view text,
                     std::string_view) const override {
    for (const char byte : text) ids.push_back(byte_token(byte));
  }

  bool occurs_in_learned_text(token id) const override { return id >= kFirstByteToken; }

 private:
  void append_known(std::string& out, token id) const override { append_byte(out, id); }

  const TokenizerData data_;
};

}  // namespace

TokenizerData learn_bytes(std::string_view, std::string_view, const LearnOptions& options) {
  TokenizerData data{.kind = "byte"};
  data.marks = options.marks;
  return data;
}

std::unique_ptr<Tokenizer> make_byte_tokenizer(const TokenizerData& data) {
  if (!data.characters.empty() || !data.words.empty()) {
    fail(ErrorCode::kModelDamaged, "a byte tokenizer has no {}; this one lists {}",
         data.words.empty() ? "characters" : "words", data.characters.size() + data.words.size());
  }
  if (data.lower) {
    fail(ErrorCode::kModelDamaged, "a byte tokenizer keeps all bytes; this one says 'lower true'");
  }
  return std::make_unique<ByteTokenizer>(data);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// One token a character of the training text; any other character is spelled in bytes.
#include <algorithm>

#include "fovea/base/check.h"
#include "fovea/text/tokenizer.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

class CharTokenizer final : public Tokenizer {
 public:
  explicit CharTokenizer(std::vector<char32_t> characters) : characters_(std::move(characters)) {
    token id = kFirstLearnedToken;
    for (const char32_t c : characters_) {
      const bool fits = is_scalar_value(c) && (c >= ids_.size() || ids_[c] == 0);
      if (!fits) {
        fail(ErrorCode::kModelDamaged, "char tokenizer: U+{:04X} is listed twice or no character",
             static_cast<std::uint32_t>(c));
      }
      if (c >= ids_.size()) ids_.resize(c + 1, 0);
      ids_[c] = id++;
    }
  }

  TokenizerData data() const override { return {.kind = "char", .characters = characters_}; }
  index vocabulary_size() const override {
    return kFirstLearnedToken + static_cast<index>(characters_.size());
  }

  index token_count(std::string_view text) const override { return count_characters(text); }

  std::vector<token> encode(std::string_view text, std::string_view name) const override {
    require_utf8(text, name);
    std::vector<token> ids;
    ids.reserve(static_cast<std::size_t>(token_count(text)));
    while (!text.empty()) {
      const DecodedCharacter c = decode_character(text);
      const auto length = static_cast<std::size_t>(c.length);
      const token id = c.value < ids_.size() ? ids_[c.value] : 0;
      if (id != 0) {
        ids.push_back(id);
      } else {
        for (const char byte : text.substr(0, length)) ids.push_back(byte_token(byte));
      }
      text.remove_prefix(length);
    }
    return ids;
  }

  // Every character of that text is in the vocabulary, so none of it was spelled in bytes.
  bool occurs_in_learned_text(token id) const override { return id >= kFirstLearnedToken; }

 private:
  std::string learned_bytes(token id) const override {
    std::string bytes;
    append_utf8(bytes, characters_[static_cast<std::size_t>(id - kFirstLearnedToken)]);
    return bytes;
  }

  std::vector<char32_t> characters_;
  std::vector<token> ids_;  // by code point; 0: not in the vocabulary
};

}  // namespace

TokenizerData learn_characters(std::string_view text, std::string_view name) {
  return {.kind = "char", .characters = characters_by_frequency(text, name)};
}

std::unique_ptr<Tokenizer> make_char_tokenizer(const TokenizerData& data) {
  return std::make_unique<CharTokenizer>(data.characters);
}

}  // namespace fovea

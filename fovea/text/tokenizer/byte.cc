// SPDX-License-Identifier: Apache-2.0
// One token a byte.
#include "fovea/base/check.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

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

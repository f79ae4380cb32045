// SPDX-License-Identifier: Apache-2.0
// One token a byte.
#include "fovea/base/check.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  TokenizerData data() const override { return {.kind = "byte", .characters = {}}; }
  index vocabulary_size() const override { return kFirstLearnedToken; }

  index token_count(std::string_view text) const override {
    return static_cast<index>(text.size());
  }

  std::vector<token> encode(std::string_view text, std::string_view) const override {
    std::vector<token> ids;
    ids.reserve(text.size());
    for (const char byte : text) ids.push_back(byte_token(byte));
    return ids;
  }

  bool occurs_in_learned_text(token id) const override { return id >= kFirstByteToken; }

 private:
  std::string learned_bytes(token) const override { return {}; }
};

}  // namespace

TokenizerData learn_bytes(std::string_view, std::string_view) { return ByteTokenizer().data(); }

std::unique_ptr<Tokenizer> make_byte_tokenizer(const TokenizerData& data) {
  if (!data.characters.empty()) {
    fail(ErrorCode::kModelDamaged, "a byte tokenizer has no characters; this one lists {}",
         data.characters.size());
  }
  return std::make_unique<ByteTokenizer>();
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer.h"

#include "fovea/base/option.h"
#include "fovea/base/printable.h"
#include "fovea/text/utf8.h"

namespace fovea {

void Tokenizer::append_bytes(std::string& out, token id) const {
  check(id >= 0 && id < vocabulary_size(), "tokenizer: token {} is not in the vocabulary of {}", id,
        vocabulary_size());
  if (id >= kFirstLearnedToken) {
    out += learned_bytes(id);
  } else if (id >= kFirstByteToken) {
    out += static_cast<char>(id - kFirstByteToken);
  }
}

std::string Tokenizer::decode(std::span<const token> ids) const {
  std::string text;
  for (const token id : ids) append_bytes(text, id);
  return text;
}

std::vector<std::int32_t> Tokenizer::bytes_predicted() const {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(vocabulary_size()));
  for (token id = 0; id < vocabulary_size(); ++id) {
    std::string bytes;
    append_bytes(bytes, id);
    counts[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(bytes.size());
  }
  counts[kEndToken] = 1;
  return counts;
}

std::string StreamDecoder::push(token id) {
  tokenizer_.append_bytes(kept_, id);
  return take(false);
}

std::string StreamDecoder::finish() { return take(true); }

std::string StreamDecoder::take(bool at_end) {
  std::string out;
  std::string_view rest = kept_;
  while (!rest.empty()) {
    const DecodedCharacter c = decode_character(rest);
    if (c.status == Utf8Status::kIncomplete && !at_end) break;
    append_utf8(out, c.value);
    rest.remove_prefix(static_cast<std::size_t>(c.length));
  }
  kept_ = std::string(rest);
  return out;
}

const TokenizerKind& tokenizer_kind(std::string_view name) {
  return choose(kTokenizers, name, "tokenizer");
}

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerData& data) {
  const TokenizerKind* kind = find_named(kTokenizers, data.kind);
  if (kind == nullptr) {
    fail(ErrorCode::kModelDamaged, "tokenizer kind {} is not one of: {}", printable(data.kind),
         names_in(kTokenizers));
  }
  return kind->make(data);
}

}  // namespace fovea

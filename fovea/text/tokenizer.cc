// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer.h"

#include <algorithm>

#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/text/utf8.h"

namespace fovea {

std::vector<token> Tokenizer::encode(std::string_view text, std::string_view name) const {
  std::vector<token> ids;
  ids.reserve(static_cast<std::size_t>(token_count(text)));
  append_tokens(ids, text, name);
  return ids;
}

void Tokenizer::append_bytes(std::string& out, token id) const {
  check(id >= 0 && id < vocabulary_size(), "tokenizer: token {} is not in the vocabulary of {}", id,
        vocabulary_size());
  append_known(out, id);
}

std::string Tokenizer::decode(std::span<const token> ids) const {
  std::string text, bytes;
  SpaceDropper spaces(line_space(), true);
  for (const token id : ids) {
    bytes.clear();
    append_bytes(bytes, id);
    spaces.drop(bytes);
    if (bytes.empty()) continue;
    if (!text.empty()) text += separator();
    text += bytes;
  }
  return text;
}

std::vector<std::int32_t> Tokenizer::bytes_predicted() const {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(vocabulary_size()));
  const auto between = static_cast<std::int32_t>(separator().size());
  for (token id = 0; id < vocabulary_size(); ++id) {
    std::string bytes;
    append_bytes(bytes, id);
    counts[static_cast<std::size_t>(id)] =
        bytes.empty() ? 0 : static_cast<std::int32_t>(bytes.size()) + between;
  }
  const auto [begin, end, unknown] = special();
  if (end != kNoToken) counts[static_cast<std::size_t>(end)] = 1 - between;
  if (unknown != kNoToken) counts[static_cast<std::size_t>(unknown)] = 0;
  return counts;
}

void SpaceDropper::drop(std::string& bytes) {
  if (rule_ == LineSpace::kKept || bytes.empty()) return;
  const bool ends_line = bytes.back() == '\n' && rule_ != LineSpace::kOneDroppedAtFirst;
  if (at_start_ && bytes.front() == ' ') {
    const std::size_t first = std::min(bytes.find_first_not_of(' '), bytes.size());
    bytes.erase(0, rule_ == LineSpace::kAllDropped ? first : 1);
    at_start_ = rule_ == LineSpace::kAllDropped && bytes.empty();
  } else {
    at_start_ = false;
  }
  if (ends_line) at_start_ = true;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, std::string_view before)
    : tokenizer_(tokenizer),
      spaces_(tokenizer.line_space(),
              before.empty() || (ends_with_white_space(before) &&
                                 tokenizer.line_space() != LineSpace::kOneDroppedAtFirst)),
      separates_(!before.empty() && !ends_with_white_space(before)) {}

std::string StreamDecoder::push(token id) {
  std::string bytes;
  tokenizer_.append_bytes(bytes, id);
  spaces_.drop(bytes);
  if (!bytes.empty()) {
    if (separates_) kept_ += tokenizer_.separator();
    kept_ += bytes;
    separates_ = true;
  }
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

std::string tokenizer_names() { return names_in(kTokenizers, "|"); }

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

SpecialTokens marks_before_bytes(const TokenizerData& data) {
  if (!data.marks) return {};
  return {.begin = kBeginToken, .end = kEndToken, .unknown = kNoToken};
}

void append_byte(std::string& out, token id) {
  if (id >= kFirstByteToken) out += static_cast<char>(id - kFirstByteToken);
}

}  // namespace fovea

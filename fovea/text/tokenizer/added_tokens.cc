// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/added_tokens.h"

#include <algorithm>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/utf8.h"

namespace fovea {

std::size_t begin_of_last_space(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0) {
    std::size_t before = begin - 1;
    while (before > 0 && (static_cast<unsigned char>(text[before]) & 0xc0) == 0x80) --before;
    if (white_space_at_front(text.substr(before, begin - before)) != begin - before) break;
    begin = before;
  }
  return begin;
}

namespace {

std::size_t bytes_of_first_space(std::string_view text) {
  std::size_t bytes = 0;
  while (const std::size_t one = white_space_at_front(text.substr(bytes))) bytes += one;
  return bytes;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> added) : added_(std::move(added)) {
  std::vector<std::pair<std::string_view, token>> pieces;
  KeyedSet<std::string_view> seen;
  for (std::size_t n = 0; n < added_.size(); ++n) {
    const std::string_view text = added_[n].text;
    if (text.size() > kLongestPiece) {
      throw Error(ErrorCode::kModelDamaged,
                  fmt::format("an added token has {} bytes; at most {} are read", text.size(),
                              kLongestPiece),
                  "get the model again");
    }
    if (seen.insert(text).second) pieces.emplace_back(text, static_cast<token>(n));
  }
  trie_ = PieceTrie(std::move(pieces));
}

AddedTokens::Found AddedTokens::find(std::string_view text, std::size_t from,
                                     std::size_t done) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    Found found;
    trie_.visit_prefixes(text.substr(at), [&](std::size_t length, token n) {
      found = {&added_[static_cast<std::size_t>(n)], at, at + length, at + length};
    });
    if (found.added == nullptr) continue;
    // White space is looked at once, however many tokens take it.
    if (found.added->takes_left && done < at) {
      found.begin = done + begin_of_last_space(text.substr(done, at - done));
    }
    if (found.added->takes_right) {
      found.taken = std::max(found.end, done);
      found.taken += bytes_of_first_space(text.substr(found.taken));
    }
    return found;
  }
  return {};
}

}  // namespace fovea

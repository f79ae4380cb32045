// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/wordpiece.h"

#include <algorithm>
#include <array>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

[[noreturn]] void damaged(const std::string& what) {
  throw Error(ErrorCode::kModelDamaged, fmt::format("vocabulary: {}", what), "get the model again");
}

bool starts_with_space(std::string_view text) { return white_space_at_front(text) > 0; }

// Where the white space at the end of a text begins.
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

std::size_t bytes_of_first_space(std::string_view text) {
  std::size_t bytes = 0;
  while (starts_with_space(text.substr(bytes))) bytes += white_space_at_front(text.substr(bytes));
  return bytes;
}

// Finds added tokens from the front of a text on, the longest of those that begin at one place.
// Each is looked for once in every part of the text, whatever their number.
class AddedFinder {
 public:
  AddedFinder(const std::vector<AddedToken>& added, std::string_view text)
      : added_(added), text_(text), places_(added.size(), 0) {
    for (std::size_t n = 0; n < added.size(); ++n) places_[n] = text.find(added[n].text);
  }

  // The first one at `from` or behind; null: there is none.
  const AddedToken* find(std::size_t from, std::size_t& at) {
    const AddedToken* found = nullptr;
    at = text_.npos;
    for (std::size_t n = 0; n < added_.size(); ++n) {  // the longest first
      if (places_[n] < from) places_[n] = text_.find(added_[n].text, from);
      if (places_[n] < at) {
        at = places_[n];
        found = &added_[n];
      }
    }
    return found;
  }

 private:
  const std::vector<AddedToken>& added_;
  std::string_view text_;
  std::vector<std::size_t> places_;  // of each, as far as it was looked for
};

// Calls `plain` for what stands between added tokens, and appends their ids.
template <class Plain>
void between_added(std::vector<token>& ids, const std::vector<AddedToken>& added,
                   std::string_view text, const Plain& plain) {
  AddedFinder finder(added, text);
  std::size_t done = 0, from = 0, at = 0;
  while (const AddedToken* const found = finder.find(from, at)) {
    std::size_t end = at + found->text.size();
    if (found->takes_left) at = std::max(done, begin_of_last_space(text.substr(0, at)));
    from = end;
    if (found->takes_right) end += bytes_of_first_space(text.substr(end));
    if (done < at) plain(text.substr(done, at - done));
    ids.push_back(found->id);
    done = end;
  }
  if (done < text.size()) plain(text.substr(done));
}

std::string tidied(std::string text) {
  constexpr std::array<std::array<std::string_view, 2>, 11> kRules = {{{" .", "."},
                                                                       {" ?", "?"},
                                                                       {" !", "!"},
                                                                       {" ,", ","},
                                                                       {" ' ", "'"},
                                                                       {" n't", "n't"},
                                                                       {" 'm", "'m"},
                                                                       {" do not", " don't"},
                                                                       {" 's", "'s"},
                                                                       {" 've", "'ve"},
                                                                       {" 're", "'re"}}};
  for (const auto& [from, to] : kRules) {
    for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

}  // namespace

WordPiece::WordPiece(WordPieceModel model)
    : model_(std::move(model)), begins_(model_.names.size()), continues_(model_.names.size()) {
  add_names();
  unknown_ = id_of(model_.unknown);
  if (unknown_ == kNoToken) damaged(fmt::format("{} is missing", printable(model_.unknown)));
  add_added();
  for (const auto* marks : {&model_.before, &model_.after}) {
    for (const token id : *marks) {
      if (id < 0 || id >= size()) damaged(fmt::format("mark {} is no token of {}", id, size()));
    }
  }
}

void WordPiece::add_names() {
  ids_.reserve(model_.names.size());
  for (token id = 0; id < size(); ++id) {
    const std::string_view name = this->name(id);
    if (find_invalid_utf8(name)) damaged(fmt::format("token {} is not UTF-8", id));
    if (!ids_.emplace(name, id).second) damaged(fmt::format("{} is there twice", printable(name)));
    if (name.empty()) continue;
    begins_.table.add(name, id);
    begins_.longest = std::max(begins_.longest, name.size());
    if (!name.starts_with(model_.prefix) || name.size() == model_.prefix.size()) continue;
    const std::string_view rest = name.substr(model_.prefix.size());
    continues_.table.add(rest, id);
    continues_.longest = std::max(continues_.longest, rest.size());
  }
}

void WordPiece::add_added() {
  is_mark_.resize(model_.names.size());
  for (const AddedToken& one : model_.added) {
    if (one.text.empty() || one.id < 0 || one.id >= size() || name(one.id) != one.text) {
      damaged(fmt::format("added token {} has the id {}, which is another's", printable(one.text),
                          one.id));
    }
    if (one.is_mark) is_mark_[static_cast<std::size_t>(one.id)] = true;
    if (!one.normalized) {
      raw_.push_back(one);
      continue;
    }
    normalized_.push_back(one);
    if (model_.normalizer) normalized_.back().text = normalized(one.text, *model_.normalizer);
    if (normalized_.back().text.empty()) normalized_.pop_back();
  }
  for (auto* added : {&raw_, &normalized_}) {
    std::stable_sort(added->begin(), added->end(), [](const AddedToken& a, const AddedToken& b) {
      return a.text.size() > b.text.size();
    });
  }
}

token WordPiece::id_of(std::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? kNoToken : found->second;
}

void WordPiece::encode(std::vector<token>& ids, std::string_view text) const {
  between_added(ids, raw_, text, [&](std::string_view part) {
    if (!model_.normalizer) return encode_normalized(ids, part);
    encode_normalized(ids, normalized(part, *model_.normalizer));
  });
}

void WordPiece::encode_normalized(std::vector<token>& ids, std::string_view text) const {
  between_added(ids, normalized_, text, [&](std::string_view part) { encode_plain(ids, part); });
}

// Words end at white space; a character of punctuation is a word.
void WordPiece::encode_plain(std::vector<token>& ids, std::string_view text) const {
  std::size_t begin = 0, at = 0;
  index characters = 0;
  const auto end_word = [&] {
    if (at > begin) encode_word(ids, text.substr(begin, at - begin), characters);
    characters = 0;
  };
  while (at < text.size()) {
    const DecodedCharacter read = decode_character(text.substr(at));
    const auto bytes = static_cast<std::size_t>(read.length);
    const bool is_space = is_white_space(read.value);
    if (!is_space && !is_bert_punctuation(read.value)) {
      ++characters;
      at += bytes;
      continue;
    }
    end_word();
    begin = at;
    at += bytes;
    if (!is_space) {
      characters = 1;
      end_word();
    }
    begin = at;
  }
  end_word();
}

void WordPiece::encode_word(std::vector<token>& ids, std::string_view word,
                            index characters) const {
  const std::size_t first = ids.size();
  const Pieces* pieces = &begins_;
  while (!word.empty() && characters <= model_.longest_word) {
    token found = kNoToken;
    std::size_t bytes = std::min(word.size(), pieces->longest);
    for (; bytes > 0; --bytes) {
      const bool ends_character =
          bytes == word.size() || (static_cast<unsigned char>(word[bytes]) & 0xc0) != 0x80;
      if (!ends_character) continue;
      found = pieces->table.find(word.substr(0, bytes));
      if (found != kNoToken) break;
    }
    if (found == kNoToken) break;
    ids.push_back(found);
    word.remove_prefix(bytes);
    pieces = &continues_;
  }
  if (word.empty()) return;
  ids.resize(first);
  ids.push_back(unknown_);
}

std::string WordPiece::decode(std::span<const token> ids) const {
  std::string text;
  bool is_first = true;
  for (const token id : ids) {
    check(id >= 0 && id < size(), "tokenizer: token {} is not in the vocabulary of {}", id, size());
    if (is_mark_[static_cast<std::size_t>(id)]) continue;
    std::string_view named = name(id);
    const bool continues = named.starts_with(model_.prefix);
    if (!is_first && continues) named.remove_prefix(model_.prefix.size());
    std::string part(!is_first && !continues ? " " : "");
    part.append(named);
    text += model_.tidies ? tidied(std::move(part)) : part;
    is_first = false;
  }
  return text;
}

}  // namespace fovea

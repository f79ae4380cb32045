// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/wordpiece.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

[[noreturn]] void damaged(const std::string& what) {
  throw Error(ErrorCode::kModelDamaged, fmt::format("vocabulary: {}", what), "get the model again");
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
  for (const auto* marks : {&model_.marks.before, &model_.marks.after, &model_.marks.between}) {
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
  std::vector<AddedToken> raw, rewritten;
  for (const AddedToken& one : model_.added) {
    if (one.text.empty() || one.id < 0 || one.id >= size() || name(one.id) != one.text) {
      damaged(fmt::format("added token {} has the id {}, which is another's", printable(one.text),
                          one.id));
    }
    if (one.is_mark) is_mark_[static_cast<std::size_t>(one.id)] = true;
    if (!one.normalized) {
      raw.push_back(one);
      continue;
    }
    rewritten.push_back(one);
    if (model_.normalizer) rewritten.back().text = normalized(one.text, *model_.normalizer);
    if (rewritten.back().text.empty()) rewritten.pop_back();
  }
  raw_ = AddedTokens(std::move(raw));
  normalized_ = AddedTokens(std::move(rewritten));
}

token WordPiece::id_of(std::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? kNoToken : found->second;
}

void WordPiece::encode(std::vector<token>& ids, std::string_view text) const {
  const auto plain = [&](std::size_t, std::string_view part) {
    if (!model_.normalizer) return encode_normalized(ids, part);
    encode_normalized(ids, normalized(part, *model_.normalizer));
  };
  raw_.split(text, plain, [&](const AddedToken& added) { ids.push_back(added.id); });
}

void WordPiece::encode_normalized(std::vector<token>& ids, std::string_view text) const {
  const auto plain = [&](std::size_t, std::string_view part) { encode_plain(ids, part); };
  normalized_.split(text, plain, [&](const AddedToken& added) { ids.push_back(added.id); });
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

namespace {

struct Range {
  char32_t first, last;
};

// Controls, formats, private use, U+0000 and U+FFFD.
constexpr Range kRemoved[] = {
    {0x0, 0x8},           {0xb, 0xc},         {0xe, 0x1f},        {0x7f, 0x9f},
    {0xad, 0xad},         {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},
    {0x70f, 0x70f},       {0x180e, 0x180e},   {0x200b, 0x200f},   {0x202a, 0x202e},
    {0x2060, 0x2064},     {0x2066, 0x206f},   {0xe000, 0xf8ff},   {0xfeff, 0xfeff},
    {0xfff9, 0xfffb},     {0xfffd, 0xfffd},   {0x110bd, 0x110bd}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a},   {0xe0001, 0xe0001}, {0xe0020, 0xe007f}, {0xf0000, 0xffffd},
    {0x100000, 0x10fffd},
};

// Nonspacing marks.
constexpr Range kMarks[] = {
    {0x300, 0x36f},     {0x483, 0x487},     {0x591, 0x5bd},     {0x5bf, 0x5bf},
    {0x5c1, 0x5c2},     {0x5c4, 0x5c5},     {0x5c7, 0x5c7},     {0x610, 0x61a},
    {0x64b, 0x65f},     {0x670, 0x670},     {0x6d6, 0x6dc},     {0x6df, 0x6e4},
    {0x6e7, 0x6e8},     {0x6ea, 0x6ed},     {0x711, 0x711},     {0x730, 0x74a},
    {0x7a6, 0x7b0},     {0x7eb, 0x7f3},     {0x816, 0x819},     {0x81b, 0x823},
    {0x825, 0x827},     {0x829, 0x82d},     {0x859, 0x85b},     {0x8e3, 0x902},
    {0x93a, 0x93a},     {0x93c, 0x93c},     {0x941, 0x948},     {0x94d, 0x94d},
    {0x951, 0x957},     {0x962, 0x963},     {0x981, 0x981},     {0x9bc, 0x9bc},
    {0x9c1, 0x9c4},     {0x9cd, 0x9cd},     {0x9e2, 0x9e3},     {0xa01, 0xa02},
    {0xa3c, 0xa3c},     {0xa41, 0xa42},     {0xa47, 0xa48},     {0xa4b, 0xa4d},
    {0xa51, 0xa51},     {0xa70, 0xa71},     {0xa75, 0xa75},     {0xa81, 0xa82},
    {0xabc, 0xabc},     {0xac1, 0xac5},     {0xac7, 0xac8},     {0xacd, 0xacd},
    {0xae2, 0xae3},     {0xb01, 0xb01},     {0xb3c, 0xb3c},     {0xb3f, 0xb3f},
    {0xb41, 0xb44},     {0xb4d, 0xb4d},     {0xb56, 0xb56},     {0xb62, 0xb63},
    {0xb82, 0xb82},     {0xbc0, 0xbc0},     {0xbcd, 0xbcd},     {0xc00, 0xc00},
    {0xc3e, 0xc40},     {0xc46, 0xc48},     {0xc4a, 0xc4d},     {0xc55, 0xc56},
    {0xc62, 0xc63},     {0xc81, 0xc81},     {0xcbc, 0xcbc},     {0xcbf, 0xcbf},
    {0xcc6, 0xcc6},     {0xccc, 0xccd},     {0xce2, 0xce3},     {0xd01, 0xd01},
    {0xd41, 0xd44},     {0xd4d, 0xd4d},     {0xd62, 0xd63},     {0xdca, 0xdca},
    {0xdd2, 0xdd4},     {0xdd6, 0xdd6},     {0xe31, 0xe31},     {0xe34, 0xe3a},
    {0xe47, 0xe4e},     {0xeb1, 0xeb1},     {0xeb4, 0xeb9},     {0xebb, 0xebc},
    {0xec8, 0xecd},     {0xf18, 0xf19},     {0xf35, 0xf35},     {0xf37, 0xf37},
    {0xf39, 0xf39},     {0xf71, 0xf7e},     {0xf80, 0xf84},     {0xf86, 0xf87},
    {0xf8d, 0xf97},     {0xf99, 0xfbc},     {0xfc6, 0xfc6},     {0x102d, 0x1030},
    {0x1032, 0x1037},   {0x1039, 0x103a},   {0x103d, 0x103e},   {0x1058, 0x1059},
    {0x105e, 0x1060},   {0x1071, 0x1074},   {0x1082, 0x1082},   {0x1085, 0x1086},
    {0x108d, 0x108d},   {0x109d, 0x109d},   {0x135d, 0x135f},   {0x1712, 0x1714},
    {0x1732, 0x1734},   {0x1752, 0x1753},   {0x1772, 0x1773},   {0x17b4, 0x17b5},
    {0x17b7, 0x17bd},   {0x17c6, 0x17c6},   {0x17c9, 0x17d3},   {0x17dd, 0x17dd},
    {0x180b, 0x180d},   {0x18a9, 0x18a9},   {0x1920, 0x1922},   {0x1927, 0x1928},
    {0x1932, 0x1932},   {0x1939, 0x193b},   {0x1a17, 0x1a18},   {0x1a1b, 0x1a1b},
    {0x1a56, 0x1a56},   {0x1a58, 0x1a5e},   {0x1a60, 0x1a60},   {0x1a62, 0x1a62},
    {0x1a65, 0x1a6c},   {0x1a73, 0x1a7c},   {0x1a7f, 0x1a7f},   {0x1ab0, 0x1abd},
    {0x1b00, 0x1b03},   {0x1b34, 0x1b34},   {0x1b36, 0x1b3a},   {0x1b3c, 0x1b3c},
    {0x1b42, 0x1b42},   {0x1b6b, 0x1b73},   {0x1b80, 0x1b81},   {0x1ba2, 0x1ba5},
    {0x1ba8, 0x1ba9},   {0x1bab, 0x1bad},   {0x1be6, 0x1be6},   {0x1be8, 0x1be9},
    {0x1bed, 0x1bed},   {0x1bef, 0x1bf1},   {0x1c2c, 0x1c33},   {0x1c36, 0x1c37},
    {0x1cd0, 0x1cd2},   {0x1cd4, 0x1ce0},   {0x1ce2, 0x1ce8},   {0x1ced, 0x1ced},
    {0x1cf4, 0x1cf4},   {0x1cf8, 0x1cf9},   {0x1dc0, 0x1df5},   {0x1dfc, 0x1dff},
    {0x20d0, 0x20dc},   {0x20e1, 0x20e1},   {0x20e5, 0x20f0},   {0x2cef, 0x2cf1},
    {0x2d7f, 0x2d7f},   {0x2de0, 0x2dff},   {0x302a, 0x302d},   {0x3099, 0x309a},
    {0xa66f, 0xa66f},   {0xa674, 0xa67d},   {0xa69e, 0xa69f},   {0xa6f0, 0xa6f1},
    {0xa802, 0xa802},   {0xa806, 0xa806},   {0xa80b, 0xa80b},   {0xa825, 0xa826},
    {0xa8c4, 0xa8c4},   {0xa8e0, 0xa8f1},   {0xa926, 0xa92d},   {0xa947, 0xa951},
    {0xa980, 0xa982},   {0xa9b3, 0xa9b3},   {0xa9b6, 0xa9b9},   {0xa9bc, 0xa9bc},
    {0xa9e5, 0xa9e5},   {0xaa29, 0xaa2e},   {0xaa31, 0xaa32},   {0xaa35, 0xaa36},
    {0xaa43, 0xaa43},   {0xaa4c, 0xaa4c},   {0xaa7c, 0xaa7c},   {0xaab0, 0xaab0},
    {0xaab2, 0xaab4},   {0xaab7, 0xaab8},   {0xaabe, 0xaabf},   {0xaac1, 0xaac1},
    {0xaaec, 0xaaed},   {0xaaf6, 0xaaf6},   {0xabe5, 0xabe5},   {0xabe8, 0xabe8},
    {0xabed, 0xabed},   {0xfb1e, 0xfb1e},   {0xfe00, 0xfe0f},   {0xfe20, 0xfe2f},
    {0x101fd, 0x101fd}, {0x102e0, 0x102e0}, {0x10376, 0x1037a}, {0x10a01, 0x10a03},
    {0x10a05, 0x10a06}, {0x10a0c, 0x10a0f}, {0x10a38, 0x10a3a}, {0x10a3f, 0x10a3f},
    {0x10ae5, 0x10ae6}, {0x11001, 0x11001}, {0x11038, 0x11046}, {0x1107f, 0x11081},
    {0x110b3, 0x110b6}, {0x110b9, 0x110ba}, {0x11100, 0x11102}, {0x11127, 0x1112b},
    {0x1112d, 0x11134}, {0x11173, 0x11173}, {0x11180, 0x11181}, {0x111b6, 0x111be},
    {0x111ca, 0x111cc}, {0x1122f, 0x11231}, {0x11234, 0x11234}, {0x11236, 0x11237},
    {0x112df, 0x112df}, {0x112e3, 0x112ea}, {0x11300, 0x11301}, {0x1133c, 0x1133c},
    {0x11340, 0x11340}, {0x11366, 0x1136c}, {0x11370, 0x11374}, {0x114b3, 0x114b8},
    {0x114ba, 0x114ba}, {0x114bf, 0x114c0}, {0x114c2, 0x114c3}, {0x115b2, 0x115b5},
    {0x115bc, 0x115bd}, {0x115bf, 0x115c0}, {0x115dc, 0x115dd}, {0x11633, 0x1163a},
    {0x1163d, 0x1163d}, {0x1163f, 0x11640}, {0x116ab, 0x116ab}, {0x116ad, 0x116ad},
    {0x116b0, 0x116b5}, {0x116b7, 0x116b7}, {0x1171d, 0x1171f}, {0x11722, 0x11725},
    {0x11727, 0x1172b}, {0x16af0, 0x16af4}, {0x16b30, 0x16b36}, {0x16f8f, 0x16f92},
    {0x1bc9d, 0x1bc9e}, {0x1d167, 0x1d169}, {0x1d17b, 0x1d182}, {0x1d185, 0x1d18b},
    {0x1d1aa, 0x1d1ad}, {0x1d242, 0x1d244}, {0x1da00, 0x1da36}, {0x1da3b, 0x1da6c},
    {0x1da75, 0x1da75}, {0x1da84, 0x1da84}, {0x1da9b, 0x1da9f}, {0x1daa1, 0x1daaf},
    {0x1e8d0, 0x1e8d6}, {0xe0100, 0xe01ef},
};

// ASCII that is no letter, digit or blank, and punctuation.
constexpr Range kPunctuation[] = {
    {0x21, 0x2f},       {0x3a, 0x40},       {0x5b, 0x60},       {0x7b, 0x7e},
    {0xa1, 0xa1},       {0xa7, 0xa7},       {0xab, 0xab},       {0xb6, 0xb7},
    {0xbb, 0xbb},       {0xbf, 0xbf},       {0x37e, 0x37e},     {0x387, 0x387},
    {0x55a, 0x55f},     {0x589, 0x58a},     {0x5be, 0x5be},     {0x5c0, 0x5c0},
    {0x5c3, 0x5c3},     {0x5c6, 0x5c6},     {0x5f3, 0x5f4},     {0x609, 0x60a},
    {0x60c, 0x60d},     {0x61b, 0x61b},     {0x61e, 0x61f},     {0x66a, 0x66d},
    {0x6d4, 0x6d4},     {0x700, 0x70d},     {0x7f7, 0x7f9},     {0x830, 0x83e},
    {0x85e, 0x85e},     {0x964, 0x965},     {0x970, 0x970},     {0xaf0, 0xaf0},
    {0xdf4, 0xdf4},     {0xe4f, 0xe4f},     {0xe5a, 0xe5b},     {0xf04, 0xf12},
    {0xf14, 0xf14},     {0xf3a, 0xf3d},     {0xf85, 0xf85},     {0xfd0, 0xfd4},
    {0xfd9, 0xfda},     {0x104a, 0x104f},   {0x10fb, 0x10fb},   {0x1360, 0x1368},
    {0x1400, 0x1400},   {0x166d, 0x166e},   {0x169b, 0x169c},   {0x16eb, 0x16ed},
    {0x1735, 0x1736},   {0x17d4, 0x17d6},   {0x17d8, 0x17da},   {0x1800, 0x180a},
    {0x1944, 0x1945},   {0x1a1e, 0x1a1f},   {0x1aa0, 0x1aa6},   {0x1aa8, 0x1aad},
    {0x1b5a, 0x1b60},   {0x1bfc, 0x1bff},   {0x1c3b, 0x1c3f},   {0x1c7e, 0x1c7f},
    {0x1cc0, 0x1cc7},   {0x1cd3, 0x1cd3},   {0x2010, 0x2027},   {0x2030, 0x2043},
    {0x2045, 0x2051},   {0x2053, 0x205e},   {0x207d, 0x207e},   {0x208d, 0x208e},
    {0x2308, 0x230b},   {0x2329, 0x232a},   {0x2768, 0x2775},   {0x27c5, 0x27c6},
    {0x27e6, 0x27ef},   {0x2983, 0x2998},   {0x29d8, 0x29db},   {0x29fc, 0x29fd},
    {0x2cf9, 0x2cfc},   {0x2cfe, 0x2cff},   {0x2d70, 0x2d70},   {0x2e00, 0x2e2e},
    {0x2e30, 0x2e42},   {0x3001, 0x3003},   {0x3008, 0x3011},   {0x3014, 0x301f},
    {0x3030, 0x3030},   {0x303d, 0x303d},   {0x30a0, 0x30a0},   {0x30fb, 0x30fb},
    {0xa4fe, 0xa4ff},   {0xa60d, 0xa60f},   {0xa673, 0xa673},   {0xa67e, 0xa67e},
    {0xa6f2, 0xa6f7},   {0xa874, 0xa877},   {0xa8ce, 0xa8cf},   {0xa8f8, 0xa8fa},
    {0xa8fc, 0xa8fc},   {0xa92e, 0xa92f},   {0xa95f, 0xa95f},   {0xa9c1, 0xa9cd},
    {0xa9de, 0xa9df},   {0xaa5c, 0xaa5f},   {0xaade, 0xaadf},   {0xaaf0, 0xaaf1},
    {0xabeb, 0xabeb},   {0xfd3e, 0xfd3f},   {0xfe10, 0xfe19},   {0xfe30, 0xfe52},
    {0xfe54, 0xfe61},   {0xfe63, 0xfe63},   {0xfe68, 0xfe68},   {0xfe6a, 0xfe6b},
    {0xff01, 0xff03},   {0xff05, 0xff0a},   {0xff0c, 0xff0f},   {0xff1a, 0xff1b},
    {0xff1f, 0xff20},   {0xff3b, 0xff3d},   {0xff3f, 0xff3f},   {0xff5b, 0xff5b},
    {0xff5d, 0xff5d},   {0xff5f, 0xff65},   {0x10100, 0x10102}, {0x1039f, 0x1039f},
    {0x103d0, 0x103d0}, {0x1056f, 0x1056f}, {0x10857, 0x10857}, {0x1091f, 0x1091f},
    {0x1093f, 0x1093f}, {0x10a50, 0x10a58}, {0x10a7f, 0x10a7f}, {0x10af0, 0x10af6},
    {0x10b39, 0x10b3f}, {0x10b99, 0x10b9c}, {0x11047, 0x1104d}, {0x110bb, 0x110bc},
    {0x110be, 0x110c1}, {0x11140, 0x11143}, {0x11174, 0x11175}, {0x111c5, 0x111c9},
    {0x111cd, 0x111cd}, {0x111db, 0x111db}, {0x111dd, 0x111df}, {0x11238, 0x1123d},
    {0x112a9, 0x112a9}, {0x114c6, 0x114c6}, {0x115c1, 0x115d7}, {0x11641, 0x11643},
    {0x1173c, 0x1173e}, {0x12470, 0x12474}, {0x16a6e, 0x16a6f}, {0x16af5, 0x16af5},
    {0x16b37, 0x16b3b}, {0x16b44, 0x16b44}, {0x1bc9f, 0x1bc9f}, {0x1da87, 0x1da8b},
};

// Marks that have a combining class and are not in kMarks.
constexpr Range kKeptMarks[] = {
    {0x8d4, 0x8e1},     {0x1b44, 0x1b44},   {0x1baa, 0x1baa},   {0x1bf2, 0x1bf3},
    {0x1dfb, 0x1dfb},   {0x302e, 0x302f},   {0xa953, 0xa953},   {0xa9c0, 0xa9c0},
    {0x111c0, 0x111c0}, {0x11235, 0x11235}, {0x1134d, 0x1134d}, {0x11442, 0x11442},
    {0x11446, 0x11446}, {0x116b6, 0x116b6}, {0x11c3f, 0x11c3f}, {0x1d165, 0x1d166},
    {0x1d16d, 0x1d172}, {0x1e000, 0x1e006}, {0x1e008, 0x1e018}, {0x1e01b, 0x1e021},
    {0x1e023, 0x1e024}, {0x1e026, 0x1e02a}, {0x1e944, 0x1e94a},
};

struct LowerRange {
  char32_t first, last, lower;  // of the first
};

// Capitals of later versions of Unicode.
constexpr LowerRange kLaterCapitals[] = {
    {0x1c89, 0x1c89, 0x1c8a},    {0xa7cb, 0xa7cb, 0x264},  {0xa7cc, 0xa7cc, 0xa7cd},
    {0xa7ce, 0xa7ce, 0xa7cf},    {0xa7d2, 0xa7d2, 0xa7d3}, {0xa7d4, 0xa7d4, 0xa7d5},
    {0xa7da, 0xa7da, 0xa7db},    {0xa7dc, 0xa7dc, 0x19b},  {0x10d50, 0x10d65, 0x10d70},
    {0x16ea0, 0x16eb8, 0x16ebb},
};

template <std::size_t N>
bool is_in(const Range (&ranges)[N], char32_t c) {
  const Range* const found =
      std::lower_bound(std::begin(ranges), std::end(ranges), c,
                       [](const Range& range, char32_t value) { return range.last < value; });
  return found != std::end(ranges) && found->first <= c;
}

// The blocks that the reference calls Chinese.
constexpr Range kChinese[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                              {0x20000, 0x2a6df}, {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf},
                              {0x2f800, 0x2fa1f}};

constexpr std::uint8_t kIsRemoved = 1, kIsMark = 2, kIsPunctuation = 4, kIsChinese = 8,
                       kIsKeptMark = 16, kIsSpace = 32;

// The classes of each character: a text is read character by character.
class Classes {
 public:
  Classes() : of_(std::size_t{kLastCodePoint} + 1) {
    add(kRemoved, kIsRemoved);
    add(kMarks, kIsMark);
    add(kPunctuation, kIsPunctuation);
    add(kChinese, kIsChinese);
    add(kKeptMarks, kIsKeptMark);
    for (char32_t c = 0; c <= 0x3000; ++c) {  // the last one
      if (is_white_space(c)) of_[c] |= kIsSpace;
    }
  }
  std::uint8_t operator[](char32_t c) const { return of_[c]; }

 private:
  template <std::size_t N>
  void add(const Range (&ranges)[N], std::uint8_t bit) {
    for (const Range& range : ranges) {
      for (char32_t c = range.first; c <= range.last; ++c) of_[c] |= bit;
    }
  }

  std::vector<std::uint8_t> of_;
};

const Classes& classes() {
  static const Classes of_all;
  return of_all;
}

// Puts marks behind a character into the order of their classes (Unicode Standard, D109), and
// leaves out those that are not kept. Only kept ones can be seen to change places.
class MarkOrder {
 public:
  template <class Put>
  void push(char32_t c, std::uint8_t classes, const Put& put) {
    const bool has_class = (classes & (kIsMark | kIsKeptMark)) != 0;
    const int order =
        has_class ? utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class : 0;
    if (order == 0) flush(put);
    if ((classes & kIsMark) != 0) return;
    if (order == 0) {
      put(c);
    } else {
      kept_.push_back({order, c});
    }
  }

  template <class Put>
  void flush(const Put& put) {
    if (kept_.empty()) return;
    std::stable_sort(kept_.begin(), kept_.end(),
                     [](const Kept& a, const Kept& b) { return a.order < b.order; });
    for (const Kept& kept : kept_) put(kept.c);
    kept_.clear();
  }

 private:
  struct Kept {
    int order;
    char32_t c;
  };
  std::vector<Kept> kept_;
};

// Calls f for each character that c is made of.
template <class F>
void take_apart(char32_t c, const F& f) {
  constexpr char32_t kLater = 0x11938;  // is made of others since Unicode 13
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  utf8proc_int32_t parts[32];
  int boundary = 0;
  const utf8proc_ssize_t count =
      c < 0xc0 || c == kLater ? 0
                              : utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts,
                                                        std::ssize(parts), kOptions, &boundary);
  if (count <= 0) return f(c);
  for (utf8proc_ssize_t n = 0; n < count; ++n) f(static_cast<char32_t>(parts[n]));
}

void append_lowered(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    return;
  }
  if (c == 0x130) {  // a capital I with a dot: the only character that becomes two
    append_utf8(out, 'i');
    append_utf8(out, 0x307);
    return;
  }
  for (const LowerRange& range : kLaterCapitals) {
    if (c >= range.first && c <= range.last) return append_utf8(out, range.lower + c - range.first);
  }
  append_utf8(out, lower_character(c));
}

}  // namespace

bool is_bert_punctuation(char32_t c) { return (classes()[c] & kIsPunctuation) != 0; }

std::string normalized(std::string_view text, const BertNormalizer& rules) {
  const Classes& of = classes();
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  MarkOrder marks;
  const auto put = [&](char32_t c) {
    if (rules.lower) {
      append_lowered(out, c);
    } else {
      append_utf8(out, c);
    }
  };
  const auto put_apart = [&](char32_t c) {
    if (!rules.accents) return put(c);
    take_apart(c, [&](char32_t part) { marks.push(part, of[part], put); });
  };
  while (!text.empty()) {
    const DecodedCharacter read = decode_character(text);
    text.remove_prefix(static_cast<std::size_t>(read.length));
    char32_t c = read.value;
    if (rules.clean) {
      if ((of[c] & kIsRemoved) != 0) continue;
      if ((of[c] & kIsSpace) != 0) c = ' ';
    }
    const bool apart = rules.cjk && (of[c] & kIsChinese) != 0;
    if (apart) put_apart(' ');
    put_apart(c);
    if (apart) put_apart(' ');
  }
  marks.flush(put);
  return out;
}

}  // namespace fovea

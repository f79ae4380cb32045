// SPDX-License-Identifier: Apache-2.0
// The data of a tokenizer, the files that store it, and the ids of its words.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/base/types.h"

namespace fovea {

using token = std::int32_t;

/// No token: what a tokenizer lacks.
inline constexpr token kNoToken = -1;

/// Vocabularies of bytes and characters begin with the same ids: three special tokens, then one
/// token for each byte, so that any text can be encoded. The learned tokens follow.
inline constexpr token kPadToken = 0;
inline constexpr token kBeginToken = 1;
inline constexpr token kEndToken = 2;
inline constexpr token kFirstByteToken = 3;
inline constexpr token kFirstLearnedToken = kFirstByteToken + 256;

constexpr token byte_token(char byte) { return kFirstByteToken + static_cast<unsigned char>(byte); }

/// Vocabularies of words begin with these names, the last two only with TokenizerData::marks. A
/// word of the text that is spelled so is unknown.
inline constexpr std::array<std::string_view, 4> kSpecialWords = {"<pad>", "<unk>", "<s>", "</s>"};
inline constexpr token kUnknownWord = 1;
inline constexpr token kBeginWord = 2;
inline constexpr token kEndWord = 3;
inline constexpr std::string_view kWordKind = "word";
inline constexpr std::string_view kPieceKind = "sentencepiece";
/// The tokenizer of a model from elsewhere: no option chooses it.
inline constexpr std::string_view kPretrainedKind = "pretrained";

constexpr std::span<const std::string_view> special_words(bool marks) {
  return std::span(kSpecialWords).first(marks ? 4 : 2);
}
bool is_special_word(std::string_view word, bool marks);
/// Whether valid UTF-8 is one word: not empty, and without white space.
bool is_one_word(std::string_view text);

struct CountedWord {
  std::string word;
  index count = 0;  ///< how often the training text has it

  bool operator==(const CountedWord&) const = default;
};

/// The characters that end a word.
enum class WordSplit {
  kSpaces,       ///< white space
  kPunctuation,  ///< that, and punctuation, each character of which is a word
};
inline constexpr EnumName<WordSplit> kWordSplitNames[] = {{WordSplit::kSpaces, "spaces"},
                                                          {WordSplit::kPunctuation, "punctuation"}};
inline std::span<const EnumName<WordSplit>> enum_names(WordSplit) { return kWordSplitNames; }

/// The stored part of a tokenizer.
struct TokenizerData {
  std::string kind;                       ///< a name in kTokenizers
  std::vector<char32_t> characters = {};  ///< kind char: the ids from kFirstLearnedToken on
  bool lower = false;                     ///< text is put into lower case first
  bool marks = true;                      ///< lines have a begin and an end token
  WordSplit split = WordSplit::kSpaces;   ///< kind word: what ends one
  index unknown = 0;  ///< kind word: words of the training text that are not in the vocabulary
  std::vector<CountedWord> words = {};  ///< kind word: the ids behind special_words
  /// Kind sentencepiece: the bytes of its .model file; pretrained: an archive of its files.
  std::string model = {};

  bool operator==(const TokenizerData&) const = default;
};

/// The file `tokenizer.txt`. The same data gives the same bytes:
///
///     fovea-tokenizer 1              fovea-tokenizer 1
///     kind char                      kind word
///     characters 2                   lower true
///     U+0065                         marks false
///     U+4E2D                         unknown 1123
///     checksum e1299cf1ea23fe0d      words 2
///                                    the 1293
///                                    prince 172
///                                    checksum ...
///
/// One line each, in this order, each ended by LF. The lines `lower` and `marks` are there only
/// where they are true and false; they may be in a file of any kind. Behind them stands
/// `split punctuation` where words are split so. Words are UTF-8 and hold no
/// white space; behind each stands its count. Kind sentencepiece has `model BYTES` and the bytes of
/// the .model file in base64, 72 a line: one file holds all of the tokenizer. So has kind
/// pretrained. The checksum is FNV-1a (64 bits) of every byte before its line.
std::string to_text(const TokenizerData& data);

/// Reads exactly what to_text writes. Throws kModelDamaged, which gives the file `name`, the line,
/// what was expected and what was found.
TokenizerData tokenizer_data_from_text(std::string_view text, std::string_view name);

// The file `vocab.txt`: the vocabulary of words for people and other tools, a word a line, in the
// order of the ids from 0.

inline constexpr std::string_view kWordListName = "vocab.txt";

/// The file of a tokenizer of words: special_words, then its words.
std::string word_list_text(const TokenizerData& data);

/// The words of such a file behind special_words(marks). Throws kInputFormat, kEncoding, which name
/// the file `name` and the line.
std::vector<std::string> words_of_list(std::string_view text, std::string_view name, bool marks);

/// A hash table with open addressing, for many look-ups: a word of at most eight bytes is found in
/// one line of memory, for its bytes stand in the table itself.
class WordTable {
 public:
  /// Room for so many words.
  explicit WordTable(std::size_t words);

  /// False, and nothing is added, if the word is there already. The table keeps a view of it; it
  /// must not be empty, and there must be room.
  bool add(std::string_view word, token id);
  /// Its id; kNoToken if it was not added.
  token find(std::string_view word) const;

 private:
  struct Slot {
    std::uint64_t start = 0;  // the first bytes of the word
    std::string_view word = {};
    token id = kNoToken;
  };

  // The slot of the word, or the empty one where it would be.
  std::size_t place_of(std::string_view word, std::uint64_t start) const;

  std::vector<Slot> slots_;  // as many as a power of two
  std::size_t used_ = 0;
};

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Turns text into tokens and back: bytes and characters without loss, words with some.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// The tokens that are no part of the text; kNoToken: the tokenizer has none.
struct SpecialTokens {
  token begin = kNoToken;    ///< stands before a line
  token end = kNoToken;      ///< stands behind a line
  token unknown = kNoToken;  ///< stands for every word that is not in the vocabulary
};

/// Whether white space at the beginning of a line is a part of the text. kOneDroppedAtFirst: one is
/// dropped at the beginning of the whole text, and kept behind newlines.
enum class LineSpace { kKept, kOneDropped, kAllDropped, kOneDroppedAtFirst };

/// A cut of a text that is drawn: the same for the same seed, epoch and number, whatever was drawn
/// before.
struct DrawnCut {
  double alpha = 0;  ///< CutSampling::alpha (sentencepiece/cutter.h)
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;  ///< of the text; of the first line, if it has several
};

/// Immutable after construction; any number of threads may use one at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// All that is needed to make this tokenizer again: make_tokenizer(data()) gives an equal one.
  virtual TokenizerData data() const = 0;
  virtual index vocabulary_size() const = 0;
  virtual SpecialTokens special() const = 0;

  /// The separator that decode writes between two tokens: nothing, or a space between words.
  virtual std::string_view separator() const { return {}; }

  /// The white space that decode leaves out behind a newline and at the beginning of a text.
  virtual LineSpace line_space() const { return LineSpace::kKept; }

  /// The tokens of a text, without begin and end. decode(encode(text)) == text for bytes and
  /// characters (in lower case, if the tokenizer puts text into it). For words it is the text with
  /// one space between words, and "<unk>" for each word that is not in the vocabulary.
  /// Throws kEncoding, "NAME:LINE:COLUMN: ...", for text that the tokenizer cannot represent.
  std::vector<token> encode(std::string_view text, std::string_view name = "text") const;

  /// Appends the tokens of a text.
  virtual void append_tokens(std::vector<token>& ids, std::string_view text,
                             std::string_view name) const = 0;

  /// Appends the tokens of a text, cut in one of the ways that there are. Tokenizers that know but
  /// one do as append_tokens.
  virtual void append_drawn(std::vector<token>& ids, std::string_view text, std::string_view name,
                            const DrawnCut&) const {
    append_tokens(ids, text, name);
  }

  /// Whether this token can occur in the text from which the tokenizer was learned. A token that
  /// cannot was never a target in training, so a model knows nothing about it. False for special
  /// tokens, but for one that is the newline of a text (subwords).
  virtual bool occurs_in_learned_text(token id) const = 0;

  /// How many tokens encode makes of a text whose characters are all in the vocabulary; of
  /// subwords, about the most.
  virtual index token_count(std::string_view text) const = 0;

  /// Appends the bytes that a token stands for: none for a special token, but "<unk>" for the
  /// unknown word.
  /// Throws kShape if it is not in the vocabulary.
  void append_bytes(std::string& out, token id) const;

  /// The bytes of all tokens. They are UTF-8 if the tokens come from encode. A model may generate
  /// byte tokens in an order that is not UTF-8; StreamDecoder repairs that.
  std::string decode(std::span<const token> ids) const;

  /// [V]: how many bytes of text each token stands for, to compute bits per byte. These are the
  /// bytes of append_bytes, and 1 for the end token, which stands for the newline of a line. A word
  /// stands for the white space before it too, and the end of a line of words for nothing more. The
  /// unknown word has 0: it says nothing of the text. Space that line_space drops counts.
  std::vector<std::int32_t> bytes_predicted() const;

 protected:
  /// append_bytes of a token of the vocabulary.
  virtual void append_known(std::string& out, token id) const = 0;
};

/// Drops the spaces at the beginning of lines that Tokenizer::line_space says.
class SpaceDropper {
 public:
  SpaceDropper(LineSpace rule, bool at_start) : rule_(rule), at_start_(at_start) {}
  /// Takes it off the bytes of the next token.
  void drop(std::string& bytes);

 private:
  LineSpace rule_;
  bool at_start_;
};

/// Turns tokens into text one by one. It returns only whole characters and keeps the rest until it
/// is complete. Bytes that cannot become UTF-8 are returned as U+FFFD.
class StreamDecoder {
 public:
  /// `before`: what the text goes on with; a separator follows it, unless it is empty or ends with
  /// white space.
  explicit StreamDecoder(const Tokenizer& tokenizer, std::string_view before = {});

  std::string push(token id);
  /// Call it after the last token: returns what is still kept.
  std::string finish();

 private:
  std::string take(bool at_end);

  const Tokenizer& tokenizer_;
  SpaceDropper spaces_;
  std::string kept_;
  bool separates_;  // before the next token that stands for text
};

/// How a tokenizer is learned.
struct LearnOptions {
  bool lower = false;
  bool marks = true;
  WordSplit split = WordSplit::kSpaces;  ///< the characters that end a word
  index min_count = 2;                   ///< words that occur less often are unknown
  std::vector<std::string> words = {};   ///< if any: these are the words, whatever their number
  std::string model = {};                ///< kind sentencepiece: the bytes of a .model file
  std::string model_name = {};           ///< its name in errors
};

struct TokenizerKind {
  std::string_view name;
  std::string_view summary;
  bool has_words;  ///< min_count and words matter
  bool has_lower;  ///< can put text into lower case
  bool has_model;  ///< is not learned, but a file
  /// Learns from a text, called `name` in errors. Throws kEncoding, kInputTooSmall.
  TokenizerData (*learn)(std::string_view text, std::string_view name, const LearnOptions& options);
  /// Throws kModelDamaged if the data does not fit the kind.
  std::unique_ptr<Tokenizer> (*make)(const TokenizerData& data);
};

TokenizerData learn_bytes(std::string_view text, std::string_view name,
                          const LearnOptions& options);
TokenizerData learn_characters(std::string_view text, std::string_view name,
                               const LearnOptions& options);
TokenizerData learn_words(std::string_view text, std::string_view name,
                          const LearnOptions& options);
TokenizerData learn_pieces(std::string_view text, std::string_view name,
                           const LearnOptions& options);
std::unique_ptr<Tokenizer> make_byte_tokenizer(const TokenizerData& data);
std::unique_ptr<Tokenizer> make_char_tokenizer(const TokenizerData& data);
std::unique_ptr<Tokenizer> make_word_tokenizer(const TokenizerData& data);
std::unique_ptr<Tokenizer> make_piece_tokenizer(const TokenizerData& data);

inline constexpr std::array kTokenizers = {
    TokenizerKind{"byte", "one token a byte; keeps any bytes", false, false, false, learn_bytes,
                  make_byte_tokenizer},
    TokenizerKind{"char", "one token a character of the training text; others are spelled in bytes",
                  false, true, false, learn_characters, make_char_tokenizer},
    TokenizerKind{kWordKind, "one token a word of the training text; others are unknown", true,
                  true, false, learn_words, make_word_tokenizer},
    TokenizerKind{kPieceKind, "the pieces of a .model file of SentencePiece", false, false, true,
                  learn_pieces, make_piece_tokenizer},
};

/// special() and append_known of bytes and characters, whose first ids are those of
/// kFirstByteToken.
SpecialTokens marks_before_bytes(const TokenizerData& data);
void append_byte(std::string& out, token id);

/// "byte|char|..."
std::string tokenizer_names();
/// The kind called `name`. Throws kOptionValue, which lists the known kinds.
const TokenizerKind& tokenizer_kind(std::string_view name);

/// A tokenizer of the kind named in the data. Throws kModelDamaged.
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerData& data);

}  // namespace fovea

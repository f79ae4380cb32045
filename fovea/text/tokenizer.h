// SPDX-License-Identifier: Apache-2.0
// Turns text into tokens and back, without loss.
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

/// Immutable after construction; any number of threads may use one at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// All that is needed to make this tokenizer again: make_tokenizer(data()) gives an equal one.
  virtual TokenizerData data() const = 0;
  virtual index vocabulary_size() const = 0;

  /// The tokens of a text, without special tokens; decode(encode(text)) == text.
  /// Throws kEncoding, "NAME:LINE:COLUMN: ...", for text that the tokenizer cannot represent.
  virtual std::vector<token> encode(std::string_view text,
                                    std::string_view name = "text") const = 0;

  /// Whether this token can occur in the text from which the tokenizer was learned. A token that
  /// cannot was never a target in training, so a model knows nothing about it. False for special
  /// tokens.
  virtual bool occurs_in_learned_text(token id) const = 0;

  /// How many tokens encode makes of a text whose characters are all in the vocabulary.
  virtual index token_count(std::string_view text) const = 0;

  /// Appends the bytes that a token stands for: none for a special token.
  /// Throws kShape if it is not in the vocabulary.
  void append_bytes(std::string& out, token id) const;

  /// The bytes of all tokens. They are UTF-8 if the tokens come from encode. A model may generate
  /// byte tokens in an order that is not UTF-8; StreamDecoder repairs that.
  std::string decode(std::span<const token> ids) const;

  /// [V]: how many bytes of text each token stands for, to compute bits per byte. These are the
  /// bytes of append_bytes, and 1 for the end token, which stands for the newline of a line.
  std::vector<std::int32_t> bytes_predicted() const;

 protected:
  /// The bytes of a token from kFirstLearnedToken on.
  virtual std::string learned_bytes(token id) const = 0;
};

/// Turns tokens into text one by one. It returns only whole characters and keeps the rest until it
/// is complete. Bytes that cannot become UTF-8 are returned as U+FFFD.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  std::string push(token id);
  /// Call it after the last token: returns what is still kept.
  std::string finish();

 private:
  std::string take(bool at_end);

  const Tokenizer& tokenizer_;
  std::string kept_;
};

struct TokenizerKind {
  std::string_view name;
  std::string_view summary;
  /// Learns from a text, called `name` in errors.
  TokenizerData (*learn)(std::string_view text, std::string_view name);
  /// Throws kModelDamaged if the data does not fit the kind.
  std::unique_ptr<Tokenizer> (*make)(const TokenizerData& data);
};

TokenizerData learn_bytes(std::string_view text, std::string_view name);
TokenizerData learn_characters(std::string_view text, std::string_view name);
std::unique_ptr<Tokenizer> make_byte_tokenizer(const TokenizerData& data);
std::unique_ptr<Tokenizer> make_char_tokenizer(const TokenizerData& data);

inline constexpr std::array kTokenizers = {
    TokenizerKind{"byte", "one token a byte; keeps any bytes", learn_bytes, make_byte_tokenizer},
    TokenizerKind{"char", "one token a character of the training text; others are spelled in bytes",
                  learn_characters, make_char_tokenizer},
};

/// The kind called `name`. Throws kOptionValue, which lists the known kinds.
const TokenizerKind& tokenizer_kind(std::string_view name);

/// A tokenizer of the kind named in the data. Throws kModelDamaged.
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerData& data);

}  // namespace fovea

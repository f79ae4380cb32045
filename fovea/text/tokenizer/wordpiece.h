// SPDX-License-Identifier: Apache-2.0
// WordPiece (Schuster, Nakajima 2012), as BERT cuts text: a word is cut into the longest pieces of
// the vocabulary from its front on. Ids are those of the library `tokenizers`.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/keyed_hash.h"
#include "fovea/text/tokenizer.h"
#include "fovea/text/tokenizer/added_tokens.h"

namespace fovea {

// How BERT writes a text before it looks for words (Devlin et al. 2019; the file tokenization.py of
// their code), as the library `tokenizers` does it. That decides with the classes of Unicode 8,
// which never change, so they stand here as they are.

struct BertNormalizer {
  bool clean = true;    ///< leave out controls, and write each white space as a blank
  bool cjk = true;      ///< a blank before and behind each Chinese character
  bool accents = true;  ///< take characters apart (NFD), and leave out nonspacing marks
  bool lower = true;

  friend bool operator==(const BertNormalizer&, const BertNormalizer&) = default;
};

/// The text as the normalizer writes it. Bytes that are not UTF-8 become U+FFFD, which `clean`
/// leaves out.
std::string normalized(std::string_view text, const BertNormalizer& normalizer);

/// Whether each such character is a word of its own: punctuation, and signs of ASCII.
bool is_bert_punctuation(char32_t c);

/// The marks that a model wants around a text, or around the two of a pair.
struct MarksAround {
  std::vector<token> before{}, after{};
  std::vector<token> between{};  ///< the texts of a pair; empty: the model reads none
  bool typed = false;            ///< what follows them has the second type of tokens
};

struct WordPieceModel {
  std::vector<std::string> names;  ///< of the tokens; "##ing" continues a word
  std::string unknown = "[UNK]";
  std::string prefix = "##";
  index longest_word = 100;  ///< a word of more characters is unknown
  std::optional<BertNormalizer> normalizer = BertNormalizer{};
  std::vector<AddedToken> added{};
  MarksAround marks{};
  bool tidies = true;  ///< decode() leaves out blanks before punctuation
};

/// Immutable; any number of threads may use one at once.
class WordPiece {
 public:
  /// Throws kModelDamaged for a vocabulary that contradicts itself: a name that is there twice, no
  /// unknown token, an added token whose id has another name.
  explicit WordPiece(WordPieceModel model);
  WordPiece(const WordPiece&) = delete;
  WordPiece& operator=(const WordPiece&) = delete;

  const WordPieceModel& model() const { return model_; }
  index size() const { return static_cast<index>(model_.names.size()); }
  /// kNoToken if no token has the name.
  token id_of(std::string_view name) const;
  const std::string& name(token id) const { return model_.names[static_cast<std::size_t>(id)]; }

  /// Appends the tokens of a text, without the marks around it. Bytes that are not UTF-8 become
  /// U+FFFD.
  void encode(std::vector<token>& ids, std::string_view text) const;
  /// The text of tokens, with a blank between two words. Marks stand for nothing.
  std::string decode(std::span<const token> ids) const;

 private:
  // The vocabulary, of pieces that begin words or that continue them, without their prefix.
  struct Pieces {
    explicit Pieces(std::size_t count) : table(count) {}
    WordTable table;
    std::size_t longest = 0;  // bytes
  };

  void add_names();
  void add_added();
  void encode_normalized(std::vector<token>& ids, std::string_view text) const;
  void encode_plain(std::vector<token>& ids, std::string_view text) const;
  void encode_word(std::vector<token>& ids, std::string_view word, index characters) const;

  const WordPieceModel model_;
  Pieces begins_, continues_;
  token unknown_ = kNoToken;
  KeyedMap<std::string_view, token> ids_;
  AddedTokens raw_, normalized_;
  std::vector<bool> is_mark_;  // of each token
};

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// How the texts of an encoder become tokens: by the tokenizer of its folder, with the marks that
// stand around a text.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/pretrained/model_files.h"
#include "fovea/text/tokenizer.h"
#include "fovea/text/tokenizer/wordpiece.h"

namespace fovea {

/// Immutable; any number of threads may use one at once.
class EncoderTokenizer {
 public:
  virtual ~EncoderTokenizer() = default;
  EncoderTokenizer(const EncoderTokenizer&) = delete;
  EncoderTokenizer& operator=(const EncoderTokenizer&) = delete;

  virtual index size() const = 0;
  /// Appends the tokens of a text, without the marks around it. Bytes that are not UTF-8 become
  /// U+FFFD.
  virtual void append(std::vector<token>& ids, std::string_view text) const = 0;
  /// Appends the tokens of a word of a text whose words are known: those that it has behind a
  /// blank.
  virtual void append_word(std::vector<token>& ids, std::string_view word) const = 0;
  /// Whether a token may reach over a blank. If none does, what stands before a blank has the
  /// tokens that it has in the whole text.
  virtual bool reaches_over_blanks() const = 0;

  /// What a token is called: "##ing" of a WordPiece, else its bytes wherever it stands, of a mark
  /// its name.
  virtual std::string name(token id) const = 0;

  /// [CLS] and [SEP], or what they are called.
  const MarksAround& around() const { return around_; }
  /// How many stand around a text, and around the two of a pair.
  index marks() const { return std::ssize(around_.before) + std::ssize(around_.after); }
  index pair_marks() const { return marks() + std::ssize(around_.between); }

 protected:
  explicit EncoderTokenizer(MarksAround around) : around_(std::move(around)) {}

 private:
  const MarksAround around_;
};

std::unique_ptr<const EncoderTokenizer> encoder_tokenizer(WordPieceModel model);

/// The tokenizer among these files, for a model of this architecture ("": one that keeps it in
/// tokenizer.json or vocab.txt) with a table of `rows` embeddings. Throws kModelMissing,
/// kModelDamaged, and kModelWrongKind for one that fovea does not know.
std::unique_ptr<const EncoderTokenizer> read_encoder_tokenizer(const ModelFiles& files, index rows,
                                                               std::string_view architecture = "");

/// Throws kModelDamaged, "WHERE: ...", if texts of `most` tokens have no room for the marks.
void require_room_for_marks(const EncoderTokenizer& tokenizer, index most,
                            const std::string& where);

/// How an encoder reads texts.
struct EncoderText {
  std::unique_ptr<const EncoderTokenizer> tokenizer;
  index max_length = 0;  ///< tokens of a text, its marks among them
};

/// As the files say, for a model with so many rows of embeddings and positions. Throws as
/// read_encoder_tokenizer(), and kModelDamaged for more tokens than rows.
EncoderText read_encoder_text(const ModelFiles& files, index rows, index positions,
                              std::string_view architecture = "");

/// The files that say it, with the config.json of the model, as the archive that a model keeps that
/// began from this one.
std::string kept_encoder_text(const std::filesystem::path& folder);
/// The files in such an archive, whose bytes are called `where` in errors. Throws kModelDamaged.
ModelFiles kept_encoder_files(std::string_view archive, const std::string& where);

struct MarkedTokens {
  std::vector<token> ids;
  bool truncated = false;
};

/// The tokens of a text and the marks around it, at most `most` together: of a longer text the end
/// is left out. Of a long text only so much is read as is needed.
MarkedTokens marked_tokens(const EncoderTokenizer& tokenizer, std::string_view text, index most);

}  // namespace fovea

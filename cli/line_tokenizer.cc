// SPDX-License-Identifier: Apache-2.0
#include "cli/line_tokenizer.h"

#include <fmt/core.h>

#include <filesystem>

#include "cli/common_options.h"
#include "fovea/base/error.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/tokenizer_files.h"
#include "fovea/text/utf8.h"
#include "fovea/train/model_folder.h"

namespace fovea::cli {

namespace {

class PieceLines final : public LineTokenizer {
 public:
  explicit PieceLines(const std::string& file) : pieces_(piece_model_bytes(file), file) {}

  index size() const override { return pieces_.size(); }
  std::vector<EncodedPiece> encode(std::string_view line) const override {
    return pieces_.encode(line);
  }
  token id_of(std::string_view piece) const override {
    const token id = pieces_.id_of(piece);
    return id == kNoToken ? pieces_.model().unknown : id;
  }
  std::string decode(std::span<const EncodedPiece> pieces) const override {
    return pieces_.decode(pieces);
  }
  std::string decode(std::span<const token> ids) const override { return pieces_.decode(ids); }
  const SentencePiece* sentence_piece() const override { return &pieces_; }

 private:
  SentencePiece pieces_;
};

// Pieces are written as the vocabulary has them: without spaces.
class ByteBpeLines final : public LineTokenizer {
 public:
  explicit ByteBpeLines(const std::string& file) : bpe_(load_pretrained_text(file).bpe) {}

  index size() const override { return bpe_->size(); }
  std::vector<EncodedPiece> encode(std::string_view line) const override {
    std::vector<token> ids;
    bpe_->encode(ids, line);
    std::vector<EncodedPiece> pieces;
    for (const token id : ids) pieces.push_back({bpe_->name(id), id});
    return pieces;
  }
  token id_of(std::string_view piece) const override {
    const token id = bpe_->id_of(piece);
    if (id != kNoToken) return id;
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{} is no piece of the vocabulary", excerpt(piece)),
                "decode with the model that has encoded");
  }
  std::string decode(std::span<const EncodedPiece> pieces) const override {
    std::string text;
    for (const EncodedPiece& piece : pieces) bpe_->append_bytes(text, piece.id);
    return text;
  }
  std::string decode(std::span<const token> ids) const override {
    std::string text;
    for (const token id : ids) bpe_->append_bytes(text, id);
    return text;
  }

 private:
  std::shared_ptr<const ByteBpe> bpe_;
};

// Pieces are written as the vocabulary has them: "##ing" continues a word.
class WordPieceLines final : public LineTokenizer {
 public:
  explicit WordPieceLines(const std::string& folder) : pieces_(read_wordpiece(folder)) {}

  index size() const override { return pieces_.size(); }
  std::vector<EncodedPiece> encode(std::string_view line) const override {
    std::vector<token> ids;
    pieces_.encode(ids, line);
    std::vector<EncodedPiece> pieces;
    for (const token id : ids) pieces.push_back({pieces_.name(id), id});
    return pieces;
  }
  token id_of(std::string_view piece) const override {
    const token id = pieces_.id_of(piece);
    return id == kNoToken ? pieces_.id_of(pieces_.model().unknown) : id;
  }
  std::string decode(std::span<const EncodedPiece> pieces) const override {
    std::vector<token> ids;
    for (const EncodedPiece& piece : pieces) ids.push_back(piece.id);
    return pieces_.decode(ids);
  }
  std::string decode(std::span<const token> ids) const override { return pieces_.decode(ids); }

 private:
  WordPiece pieces_;
};

}  // namespace

std::unique_ptr<LineTokenizer> load_line_tokenizer(const std::string& file) {
  namespace fs = std::filesystem;
  if (is_gguf(file)) return std::make_unique<ByteBpeLines>(file);
  // A folder of fovea may have a vocab.txt, too: the words of a word tokenizer.
  const fs::path folder = file;
  if (fs::is_directory(folder) && !fs::exists(folder / kManifestName)) {
    const std::string kind = tokenizer_model(folder);
    if (kind == "BPE") return std::make_unique<ByteBpeLines>(file);
    if (!kind.empty()) return std::make_unique<WordPieceLines>(file);
  }
  return std::make_unique<PieceLines>(file);
}

}  // namespace fovea::cli

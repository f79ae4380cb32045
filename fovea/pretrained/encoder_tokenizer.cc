// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/encoder_tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/pretrained/folder_subwords.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/tokenizer_files.h"
#include "fovea/text/sentencepiece/piece_model.h"
#include "fovea/text/tokenizer/wordpiece.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

class WordPieceOfEncoder : public EncoderTokenizer {
 public:
  explicit WordPieceOfEncoder(WordPieceModel model)
      : EncoderTokenizer(model.marks), pieces_(std::move(model)) {}

  index size() const override { return pieces_.size(); }
  void append(std::vector<token>& ids, std::string_view text) const override {
    pieces_.encode(ids, text);
  }
  void append_word(std::vector<token>& ids, std::string_view word) const override {
    pieces_.encode(ids, word);
  }
  bool reaches_over_blanks() const override {
    return std::ranges::any_of(pieces_.model().added, [](const AddedToken& added) {
      return added.text.find(' ') != std::string::npos;
    });
  }
  std::string name(token id) const override {
    return pieces_.model().names[static_cast<std::size_t>(id)];
  }

 private:
  const WordPiece pieces_;
};

// Byte-level BPE and unigram models.
class SubwordsOfEncoder : public EncoderTokenizer {
 public:
  explicit SubwordsOfEncoder(FolderSubwords read)
      : EncoderTokenizer(std::move(read.marks)), subwords_(std::move(read.subwords)) {
    for (token id = 0; id < subwords_->size() && !reaches_; ++id) {
      const std::string_view name = subwords_->name(id);
      reaches_ = name.find(' ') != name.npos || name.find(kSpaceSymbol, 1) != name.npos;
    }
  }

  index size() const override { return subwords_->size(); }
  void append(std::vector<token>& ids, std::string_view text) const override {
    if (find_invalid_utf8(text)) {
      subwords_->encode(ids, valid_utf8(text));
    } else {
      subwords_->encode(ids, text);
    }
  }
  void append_word(std::vector<token>& ids, std::string_view word) const override {
    std::string behind_blank(1, ' ');
    behind_blank.append(word);
    append(ids, behind_blank);
  }
  bool reaches_over_blanks() const override { return reaches_; }
  std::string name(token id) const override {
    std::string text;
    subwords_->append_bytes(text, id);
    return text;
  }

 private:
  const std::shared_ptr<const Subwords> subwords_;
  bool reaches_ = false;
};

// A word and the blank behind it seldom have more bytes.
constexpr std::size_t kBytesOfWord = 6;

// The first blank at `from` or behind, before which no white space stands; npos: there is none.
std::size_t find_blank(std::string_view text, std::size_t from) {
  for (std::size_t at = text.find(' ', from); at != text.npos; at = text.find(' ', at + 1)) {
    if (!ends_with_white_space(text.substr(0, at))) return at;
  }
  return text.npos;
}

}  // namespace

std::unique_ptr<const EncoderTokenizer> encoder_tokenizer(WordPieceModel model) {
  return std::make_unique<WordPieceOfEncoder>(std::move(model));
}

std::unique_ptr<const EncoderTokenizer> read_encoder_tokenizer(const ModelFiles& files, index rows,
                                                               std::string_view architecture) {
  // Other files say neither the marks around a text nor, in XLM-RoBERTa, the ids; those of an
  // architecture that is named have rules of their own.
  const bool knows = files.has("tokenizer.json") || !architecture.empty();
  const std::string kind = knows ? tokenizer_model(files) : std::string();
  if (kind != "BPE" && kind != "Unigram") return encoder_tokenizer(read_wordpiece(files));
  return std::make_unique<SubwordsOfEncoder>(
      read_folder_subwords(files, architecture, rows, kNoToken));
}

void require_room_for_marks(const EncoderTokenizer& tokenizer, index most,
                            const std::string& where) {
  if (tokenizer.marks() <= most) return;
  fail(ErrorCode::kModelDamaged, "{}: texts have {} marks and at most {} tokens", where,
       tokenizer.marks(), most);
}

namespace {

// As the tokenizer says, and never more than the model has positions for.
index longest_text(const ModelFiles& files, index positions) {
  constexpr std::string_view kRules = "tokenizer_config.json";
  if (!files.has(kRules)) return positions;
  const Json json = files.json(kRules);
  // Models that say nothing have a number here that no text is as long as.
  const double said =
      ForeignObject(json, files.path(kRules)).number("model_max_length", 1, 1e300, INT32_MAX);
  return static_cast<index>(std::min(said, static_cast<double>(positions)));
}

// What the text of an encoder is read from, and the names of marks, for other programs.
constexpr std::string_view kTextOfEncoder[] = {"config.json", "tokenizer.json", "vocab.txt",
                                               "tokenizer_config.json", "special_tokens_map.json"};

}  // namespace

EncoderText read_encoder_text(const ModelFiles& files, index rows, index positions,
                              std::string_view architecture) {
  EncoderText text{.tokenizer = read_encoder_tokenizer(files, rows, architecture),
                   .max_length = longest_text(files, positions)};
  if (text.tokenizer->size() > rows) {
    fail(ErrorCode::kModelDamaged, "{}: the tokenizer has {} tokens, the model {}", files.where(),
         text.tokenizer->size(), rows);
  }
  require_room_for_marks(*text.tokenizer, text.max_length, files.where());
  return text;
}

std::string kept_encoder_text(const fs::path& folder) {
  const ModelFiles files(folder);
  std::vector<std::string_view> names(std::begin(kTextOfEncoder), std::end(kTextOfEncoder));
  if (files.has("tokenizer.json")) std::erase(names, "vocab.txt");
  return files.archive(names);
}

ModelFiles kept_encoder_files(std::string_view archive, const std::string& where) {
  return ModelFiles::of_archive(archive, kTextOfEncoder, where);
}

MarkedTokens marked_tokens(const EncoderTokenizer& tokenizer, std::string_view text, index most) {
  const MarksAround& marks = tokenizer.around();
  const auto last = static_cast<std::size_t>(most) - marks.after.size();
  MarkedTokens result;
  const auto read = [&](std::string_view part) {
    result.ids = marks.before;
    tokenizer.append(result.ids, part);
    result.truncated = result.ids.size() > last;
    if (result.truncated) result.ids.resize(last);
  };
  bool done = false;
  const std::size_t first = tokenizer.reaches_over_blanks()
                                ? text.size()
                                : kBytesOfWord * static_cast<std::size_t>(most + 1);
  for (std::size_t bytes = first; !done && bytes < text.size(); bytes *= 2) {
    const std::size_t blank = find_blank(text, bytes);
    if (blank == text.npos) break;
    read(text.substr(0, blank));
    done = result.truncated;
  }
  if (!done) read(text);
  result.ids.insert(result.ids.end(), marks.after.begin(), marks.after.end());
  return result;
}

}  // namespace fovea

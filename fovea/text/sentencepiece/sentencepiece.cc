// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/sentencepiece/sentencepiece.h"

#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::string_view kShorterLines = "use shorter lines, or a machine with more memory";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::unique_ptr<PieceCutter> cutter_of(const PieceModel& model, const PieceNormalizer& normalizer) {
  return model.algorithm == PieceAlgorithm::kUnigram ? make_unigram_cutter(model)
                                                     : make_bpe_cutter(model, normalizer);
}

// Bytes become characters; each byte that belongs to none becomes U+FFFD.
void append_characters(std::string& out, std::string_view bytes) {
  while (!bytes.empty()) {
    const DecodedCharacter c = decode_character(bytes);
    const bool valid = c.status == Utf8Status::kValid;
    const std::size_t length = valid ? static_cast<std::size_t>(c.length) : 1;
    out += valid ? bytes.substr(0, length) : kReplacement;
    bytes.remove_prefix(length);
  }
}

// Turns pieces into text, one after another.
class PieceDecoder {
 public:
  explicit PieceDecoder(const PieceModel& model) : model_(model) {}

  void add(std::string_view text, token id) {
    const ModelPiece& piece = model_.pieces[static_cast<std::size_t>(id)];
    if (piece.type == PieceType::kByte) {
      bytes_ += static_cast<char>(byte_of_piece(piece.text));
      return;
    }
    finish_bytes();
    at_begin_ = at_begin_ && !ate_space_ && out_.empty();
    ate_space_ = false;
    if (piece.type == PieceType::kControl) return;
    if (piece.type == PieceType::kUnknown) {
      out_ += text == piece.text ? std::string_view(model_.unknown_surface) : text;
      return memory_.grow_to(static_cast<double>(out_.size()));
    }
    const NormalizerSettings& settings = model_.normalizer;
    if (at_begin_ && (settings.add_dummy_prefix || settings.remove_extra_whitespaces) &&
        text.starts_with(kSpaceSymbol)) {
      text.remove_prefix(kSpaceSymbol.size());
      ate_space_ = !settings.remove_extra_whitespaces;  // otherwise all at the front are eaten
    }
    append_spaced(out_, text);
    memory_.grow_to(static_cast<double>(out_.size()));
  }

  std::string finish() {
    finish_bytes();
    return std::move(out_);
  }

 private:
  void finish_bytes() {
    append_characters(out_, bytes_);
    bytes_.clear();
  }

  const PieceModel& model_;
  std::string out_, bytes_;
  bool at_begin_ = true, ate_space_ = false;
  GrowingMemory memory_{"the text of a line", kShorterLines};
};

}  // namespace

void append_spaced(std::string& out, std::string_view piece) {
  for (std::size_t at = piece.find(kSpaceSymbol); at != piece.npos; at = piece.find(kSpaceSymbol)) {
    out.append(piece.substr(0, at)).append(" ");
    piece.remove_prefix(at + kSpaceSymbol.size());
  }
  out += piece;
}

SentencePiece::SentencePiece(std::string_view file, std::string_view name)
    : SentencePiece(read_piece_model(file, name), name) {}

SentencePiece::SentencePiece(PieceModel model, std::string_view name)
    : model_(std::move(model)), normalizer_(model_, name), cutter_(cutter_of(model_, normalizer_)) {
  for (const bool texts : {false, true}) {
    for (std::size_t id = 0; id < model_.pieces.size(); ++id) {
      const ModelPiece& piece = model_.pieces[id];
      if (is_text(piece.type) == texts) ids_.emplace(piece.text, static_cast<token>(id));
    }
  }
  if (!model_.byte_fallback) return;
  bytes_.resize(256);
  for (std::size_t id = 0; id < model_.pieces.size(); ++id) {
    const ModelPiece& piece = model_.pieces[id];
    if (piece.type != PieceType::kByte) continue;
    bytes_[static_cast<std::size_t>(byte_of_piece(piece.text))] = static_cast<token>(id);
  }
}

token SentencePiece::id_of(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? kNoToken : found->second;
}

std::vector<EncodedPiece> SentencePiece::named(const std::vector<CutPiece>& cut) const {
  std::vector<EncodedPiece> pieces;
  pieces.reserve(cut.size());
  bool behind_unknown = false;
  for (const auto& [text, id] : cut) {
    const bool unknown = id == model_.unknown;
    if (unknown && model_.byte_fallback) {
      for (const char byte : text) {
        const token own = bytes_[static_cast<unsigned char>(byte)];
        pieces.push_back({model_.pieces[static_cast<std::size_t>(own)].text, own});
      }
    } else if (unknown && behind_unknown) {
      pieces.back().text += text;
    } else {
      pieces.push_back({std::string(text), id});
    }
    behind_unknown = unknown;
  }
  return pieces;
}

std::string SentencePiece::normalized(std::string_view text) const {
  std::string normalized = normalizer_.normalize(text);
  // Most is taken by a line whose pieces have a byte each. Short lines need no look at the system.
  constexpr double kOfByte = 128;
  constexpr std::size_t kLongLine = std::size_t{1} << 20;
  if (normalized.size() >= kLongLine) {
    require_memory("the cut of a line", kOfByte * static_cast<double>(normalized.size()),
                   kShorterLines);
  }
  return normalized;
}

std::vector<EncodedPiece> SentencePiece::encode(std::string_view text) const {
  const std::string normalized = this->normalized(text);
  return named(cutter_->cut(normalized));
}

std::vector<EncodedPiece> SentencePiece::sample(std::string_view text, const CutSampling& sampling,
                                                Random& random) const {
  const std::string normalized = this->normalized(text);
  return named(cutter_->sample(normalized, sampling, random));
}

std::vector<std::vector<EncodedPiece>> SentencePiece::best(std::string_view text, index n) const {
  const std::string normalized = this->normalized(text);
  std::vector<std::vector<EncodedPiece>> cuts;
  for (const ScoredCut& cut : cutter_->best(normalized, n)) cuts.push_back(named(cut.pieces));
  return cuts;
}

std::string SentencePiece::decode(std::span<const EncodedPiece> pieces) const {
  PieceDecoder decoder(model_);
  for (const EncodedPiece& piece : pieces) {
    check(piece.id >= 0 && piece.id < size(), "subwords: token {} is not in the vocabulary of {}",
          piece.id, size());
    decoder.add(piece.text, piece.id);
  }
  return normalizer_.denormalize(decoder.finish());
}

std::string SentencePiece::decode(std::span<const token> ids) const {
  PieceDecoder decoder(model_);
  for (const token id : ids) {
    check(id >= 0 && id < size(), "subwords: token {} is not in the vocabulary of {}", id, size());
    decoder.add(model_.pieces[static_cast<std::size_t>(id)].text, id);
  }
  return normalizer_.denormalize(decoder.finish());
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// The pieces of a .model file. A text is cut line by line, as such models are learned; the end mark
// stands for each newline.
#include "fovea/text/sentencepiece/sentencepiece.h"

#include "fovea/base/check.h"
#include "fovea/text/tokenizer.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

// A stream of its own for each epoch and line: texts of many lines are one text.
Random stream_of(const DrawnCut& cut, std::uint64_t line) {
  constexpr int kBitsOfNumber = 40;
  return Random(cut.seed, RandomUse::kSampling, (cut.epoch << kBitsOfNumber) + cut.number + line);
}

// Why a model cannot be that of a text; empty if it can.
std::string_view what_lacks(const PieceModel& model) {
  if (model.begin == kNoToken || model.end == kNoToken) {
    return "lacks <s> or </s>, between which lines stand";
  }
  if (!model.denormalizer.empty()) return "rewrites the text of its pieces (denormalizer_spec)";
  return model.space_is_suffix ? "puts spaces behind words" : "";
}

class PieceTokenizer final : public Tokenizer {
 public:
  explicit PieceTokenizer(const TokenizerData& data) : data_(data), pieces_(data_.model) {
    const std::string_view lacking = what_lacks(pieces_.model());
    if (!lacking.empty()) fail(ErrorCode::kModelDamaged, "the model of subwords {}", lacking);
  }

  TokenizerData data() const override { return data_; }
  index vocabulary_size() const override { return pieces_.size(); }
  SpecialTokens special() const override {
    const PieceModel& model = pieces_.model();
    if (!data_.marks) return {.unknown = model.unknown};
    return {.begin = model.begin, .end = model.end, .unknown = model.unknown};
  }

  LineSpace line_space() const override {
    const NormalizerSettings& rules = pieces_.model().normalizer;
    if (rules.remove_extra_whitespaces) return LineSpace::kAllDropped;
    return rules.add_dummy_prefix ? LineSpace::kOneDropped : LineSpace::kKept;
  }

  index token_count(std::string_view text) const override {
    const index most = pieces_.model().byte_fallback ? std::ssize(text) : count_characters(text);
    return most + (text.empty() ? 0 : 1);
  }

  void append_tokens(std::vector<token>& ids, std::string_view text,
                     std::string_view name) const override {
    append(ids, text, name,
           [&](std::string_view line, std::uint64_t) { return pieces_.encode(line); });
  }

  void append_drawn(std::vector<token>& ids, std::string_view text, std::string_view name,
                    const DrawnCut& cut) const override {
    append(ids, text, name, [&](std::string_view line, std::uint64_t number) {
      Random random = stream_of(cut, number);
      return pieces_.sample(line, {.alpha = cut.alpha}, random);
    });
  }

  bool occurs_in_learned_text(token id) const override {
    if (id == pieces_.model().end) return true;
    const PieceType type = piece(id).type;
    return type == PieceType::kNormal || type == PieceType::kUserDefined ||
           type == PieceType::kByte;
  }

 private:
  const ModelPiece& piece(token id) const {
    return pieces_.model().pieces[static_cast<std::size_t>(id)];
  }

  template <class Cut>
  void append(std::vector<token>& ids, std::string_view text, std::string_view name,
              Cut cut) const {
    require_utf8(text, name);
    for (std::uint64_t number = 0; !text.empty(); ++number) {
      const std::size_t newline = text.find('\n');
      for (const EncodedPiece& one : cut(text.substr(0, newline), number)) ids.push_back(one.id);
      if (newline == text.npos) return;
      ids.push_back(pieces_.model().end);
      text.remove_prefix(newline + 1);
    }
  }

  void append_known(std::string& out, token id) const override {
    const ModelPiece& known = piece(id);
    if (id == pieces_.model().end) {
      out += '\n';
    } else if (known.type == PieceType::kUnknown) {
      out += pieces_.model().unknown_surface;
    } else if (known.type == PieceType::kByte) {
      out += static_cast<char>(byte_of_piece(known.text));
    } else if (known.type != PieceType::kControl) {
      append_spaced(out, known.text);
    }
  }

  const TokenizerData data_;
  const SentencePiece pieces_;
};

}  // namespace

TokenizerData learn_pieces(std::string_view, std::string_view, const LearnOptions& options) {
  if (options.model.empty() && options.model_name.empty()) {
    throw Error(ErrorCode::kUsage, "--tokenizer sentencepiece: --tokenizer-model is missing",
                "learn a model first: fovea tokenizer train --train FILE -o FILE.model");
  }
  const std::string name = options.model_name.empty() ? "model" : options.model_name;
  const PieceModel model = SentencePiece(options.model, name).model();
  if (const std::string_view lacking = what_lacks(model); !lacking.empty()) {
    throw Error(ErrorCode::kModelWrongKind, fmt::format("{}: the model {}", name, lacking),
                "learn another: fovea tokenizer train --train FILE -o FILE.model");
  }
  TokenizerData data{.kind = std::string(kPieceKind)};
  data.marks = options.marks;
  data.model = options.model;
  return data;
}

std::unique_ptr<Tokenizer> make_piece_tokenizer(const TokenizerData& data) {
  if (data.lower || !data.characters.empty() || !data.words.empty()) {
    fail(ErrorCode::kModelDamaged, "a tokenizer of subwords has nothing but a model");
  }
  return std::make_unique<PieceTokenizer>(data);
}

}  // namespace fovea

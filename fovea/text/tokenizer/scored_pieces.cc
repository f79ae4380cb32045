// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/scored_pieces.h"

#include <utility>

#include "fovea/base/check.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

// The blank in front of a text is ours to write: there is none behind what is no mark.
PieceModel with_own_prefix(ScoredPiecesModel& from, std::string_view name) {
  PieceModel model = std::move(from.pieces);
  const NormalizerSettings& rules = model.normalizer;
  const std::string_view other =
      rules.remove_extra_whitespaces != from.merges_blanks
          ? "leave out blanks (remove_extra_whitespaces)"
      : !rules.escape_whitespaces   ? "hold blanks as they are (escape_whitespaces)"
      : model.space_is_suffix       ? "have a blank behind words"
      : !model.denormalizer.empty() ? "rewrite decoded text (denormalizer_spec)"
                                    : "";
  if (!other.empty()) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: pieces that {} are not those of a language model that fovea knows",
                            name, other),
                "save the tokenizer with transformers, as tokenizer.json");
  }
  // Where blanks are left out, one in front of the text would be, too.
  model.normalizer.add_dummy_prefix = from.merges_blanks && from.prefix;
  return model;
}

}  // namespace

ScoredPieces::ScoredPieces(ScoredPiecesModel model, std::string_view name)
    : prefix_(model.prefix),
      writes_prefix_(model.prefix && !model.merges_blanks),
      begin_(model.begin),
      end_(model.end),
      pieces_(with_own_prefix(model, name), name) {
  std::array<std::vector<AddedToken>, 2> found;
  const auto add = [&](token id, Marks marks) {
    found[static_cast<std::size_t>(marks)].push_back({.text = this->name(id), .id = id});
  };
  for (const token id : model.wholes) {
    check(id >= 0 && id < size(), "{}: token {} of {}", name, id, size());
    for (const Marks marks : {Marks::kRead, Marks::kAreText}) add(id, marks);
  }
  for (token id = 0; id < size(); ++id) {
    if (is_mark(id)) add(id, Marks::kRead);
  }
  for (const std::size_t n : {0, 1}) wholes_[n] = AddedTokens(std::move(found[n]));
}

void ScoredPieces::encode(std::vector<token>& ids, std::string_view text, Marks marks,
                          TextPlace) const {
  std::string part;
  wholes_[static_cast<std::size_t>(marks)].split(
      text,
      [&](std::size_t, std::string_view plain) {
        part.clear();
        if (writes_prefix_) part.push_back(' ');
        part.append(plain);
        for (const EncodedPiece& one : pieces_.encode(part)) ids.push_back(one.id);
      },
      [&](const AddedToken& added) { ids.push_back(added.id); });
}

void ScoredPieces::append_bytes(std::string& out, token id) const {
  const ModelPiece& one = piece(id);
  if (one.type == PieceType::kByte) {
    out += static_cast<char>(byte_of_piece(one.text));
  } else if (is_mark(id)) {
    out += one.text;
  } else {
    append_spaced(out, one.text);
  }
}

std::string ScoredPieces::decode(std::span<const token> ids) const {
  std::string text;
  for (const token id : ids) {
    check(id >= 0 && id < size(), "tokenizer: token {} is not in the vocabulary of {}", id, size());
    append_bytes(text, id);
  }
  if (prefix_ && text.starts_with(' ')) text.erase(0, 1);
  return valid_utf8(text);
}

}  // namespace fovea

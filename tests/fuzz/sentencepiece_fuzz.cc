// SPDX-License-Identifier: Apache-2.0
// A .model file is read or refused; one that is read cuts any text into pieces that make it up, and
// decodes any of its ids. Rules of normalization, which no input would guess, are wrapped in a
// model that is right.
#include <cstdint>
#include <string>
#include <vector>

#include "fovea/text/sentencepiece/sentencepiece.h"
#include "tests/fuzz/fuzz.h"
#include "tests/text/sentencepiece/proto_writer.h"

namespace fovea {
namespace {

void use(const SentencePiece& model, std::string_view text) {
  std::vector<token> ids;
  for (const EncodedPiece& piece : model.encode(text)) {
    require(piece.id >= 0 && piece.id < model.size() && !piece.text.empty());
    ids.push_back(piece.id);
  }
  model.decode(ids);
  Random random(1, RandomUse::kTest);
  model.sample(text, {.alpha = 0.5}, random);
  for (token id = 0; id < model.size() && id < 300; ++id) model.decode(std::vector<token>{id});
}

void read(const std::string& file, std::string_view text) {
  allow_refusal([&] { use(SentencePiece(file, "input"), text.substr(0, 400)); });
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fovea;
  const std::string_view text = text_of(data, size);
  read(std::string(text), text);
  const std::vector<ModelPiece> pieces = {{"a", -1, PieceType::kNormal},
                                          {"ab", -1.5, PieceType::kNormal},
                                          {"b", -2, PieceType::kUnused},
                                          {"ba", -3, PieceType::kUserDefined},
                                          {"▁", -2, PieceType::kNormal}};
  for (const auto algorithm : {PieceAlgorithm::kUnigram, PieceAlgorithm::kBpe}) {
    read(model_of(pieces, algorithm, plain_spaces(text)), "abab \x01 ba" + std::string(text));
    read(model_of(pieces, algorithm) + std::string(text), "abab ba");
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A tokenizer.json or vocab.txt is read or refused, as WordPiece, bytes or pieces; one that was
// read gives every text ids that it can decode. A config.json of BERT is read or refused.
#include <memory>
#include <string>
#include <vector>

#include "fovea/pretrained/encoder_table.h"
#include "fovea/pretrained/pieces_of_json.h"
#include "fovea/pretrained/tokenizer_files.h"
#include "fovea/text/utf8.h"
#include "tests/fuzz/fuzz.h"

namespace fovea {
namespace {

void encode(WordPieceModel model, std::string_view text) {
  const WordPiece pieces(std::move(model));
  std::vector<token> ids;
  pieces.encode(ids, text);
  for (const token id : ids) require(id >= 0 && id < pieces.size());
  pieces.decode(ids);
}

void encode(const Subwords& pieces, std::string_view text) {
  for (const Marks marks : {Marks::kRead, Marks::kAreText}) {
    std::vector<token> ids;
    pieces.encode(ids, valid_utf8(text.substr(0, 400)), marks);
    for (const token id : ids) require(id >= 0 && id < pieces.size());
    pieces.decode(ids);
    subwords_tokenizer({std::shared_ptr<const Subwords>(), &pieces})->decode(ids);
  }
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fovea;
  const std::string_view text = text_of(data, size);
  allow_refusal([&] { encode(wordpiece_from_vocabulary(text, "input", nullptr), text); });
  allow_refusal([&] {
    const Json json = parse_json(text, {"input"});
    allow_refusal([&] { encode(wordpiece_from_json(json, "input"), text); });
    allow_refusal([&] {
      const ForeignObject config(json, "input");
      encoder_config(encoder_architecture(config), config);
    });
    allow_refusal([&] { encode(ByteBpe(bpe_of_json(json, "input").model), text); });
    allow_refusal([&] {
      PiecesOfJson read = pieces_of_json(json, "input");
      for (const token id : read.marks.before) require(id >= 0);
      encode(PiecePipeline(std::move(read.model)), text);
    });
  });
  return 0;
}

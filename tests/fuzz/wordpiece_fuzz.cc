// SPDX-License-Identifier: Apache-2.0
// A tokenizer.json or vocab.txt is read or refused; one that was read gives every text ids that it
// can decode. A config.json of BERT is read or refused.
#include <string>
#include <vector>

#include "fovea/pretrained/encoder_table.h"
#include "fovea/pretrained/tokenizer_files.h"
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
  });
  return 0;
}

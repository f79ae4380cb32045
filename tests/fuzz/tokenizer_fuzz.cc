// SPDX-License-Identifier: Apache-2.0
// Any text that a tokenizer takes comes back; so does any file of a tokenizer that is read.
#include "fovea/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fovea::text_of(data, size);
  for (const fovea::TokenizerKind& kind : fovea::kTokenizers) {
    fovea::allow_refusal([&] {
      const auto tokenizer = kind.make(kind.learn(text.substr(0, size / 2), "input"));
      fovea::require(tokenizer->decode(tokenizer->encode(text)) == text);
    });
  }
  fovea::allow_refusal([&] {
    const fovea::TokenizerData read = fovea::tokenizer_data_from_text(text, "input");
    fovea::require(fovea::to_text(read) == text);
    fovea::make_tokenizer(read);
  });
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Any text that a tokenizer takes comes back (of words, the words); so does any file of a tokenizer
// that is read. A list of words is read or refused.
#include "fovea/text/tokenizer.h"
#include "fovea/text/word_list.h"
#include "tests/fuzz/fuzz.h"

namespace fovea {
namespace {

void learn_and_encode(const TokenizerKind& kind, std::string_view text,
                      const LearnOptions& options) {
  allow_refusal([&] {
    const TokenizerData data = kind.learn(text.substr(0, text.size() / 2), "input", options);
    const auto tokenizer = kind.make(data);
    require(tokenizer->data() == data);
    require(tokenizer_data_from_text(to_text(data), "input") == data);
    const std::vector<token> ids = tokenizer->encode(text);
    const std::string decoded = tokenizer->decode(ids);
    require(kind.has_words || options.lower || decoded == text);
    require(options.lower || tokenizer->encode(decoded) == ids);
  });
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fovea::text_of(data, size);
  const bool lower = size % 2 == 1, marks = size % 4 < 2;
  for (const fovea::TokenizerKind& kind : fovea::kTokenizers) {
    fovea::learn_and_encode(
        kind, text,
        {.lower = lower && kind.has_lower, .marks = marks, .min_count = size % 3 == 1 ? 2 : 1});
  }
  fovea::allow_refusal([&] {
    const fovea::TokenizerData read = fovea::tokenizer_data_from_text(text, "input");
    fovea::require(fovea::to_text(read) == text);
    fovea::make_tokenizer(read);
  });
  fovea::allow_refusal([&] {
    const auto words = fovea::words_of_list(text, "input", marks);
    fovea::kTokenizers[2].learn(text, "input", {.marks = marks, .words = words});
  });
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A text is read or refused; what is read is cut into sequences, by each kind of data.
#include <algorithm>

#include "fovea/data/batcher.h"
#include "tests/fuzz/fuzz.h"

namespace fovea {
namespace {

void read(const std::string& path, TextEncoding encoding, const TokenizerKind& tokenizers) {
  for (const DataKind& kind : kDataKinds) {
    allow_refusal([&] {
      const Corpus corpus = read_corpus({.train = {path},
                                         .valid_fraction = 0.3,
                                         .encoding = encoding,
                                         .split_at = kind.split_at});
      const auto tokenizer = tokenizers.make(tokenizers.learn(corpus.train, "input"));
      const auto training = kind.training(
          corpus.train, *tokenizer, {.block = 5, .batch_size = 3, .accumulate = 1, .seed = 1});
      training->batch(0, 0);
      training->batch(training->updates_per_epoch(), 0);
      allow_refusal([&] { kind.evaluation(corpus.valid, *tokenizer, 5, "input"); });
    });
  }
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fovea::FuzzFile file(fovea::text_of(data, size));
  for (const fovea::TokenizerKind& tokenizers : fovea::kTokenizers) {
    fovea::read(file.path(), fovea::TextEncoding::kUtf8, tokenizers);
    fovea::read(file.path(), fovea::TextEncoding::kAnyBytes, tokenizers);
  }
  return 0;
}

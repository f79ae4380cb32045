// SPDX-License-Identifier: Apache-2.0
// A text is read or refused; what is read is cut into sequences, by each kind of data.
#include <iterator>

#include "fovea/data/batcher.h"
#include "tests/fuzz/fuzz.h"

namespace fovea {
namespace {

void read(const std::string& path, TextEncoding encoding, const TokenizerKind& tokenizers,
          const DataKind& kind) {
  allow_refusal([&] {
    const Corpus corpus = read_corpus(
        {.train = {path}, .valid_fraction = 0.3, .encoding = encoding, .split_at = kind.split_at});
    const auto tokenizer =
        tokenizers.make(tokenizers.learn(corpus.train, "input", {.min_count = 1}));
    const auto training = kind.training(corpus.train, *tokenizer,
                                        {.block = 5, .batch_size = 3, .accumulate = 1, .seed = 1});
    training->batch(0, 0);
    training->batch(training->updates_per_epoch(), 0);
    allow_refusal([&] { kind.evaluation(corpus.valid, *tokenizer, {.block = 5}, "input"); });
  });
}

}  // namespace
}  // namespace fovea

// The first byte chooses one of the ways: all of them for each input would take eight times as
// long.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t way = data[0];
  const fovea::FuzzFile file(fovea::text_of(data + 1, size - 1));
  fovea::read(file.path(),
              way % 2 == 0 ? fovea::TextEncoding::kUtf8 : fovea::TextEncoding::kAnyBytes,
              fovea::kTokenizers[way / 2 % std::size(fovea::kTokenizers)],
              fovea::kDataKinds[way / 4 % std::size(fovea::kDataKinds)]);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Any text that a tokenizer takes comes back (of words, the words); so does any file of a tokenizer
// that is read. A list of words is read or refused.
#include <fmt/core.h>

#include <cstdint>
#include <string>

#include "fovea/text/tokenizer.h"
#include "fovea/text/vocabulary.h"
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

void read_file(std::string_view text) {
  allow_refusal([&] {
    const TokenizerData read = tokenizer_data_from_text(text, "input");
    require(to_text(read) == text);
    const auto tokenizer = make_tokenizer(read);
    require(tokenizer->data() == read);
    tokenizer->bytes_predicted();
  });
}

// A file of this kind whose header and checksum are right, which no input would guess.
void read_file_of(std::string_view kind, std::string_view rest) {
  std::string text = "fovea-tokenizer 1\nkind " + std::string(kind) + '\n' + std::string(rest);
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  read_file(text + fmt::format("checksum {:016x}\n", hash));
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
  fovea::read_file(text);
  for (const fovea::TokenizerKind& kind : fovea::kTokenizers) fovea::read_file_of(kind.name, text);
  fovea::allow_refusal([&] {
    const auto words = fovea::words_of_list(text, "input", marks);
    fovea::learn_words(text, "input", {.marks = marks, .words = words});
  });
  return 0;
}

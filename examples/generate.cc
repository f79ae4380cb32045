// SPDX-License-Identifier: Apache-2.0
// Continues a text: example_generate MODEL PROMPT, with a folder of `fovea train lm`, a folder of
// Hugging Face, or a GGUF file.
#include <cstdio>

#include "fovea/base/error.h"
#include "fovea/models.h"

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  const fovea::models::LanguageModel model(argv[1]);
  const fovea::SamplingOptions options{.max_tokens = 40, .temperature = 0.8, .seed = 7};
  const std::string text = model.generate(argv[2], options, [](std::string_view piece) {
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    return true;  // go on
  });
  std::printf("\n%zu tokens\n", model.encode(text).size());
  return text.empty() ? 1 : 0;
} catch (const fovea::Error& error) {
  std::fprintf(stderr, "%s\nhint: %s\n", error.what(), error.hint().c_str());
  return fovea::info(error.code()).exit_status;
}

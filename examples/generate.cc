// SPDX-License-Identifier: Apache-2.0
// Continues a text: example_generate FOLDER PROMPT, with a folder of `fovea train lm`.
#include "fovea/task/language_model/generate.h"

#include <cstdio>

#include "fovea/base/error.h"

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  const fovea::LoadedLanguageModel loaded = fovea::load_language_model(argv[1]);
  const fovea::SamplingOptions options{.max_tokens = 40, .temperature = 0.8, .seed = 1};
  const fovea::index tokens =
      fovea::generate_text(fovea::Context(), loaded, argv[2], options, [](std::string_view text) {
        std::fwrite(text.data(), 1, text.size(), stdout);
        return true;  // go on
      });
  std::printf("\n%lld tokens\n", static_cast<long long>(tokens));
  return tokens > 0 ? 0 : 1;
} catch (const fovea::Error& error) {
  std::fprintf(stderr, "%s\nhint: %s\n", error.what(), error.hint().c_str());
  return fovea::info(error.code()).exit_status;
}

// SPDX-License-Identifier: Apache-2.0
// Translates lines: example_translate FOLDER LINE..., with a folder of `fovea train translate`.
#include <cstdio>

#include "fovea/base/error.h"
#include "fovea/task/translate/line_translator.h"
#include "fovea/task/translate/translator.h"

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  const fovea::LoadedTranslator loaded = fovea::load_translator(argv[1]);
  fovea::LineTranslator translator(fovea::Context(), *loaded.model, loaded.vocabulary, {},
                                   "arguments");
  for (int n = 2; n < argc; ++n) {
    translator.add({.text = argv[n], .number = static_cast<std::uint64_t>(n - 1)});
  }
  for (const auto& translations : translator.translate()) {  // [lines], the best first
    std::printf("%s\n", translations[0].text.c_str());
  }
  return 0;
} catch (const fovea::Error& error) {
  std::fprintf(stderr, "%s\nhint: %s\n", error.what(), error.hint().c_str());
  return fovea::info(error.code()).exit_status;
}

// SPDX-License-Identifier: Apache-2.0
// Translates lines: example_translate MODEL LINE..., with a folder of `fovea train translate`.
#include <cstdio>
#include <string>

#include "fovea/base/error.h"
#include "fovea/models.h"

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  const fovea::models::Translator translator(argv[1]);
  for (const std::string& line : translator.translate({argv + 2, argv + argc})) {
    std::printf("%s\n", line.c_str());
  }
  return 0;
} catch (const fovea::Error& error) {
  std::fprintf(stderr, "%s\nhint: %s\n", error.what(), error.hint().c_str());
  return fovea::info(error.code()).exit_status;
}

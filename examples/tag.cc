// SPDX-License-Identifier: Apache-2.0
// Tags the words of texts: example_tag MODEL TEXT..., with a folder of `fovea train tag`, or
// of Hugging Face.
#include <cstdio>

#include "fovea/base/error.h"
#include "fovea/models.h"

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  const fovea::models::Tagger tagger(argv[1]);
  for (const auto& [words, tags] : tagger.tag({argv + 2, argv + argc})) {
    for (std::size_t n = 0; n < words.size(); ++n) {
      std::printf("%s\t%s\n", words[n].c_str(), tags[0][n].c_str());
    }
    std::printf("\n");
  }
  return 0;
} catch (const fovea::Error& error) {
  std::fprintf(stderr, "%s\nhint: %s\n", error.what(), error.hint().c_str());
  return fovea::info(error.code()).exit_status;
}

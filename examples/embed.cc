// SPDX-License-Identifier: Apache-2.0
// How alike texts are: example_embed MODEL TEXT..., with a folder of sentence-transformers or
// transformers.
#include <cstdio>
#include <string>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/models.h"

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  const fovea::models::Encoder encoder(argv[1]);
  const std::vector<std::string> texts(argv + 2, argv + argc);
  const fovea::Tensor vectors = encoder.embed(texts);  // [texts, width]
  std::printf("%s\n", vectors.describe().c_str());
  const std::vector<double> cosines = encoder.similarity(texts[0], texts);
  for (std::size_t n = 0; n < texts.size(); ++n) {
    std::printf("%.4f\t%s\n", cosines[n], texts[n].c_str());
  }
  return cosines[0] > 0.9999 ? 0 : 1;
} catch (const fovea::Error& error) {
  std::fprintf(stderr, "%s\nhint: %s\n", error.what(), error.hint().c_str());
  return fovea::info(error.code()).exit_status;
}

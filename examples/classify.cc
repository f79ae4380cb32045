// SPDX-License-Identifier: Apache-2.0
// Classifies texts: example_classify MODEL TEXT..., with a folder of `fovea train classify`, or
// of Hugging Face.
#include <algorithm>
#include <cstdio>

#include "fovea/base/error.h"
#include "fovea/models.h"

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  const fovea::models::Classifier classifier(argv[1]);
  for (const auto& [labels, values] : classifier.classify({argv + 2, argv + argc})) {
    std::printf("%s\t%.4f\n", labels.empty() ? "" : labels[0].c_str(),
                *std::max_element(values.begin(), values.end()));
  }
  return 0;
} catch (const fovea::Error& error) {
  std::fprintf(stderr, "%s\nhint: %s\n", error.what(), error.hint().c_str());
  return fovea::info(error.code()).exit_status;
}

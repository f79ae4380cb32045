// SPDX-License-Identifier: Apache-2.0
// Classifies texts: example_classify FOLDER TEXT..., with a folder of `fovea train classify`.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/text_predictor.h"

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  const fovea::LoadedClassifier loaded = fovea::load_classifier(argv[1]);
  const std::vector<fovea::NamedText> texts = [&] {
    std::vector<fovea::NamedText> all;
    for (int n = 2; n < argc; ++n) all.push_back({.text = argv[n], .name = "argument"});
    return all;
  }();
  fovea::TextPredictor predictor(fovea::Context(), loaded);
  const fovea::Rows<const float> p = predictor.predict(texts);  // [texts, labels]
  for (fovea::index n = 0; n < p.rows; ++n) {
    const auto best = std::max_element(p[n], p[n] + p.columns) - p[n];
    std::printf("%s\t%.4f\n", loaded.labels[static_cast<std::size_t>(best)].c_str(),
                static_cast<double>(p[n][best]));
  }
  return 0;
} catch (const fovea::Error& error) {
  std::fprintf(stderr, "%s\nhint: %s\n", error.what(), error.hint().c_str());
  return fovea::info(error.code()).exit_status;
}

// SPDX-License-Identifier: Apache-2.0
// Tags the words of a sentence: example_tag FOLDER WORD..., with a folder of `fovea train tag`.
#include <cstdio>
#include <string>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/task/tag/tag_predictor.h"

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  const fovea::LoadedTagger loaded = fovea::load_tagger(argv[1]);
  fovea::TagPredictor predictor(fovea::Context(), loaded);
  const std::vector<std::vector<std::string>> sentences{{argv + 2, argv + argc}};
  const auto tagged = predictor.tag(sentences);  // [sentences], [tag columns], [words]
  for (std::size_t word = 0; word < sentences[0].size(); ++word) {
    const std::int32_t tag = tagged[0][0].tags[word];
    std::printf("%s\t%s\n", sentences[0][word].c_str(), loaded.tags[0].name(tag).c_str());
  }
  return 0;
} catch (const fovea::Error& error) {
  std::fprintf(stderr, "%s\nhint: %s\n", error.what(), error.hint().c_str());
  return fovea::info(error.code()).exit_status;
}

// SPDX-License-Identifier: Apache-2.0
// The files of a model that are written before its first weights.
#pragma once

#include <string>
#include <vector>

#include "fovea/text/vocabulary.h"
#include "fovea/train/checkpoint.h"

namespace fovea {

/// The files of a model folder and of each checkpoint besides those of numbers. A model without a
/// tokenizer has no files of one.
inline std::vector<NamedFile> first_files(const std::string& config,
                                          const TokenizerData& tokenizer) {
  std::vector<NamedFile> files = {{"config.json", config}, {"tokenizer.txt", to_text(tokenizer)}};
  if (tokenizer.kind == kWordKind) {
    files.push_back({std::string(kWordListName), word_list_text(tokenizer)});
  }
  return files;
}

}  // namespace fovea

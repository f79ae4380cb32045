// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/subword_options.h"

#include "fovea/base/check.h"
#include "fovea/task/setting_checks.h"
#include "fovea/text/sentencepiece/piece_model.h"

namespace fovea {

void require_subword_model(bool subwords, const std::string& file, std::string_view option) {
  require_together(!subwords || !file.empty(), "--tokenizer sentencepiece",
                   fmt::format("needs {} FILE.model", option),
                   "learn a model first: fovea tokenizer train --train FILE -o FILE.model");
}

LearnOptions with_subword_model(LearnOptions options, const std::string& file) {
  if (file.empty()) return options;
  options.model = piece_model_bytes(file);
  options.model_name = file;
  return options;
}

}  // namespace fovea

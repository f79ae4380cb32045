// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/subword_options.h"

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/task/setting_checks.h"
#include "fovea/text/sentencepiece/piece_model.h"

namespace fovea {

void check_subword_model(bool subwords, const std::string& file, std::string_view option) {
  require_storable(file, option.substr(2));
  require_together(subwords || file.empty(), option,
                   "has no effect without --tokenizer sentencepiece",
                   fmt::format("add that, or leave {} out", option));
  require_together(!subwords || !file.empty(), "--tokenizer sentencepiece",
                   fmt::format("needs {} FILE.model", option),
                   "learn a model first: fovea tokenizer train --train FILE -o FILE.model");
}

void check_subword_sampling(bool subwords, double alpha) {
  require_option(alpha >= 0 && alpha <= 1, "subword_sampling", alpha, "from 0 to 1");
  require_together(subwords || alpha == 0, "--subword-sampling",
                   "has no effect without --tokenizer sentencepiece",
                   "add that, or leave --subword-sampling out");
}

LearnOptions with_subword_model(LearnOptions options, const std::string& file) {
  if (file.empty()) return options;
  options.model = piece_model_bytes(file);
  options.model_name = file;
  return options;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/translation_options.h"

#include "fovea/base/option.h"

namespace fovea {

void check_options(const TranslationOptions& o) {
  SearchOptions search = o.search;
  if (o.sample) search.beam = std::max(search.beam, search.nbest);  // samples need no beam
  check_options(search);
  check_options(o.sampling());
  constexpr double kMostRatio = 1000;
  require_option(o.max_ratio > 0 && o.max_ratio <= kMostRatio, "max_ratio", o.max_ratio,
                 "above 0 and at most {}", kMostRatio);
  require_option(o.alignment_layer >= 0, "alignment_layer", o.alignment_layer,
                 "at least 0 (0: the last but one)");
  const bool covers = o.search.coverage_penalty > 0;
  require_option(o.alignments || covers || o.alignment_layer == 0,
                 Hint{"add --alignments or --coverage-penalty"}, "alignment_layer",
                 o.alignment_layer, "0 without --alignments and --coverage-penalty");
  require_option(!o.sample || !covers, Hint{"leave one of the two out"}, "coverage_penalty",
                 o.search.coverage_penalty, "0 with --sample");
}

}  // namespace fovea

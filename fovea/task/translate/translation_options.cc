// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/translation_options.h"

#include "fovea/base/option.h"

namespace fovea {

void check_options(const TranslationOptions& o) {
  if (o.sample) {
    constexpr index kMostSamples = 1024;
    require_option(o.search.nbest >= 1 && o.search.nbest <= kMostSamples, "nbest", o.search.nbest,
                   "in 1 to {}", kMostSamples);
    SearchOptions search = o.search;
    search.beam = std::max(search.beam, search.nbest);  // samples need no beam
    check_options(search);
  } else {
    check_options(o.search);
    const TranslationOptions usual;
    require_option(o.temperature == usual.temperature, Hint{"add --sample, or leave it out"},
                   "temperature", o.temperature, "1 without --sample");
    require_option(o.top_k == usual.top_k, Hint{"add --sample, or leave it out"}, "top_k", o.top_k,
                   "0 without --sample");
    require_option(o.top_p == usual.top_p, Hint{"add --sample, or leave it out"}, "top_p", o.top_p,
                   "1 without --sample");
  }
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

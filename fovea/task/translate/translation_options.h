// SPDX-License-Identifier: Apache-2.0
// How lines are translated.
#pragma once

#include <cstdint>
#include <span>

#include "fovea/task/decode/beam_search.h"
#include "fovea/task/decode/sampling.h"

namespace fovea {

/// The way to treat a line that is longer than the model reads.
enum class LongLines : std::uint8_t {
  kRefuse,  ///< an error
  kSplit,   ///< it is translated in pieces
};
inline constexpr EnumName<LongLines> kLongLinesNames[] = {{LongLines::kRefuse, "refuse"},
                                                          {LongLines::kSplit, "split"}};
inline std::span<const EnumName<LongLines>> enum_names(LongLines) { return kLongLinesNames; }

struct TranslationOptions {
  SearchOptions search;
  double max_ratio = 2;
  bool sample = false;
  double temperature = 1;
  index top_k = 0;
  double top_p = 1;
  std::uint64_t seed = 1;
  bool alignments = false;
  index alignment_layer = 0;
  LongLines long_lines = LongLines::kRefuse;
  bool raw = false;
  bool truecase = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    search.visit_fields(visit);
    visit("max_ratio", max_ratio,
          "most tokens of a translation, for each of its source; there may be 10 more",
          {.range = ValueRange::over(0, 1000)});
    const auto visit_sampling = under("Sampling", visit),
               visit_alignments = under("Alignments", visit);
    visit_sampling("sample", sample,
                   "draw translations by their probability, --nbest of them, no search");
    visit_sampling("temperature", temperature,
                   "--sample: divides the logits; below 1 prefers likely tokens",
                   {.needs = {"sample"}});
    visit_sampling("top_k", top_k, "--sample: from the k likeliest tokens; 0: from all",
                   {.needs = {"sample"}});
    visit_sampling("top_p", top_p,
                   "--sample: from the likeliest tokens whose probabilities sum to this",
                   {.needs = {"sample"}});
    visit_sampling("seed", seed, "--sample: same seed, same translations");
    visit_alignments(
        "alignments", alignments,
        "say which source token each token of the translation attends to most: 0-0 1-2 ...");
    visit_alignments(
        "alignment_layer", alignment_layer,
        "the layer of the decoder, from 1, whose attention --alignments and --coverage-penalty "
        "read; 0: the last but one",
        {.range = ValueRange::from(0, "the last but one"),
         .needs = {"alignments|coverage_penalty"}});
    visit("long_lines", long_lines,
          "a line longer than the model reads is an error, or is translated in pieces");
    visit("raw", raw,
          "words as the model says them; else those of --words punctuation are put together: no "
          "blank before a full stop, and so on");
    visit("truecase", truecase,
          "of a model trained with --lower: begin each sentence with a capital letter");
  }

  SamplingOptions sampling() const {
    return {.temperature = temperature, .top_k = top_k, .top_p = top_p, .seed = seed};
  }
};

/// Throws kOptionValue, which names the option, for an invalid value.
void check_options(const TranslationOptions& options);

}  // namespace fovea

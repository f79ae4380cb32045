// SPDX-License-Identifier: Apache-2.0
// Chooses the next token from logits, of one text or of many at once, from any model that gives
// scores for the next token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/base/view.h"
#include "fovea/task/decode/beam_search.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

struct SamplingOptions {
  index max_tokens = 256;
  double temperature = 0.8;
  index top_k = 0;
  double top_p = 1.0;
  double repetition_penalty = 1.0;
  bool greedy = false;
  std::uint64_t seed = 1;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("max_tokens", max_tokens, "largest number of tokens to generate",
          {.range = ValueRange::from(1)});
    visit("temperature", temperature, "divides the logits: below 1 prefers likely tokens");
    visit("top_k", top_k, "sample from the k likeliest tokens; 0: from all",
          {.range = ValueRange::from(0, "no limit")});
    visit("top_p", top_p, "sample from the likeliest tokens whose probabilities sum to this",
          {.range = ValueRange::over(0, 1)});
    visit("repetition_penalty", repetition_penalty,
          "above 1: tokens that are in the text already are less likely; 1: no penalty",
          {.range = ValueRange::over(0)});
    visit("greedy", greedy, "always take the likeliest token");
    visit("seed", seed, "same seed, same text");
  }
};

/// Throws kOptionValue, which names the option, for an invalid value.
void check_options(const SamplingOptions& options);

/// The token with the highest logit; of equal ones the first. Throws kModelDamaged if a logit
/// is NaN or +inf, or all are -inf.
token greedy_token(Vec<const float> logits);

/// For each token in `seen`, divides its logit by `penalty` if it is positive and multiplies it if
/// it is negative (Keskar et al. 2019, section 4.1); once per token, however often it occurs.
void apply_repetition_penalty(Vec<float> logits, std::span<const token> seen, double penalty);

/// Samples token number `number` of a text; the result depends only on the logits, the options and
/// that number. It keeps the k likeliest tokens and takes their probabilities at the temperature;
/// of these it keeps the fewest that sum to p, and draws one by its probability. Equal logits are
/// ranked by id. A token with logit -inf is never chosen. Throws as greedy_token().
token sample_token(Vec<const float> logits, const SamplingOptions& options, std::uint64_t number);

/// The task of sampling: `samples` hypotheses of each sentence.
struct SampleTask {
  SearchTask search;
  index samples = 1;
  std::span<const std::uint64_t> numbers = {};  ///< [sentences] that name what is drawn
  bool free_end = false, open_end = false;      ///< as in SearchOptions
};

/// Token by token, as sample_token() draws with these options; max_tokens and repetition_penalty
/// are not read. The score of a hypothesis is its log probability, under the model and not under
/// the temperature. In the order in which they were drawn. Sample s of a sentence depends on the
/// seed, the number of the sentence and s alone. Throws kModelDamaged for logits without a finite
/// sum.
std::vector<std::vector<Hypothesis>> sample_search(const Context& context, NextTokenModel& model,
                                                   const SampleTask& task,
                                                   const SamplingOptions& options);

}  // namespace fovea

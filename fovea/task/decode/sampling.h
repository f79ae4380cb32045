// SPDX-License-Identifier: Apache-2.0
// From logits to the next token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/base/view.h"
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
    visit("max_tokens", max_tokens, "largest number of tokens to generate");
    visit("temperature", temperature, "divides the logits: below 1 prefers likely tokens");
    visit("top_k", top_k, "sample from the k likeliest tokens; 0: from all");
    visit("top_p", top_p, "sample from the likeliest tokens whose probabilities sum to this");
    visit("repetition_penalty", repetition_penalty, "above 1: tokens seen before are less likely");
    visit("greedy", greedy, "always take the likeliest token");
    visit("seed", seed, "same seed, same text");
  }
};

/// Throws kOptionValue, naming the option, where a value makes no sense.
void check_options(const SamplingOptions& options);

/// The token of the highest logit, of equal ones the first. Throws kModelDamaged if there is none
/// that is a number.
token greedy_token(Vec<const float> logits);

/// Tokens of positive logit that occur in `seen` are divided by `penalty`, of negative multiplied
/// (Keskar et al. 2019, section 4.1); each once, however often it occurs.
void apply_repetition_penalty(Vec<float> logits, std::span<const token> seen, double penalty);

/// Token number `number` of a text: a function of the logits, the options and that number. First
/// the k likeliest, then of these the fewest whose share reaches p, then one by its probability at
/// this temperature; equal logits are ranked by id. -inf marks what must not be chosen.
token sample_token(Vec<const float> logits, const SamplingOptions& options, std::uint64_t number);

}  // namespace fovea

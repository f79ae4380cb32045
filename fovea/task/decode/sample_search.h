// SPDX-License-Identifier: Apache-2.0
// Samples of many sentences at once, from any model that gives scores for the next token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/task/decode/beam_search.h"
#include "fovea/task/decode/sampling.h"

namespace fovea {

/// The task of sampling: `samples` hypotheses of each sentence.
struct SampleTask {
  SearchTask search;
  index samples = 1;
  std::span<const std::uint64_t> numbers = {};  ///< [sentences] that name what is drawn
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

// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/evaluate.h"

#include <algorithm>
#include <cmath>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/kernel/cross_entropy.h"
#include "fovea/model/pass_plan.h"
#include "fovea/task/translate/objective.h"

namespace fovea {

namespace {

constexpr index kBatchTokens = 512;  // so that their logits take little memory

void require_room(const Context& context, const TranslatorConfig& config,
                  const PairEvaluation& set) {
  const TranslationLoad load{{set.largest_source(), TapeMode::kInference},
                             {set.largest_target(), TapeMode::kInference}};
  const double logits =
      4 * static_cast<double>(set.largest_target()) * static_cast<double>(config.target_vocabulary);
  require_memory("the evaluation", logits + plan_pass(context, config, load).bytes(),
                 "free some memory, or use a machine that has more");
}

}  // namespace

std::vector<double> pair_losses(Tape& tape, const Translator& model, const PairBatch& batch) {
  tape.reset(TapeMode::kInference);
  const TranslationBatch view = view_of(batch);
  const Rows<const float> logits = model.logits(tape, view).value<float>();
  std::vector<float> losses(batch.targets.size());
  cross_entropy<float>(tape.context(), logits, {.ids = view.targets}, 1,
                       {losses.data(), static_cast<index>(losses.size())}, {});
  std::vector<double> sums(batch.samples.size());
  for (std::size_t s = 0; s < sums.size(); ++s) {
    for (auto n = batch.target_offsets[s]; n < batch.target_offsets[s + 1]; ++n) {
      sums[s] += double{losses[static_cast<std::size_t>(n)]};
    }
  }
  return sums;
}

TranslatorScore evaluate_translator(const Context& context, const LoadedTranslator& loaded,
                                    const SentencePairs& pairs) {
  const TranslatorConfig& config = loaded.settings.model;
  TranslatorScore score;
  score.scores.resize(static_cast<std::size_t>(pairs.size()));
  PairTokens tokens;
  std::vector<std::size_t> lines;  // of the pairs that count
  for (std::size_t i = 0; i < score.scores.size(); ++i) {
    const PairFit fit =
        append(tokens, loaded.vocabulary.both(), pairs.source[i], pairs.target[i], config.block);
    score.empty += fit == PairFit::kEmpty;
    score.too_long += fit == PairFit::kTooLong;
    if (fit == PairFit::kTaken) lines.push_back(i);
  }
  score.pairs = tokens.size();
  if (score.pairs == 0) {
    throw Error(ErrorCode::kInputTooSmall, "no pair of sentences that the model can read",
                "give sentences that are not empty, and no longer than the model's --block");
  }
  score.tokens = tokens.target_count();
  const token unknown = loaded.vocabulary.target().special().unknown;
  score.unknown = std::count(tokens.target.begin(), tokens.target.end(), unknown);
  const PairEvaluation set(std::move(tokens), kBatchTokens);
  require_room(context, config, set);
  Tape tape(context, TapeMode::kInference);
  double sum = 0;
  for (index b = 0; b < set.size(); ++b) {
    const PairBatch batch = set[b];
    const std::vector<double> losses = pair_losses(tape, *loaded.model, batch);
    for (std::size_t s = 0; s < losses.size(); ++s) {
      score.scores[lines[static_cast<std::size_t>(batch.samples[s])]] = {
          -losses[s], batch.target_offsets[s + 1] - batch.target_offsets[s]};
      sum += losses[s];
    }
  }
  score.loss = sum / static_cast<double>(score.tokens);
  score.perplexity = std::exp(score.loss);
  if (std::isfinite(score.loss)) return score;
  throw Error(ErrorCode::kModelDamaged, "the loss of the translations is not finite",
              "train the model again, or evaluate an earlier checkpoint");
}

}  // namespace fovea

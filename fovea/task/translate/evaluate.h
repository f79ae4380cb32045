// SPDX-License-Identifier: Apache-2.0
// How well a translator predicts given translations.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/parallel/pair_reader.h"
#include "fovea/task/translate/translator.h"

namespace fovea {

/// How probable the model finds one translation.
struct PairScore {
  double log_probability = 0;  ///< in nats, of its tokens and its end
  index tokens = 0;            ///< with the end; 0: the pair could not be read
};

struct TranslatorScore {
  double loss = 0;        ///< nats per token of the target
  double perplexity = 0;  ///< exp(loss)
  index tokens = 0;       ///< how many were predicted
  index unknown = 0;      ///< how many of these stand for unknown words
  index pairs = 0;
  index empty = 0;     ///< pairs with an empty side, which count for nothing
  index too_long = 0;  ///< pairs longer than the model reads, which count for nothing
  std::vector<PairScore> scores = {};  ///< [pairs read, those that count for nothing included]

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("loss", loss, "mean negative log-likelihood, in nats per token of the target");
    visit("perplexity", perplexity, "exp(loss)");
    visit("tokens", tokens, "how many were predicted");
    visit("unknown", unknown, "how many of these stand for unknown words");
    visit("pairs", pairs, "how many pairs count");
    visit("empty", empty, "pairs with an empty side, which count for nothing");
    visit("too_long", too_long, "pairs longer than the model reads, which count for nothing");
  }
};

/// The negative log-likelihood of the target of each pair of the batch, in nats, computed on
/// `tape`.
std::vector<double> pair_losses(Tape& tape, const Translator& model, const PairBatch& batch);

/// Forced decoding: the translations are given. Throws kInputTooSmall if no pair counts,
/// kModelDamaged if the loss is not finite, kOutOfMemory.
TranslatorScore evaluate_translator(const Context& context, const LoadedTranslator& loaded,
                                    const SentencePairs& pairs);

}  // namespace fovea

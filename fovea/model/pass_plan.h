// SPDX-License-Identifier: Apache-2.0
// The memory of a model's forward and, in training, of its backward: found by a plan
// (base/profile.h) of the model itself on the largest batch that the data can give.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/grad/tape.h"
#include "fovea/model/bert.h"
#include "fovea/model/classifier_config.h"
#include "fovea/model/language_model_config.h"
#include "fovea/model/tagger_config.h"
#include "fovea/model/translator_config.h"

namespace fovea {

/// A batch of a language model.
struct TapeLoad {
  index tokens = 0;
  TapeMode mode = TapeMode::kTrain;
  bool observes = false;                      ///< with statistics of heads (LossOptions::attention)
  index sequences = 0;                        ///< at most; 0: each has `block` tokens
  Precision precision = Precision::kFloat32;  ///< of the products
  /// The sequences are so long, `tokens` together; none: the first ones are as long as they can be.
  std::vector<std::int32_t> lengths = {};
};
/// The load of a classifier.
struct TextLoad {
  index texts = 0;
  TapeLoad tape{};  ///< of their tokens, or of the rows of their time steps
};
/// The load of a tagger.
struct WordLoad {
  TapeLoad tape{};       ///< of its words
  index characters = 0;  ///< of all its words
};
/// The load of a translator.
struct TranslationLoad {
  TapeLoad source = {}, target = {};  ///< of the same mode
};

/// A pass takes these: bytes besides the values of the parameters and their gradients, and work.
struct PassCost {
  double tape = 0;     ///< values, and gradients that exist at the same time
  double packed = 0;   ///< packed copies of the weights, and other buffers of a call
  double scratch = 0;  ///< of all threads, during a call
  double flops = 0;    ///< multiplications and additions, of products and of attention

  double bytes() const { return tape + packed + scratch; }
};
/// The memory of passes one after another, which share it.
PassCost larger_of_each(const PassCost& a, const PassCost& b);

PassCost plan_pass(const Context& context, const LanguageModelConfig& config, const TapeLoad& load);
PassCost plan_pass(const Context& context, const ClassifierConfig& config, const TextLoad& load);
PassCost plan_pass(const Context& context, const TaggerConfig& config, const WordLoad& load);
PassCost plan_pass(const Context& context, const TranslatorConfig& config,
                   const TranslationLoad& load);
/// Of its rows, in inference alone.
PassCost plan_pass(const Context& context, const BertConfig& config, const TapeLoad& load);

/// The memory of batches on as many threads at once as the context has, each with a tape of its
/// own; the packed copies are shared.
template <class Config, class Load>
PassCost plan_passes_apart(const Context& context, const Config& config, const Load& load) {
  PassCost cost = plan_pass(Context(1), config, load);
  cost.tape *= context.threads();
  cost.scratch *= context.threads();
  return cost;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// A text classifier: from the tokens of a text it computes what class or classes it has, or
// numbers. With attention without residual sums, and the mean, it is the model of Su 2018 (spec
// L15); without an encoder it is a bag of words.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/model/classifier_config.h"
#include "fovea/model/text_batch.h"
#include "fovea/nn/module.h"

namespace fovea {

class ClassifierLayers;

/// Texts and what is known about them. All members are views.
struct LabelledTexts {
  TextRows texts = {};
  /// [sequences] kSingleLabel, kBinary: the class of each; -1: not known, no loss
  Vec<const std::int32_t> labels = {};
  /// [sequences, classes] kMultiLabel: 1 for a label that the text has, 0 for one that it has not,
  /// or between, and -1 for one not known, without a loss. kRegression: the numbers.
  Rows<const float> values = {};
};

struct ClassifierLossOptions {
  double scale = 1;  ///< 1 / (loss_weight() of the update) makes the loss a mean
  /// [classes], or empty: all are 1. kSingleLabel, kBinary: of each class. kMultiLabel: of the
  /// texts that have the label (PyTorch's pos_weight). Not with kRegression.
  Vec<const double> class_weights = {};
  /// e in [0, 1): a class keeps 1 - e of the target, and e is shared by all of them. Not with
  /// kRegression.
  double label_smoothing = 0;
  DropoutKey dropout{};  ///< seed and step of this update's masks; `layer` is not read
  /// If not empty: [attentions()], to which the forward adds what each attention looks like.
  std::span<HeadStatistics> attention{};
  /// If given: becomes what the model reads, as an input of the tape, for its gradient. The rows of
  /// the tokens before positions join them; of numbers, these.
  Variable* inputs = nullptr;
  /// If given, of a model with n-grams: becomes the row of each n-gram, as such an input.
  Variable* ngrams = nullptr;
};

/// Only the optimizer and checkpoints change the parameters. All functions are const; several
/// threads may call them at once, each with its own tape, as long as no thread trains.
class Classifier {
 public:
  /// Throws as resolve() does, and kOutOfMemory.
  Classifier(const ClassifierConfig& config, std::uint64_t seed, DType dtype = DType::kFloat32);
  Classifier(const ClassifierConfig& config, const ParameterSetOptions& options);
  Classifier(Classifier&&) noexcept;
  Classifier& operator=(Classifier&&) noexcept;
  ~Classifier();

  /// The resolved configuration: no size is 0.
  const ClassifierConfig& config() const { return config_; }
  /// In a fixed order, with names such as "embedding.tokens" and "output.weight".
  std::span<Parameter* const> parameters() const { return parameters_->parameters(); }
  /// How many layers of its encoder have attention.
  index attentions() const;

  /// scale x the sum of the losses of all texts, in nats, or of squared errors: [1, 1]. A text may
  /// have at most `block` tokens.
  Variable loss(Tape& tape, const LabelledTexts& batch,
                const ClassifierLossOptions& options = {}) const;
  /// As loss(), of logits() that are there already.
  Variable loss_of(Tape& tape, Variable logits, const LabelledTexts& batch,
                   const ClassifierLossOptions& options = {}) const;
  /// The divisor that makes a mean of the sum of the losses, as in PyTorch: the sum of the weights
  /// of the known classes; the number of known labels; the number of numbers.
  double loss_weight(const LabelledTexts& batch, const ClassifierLossOptions& options = {}) const;

  /// [sequences, logit_count()].
  Variable logits(Tape& tape, const TextRows& texts,
                  const ClassifierLossOptions& options = {}) const;
  /// [sequences, classes] for an inference tape: the probability of each class (kSingleLabel,
  /// kBinary) or label; with kRegression the numbers. The bits of a text do not depend on the
  /// others.
  Variable predictions(Tape& tape, const TextRows& texts) const;
  /// The columns of token_table(); 0 if the model has none.
  index token_table_columns() const;
  /// [vocabulary, token_table_columns()]: what the first step makes of every token, however the
  /// texts are. Valid until a parameter changes. It pays where many more tokens are read than the
  /// vocabulary has.
  Tensor token_table(const Context& context) const;
  /// As predictions(), with the same bits, by that table.
  Variable predictions(Tape& tape, const TextRows& texts, const Tensor& token_table) const;
  /// As predictions(), of logits() that are there already.
  Variable predictions_of(Tape& tape, Variable logits) const;

  /// With attention as pooling: the weight of each token [N] in its text, for an inference tape.
  std::vector<double> token_weights(Tape& tape, const TextRows& texts) const;

 private:
  ClassifierConfig config_;
  std::unique_ptr<ParameterSet> parameters_;
  std::unique_ptr<const ClassifierLayers> layers_;
};

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// A linear model of texts: logits are weighted sums of their n-grams.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/linear/isotonic.h"
#include "fovea/linear/ngrams.h"
#include "fovea/model/classifier.h"
#include "fovea/tensor/named_tensor.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {

/// The n-grams of one kind that a model knows.
struct NgramBlock {
  NgramKind kind = NgramKind::kWords;
  NgramNames names = {};
  std::vector<float> idf = {};  ///< [names] log((1 + texts) / (1 + texts with it)) + 1
  /// A row x is divided by sqrt(|x|^2 + damping^2): of a text as long as most it has about length
  /// 1, and a text of a word or two says little.
  double damping = 0;
  index values = 0;  ///< of the rows of the texts that it was learned from; 0 if it was loaded
};

/// The features of texts, in columns: those of each block in turn, then one for the bias.
///
/// A column of an n-gram with count t in the text has (1 + log t) idf, with binary rules idf; each
/// block is damped as above, and divided by the root of the number of blocks. The last column, r,
/// is the length of all that: 0 of a text without a known n-gram, up to 1.
struct NgramFeatures {
  NgramRules rules = {};
  std::vector<NgramBlock> blocks = {};

  index columns() const;  ///< with that of the bias
  index bias_column() const { return columns() - 1; }
  /// The values of the rows of the texts to train on.
  index values() const;
  /// The name of a column, for people: "[ch]" of characters, with blanks as in the text.
  std::string name(index column) const;
};

/// Counts the n-grams of texts to train on, for so many logits. Throws kOutOfMemory, and
/// kInputTooSmall if there is none.
NgramFeatures learn_features(std::span<const std::string> texts, const NgramRules& rules,
                             index outputs);

/// The rows of texts. The first time, for the texts to train on, finds what dampens short ones.
SparseRows training_rows(const Context& context, std::span<const std::string> texts,
                         NgramFeatures& features);

/// Reads texts as rows, one at a time. Belongs to one thread.
class FeatureReader {
 public:
  /// `features` must outlive it.
  explicit FeatureReader(const NgramFeatures& features)
      : features_(features), reader_(features.rules) {}

  /// Valid until the next call; the last column is that of the bias.
  SparseRow read(std::string_view text);
  /// The n-grams of the text that was read.
  NgramReader& ngrams() { return reader_; }

 private:
  const NgramFeatures& features_;
  NgramReader reader_;
  std::vector<std::int32_t> found_, columns_;
  std::vector<float> values_;
};

/// The weights with which a model multiplies a row. K is logit_count().
struct LinearWeights {
  ClassifierTask task = ClassifierTask::kSingleLabel;
  index classes = 0;
  std::vector<float> weights = {};  ///< [columns, K]
  /// [K] the logits of a text without a known n-gram: of the shares of the classes; of a number 0.
  std::vector<float> prior = {};

  /// [classes] as find_thresholds() says (linear/decide.h); none: 1/2, or the likeliest class.
  std::vector<float> thresholds = {};

  /// [K] from log-odds to probabilities; none: the log-odds are right. A text without a known
  /// n-gram keeps those of `prior`.
  std::vector<IsotonicMap> isotonic = {};

  index outputs() const { return logit_count(task, classes); }
};

/// An n-gram of a text, and what it adds to a logit.
struct NgramShare {
  std::size_t begin = 0, end = 0;  ///< bytes of the text
  std::string name;
  double share = 0;
};

/// The parts of a logit: base + all shares.
struct LogitParts {
  double base = 0;  ///< of the text without its n-grams
  std::vector<NgramShare> shares =
      {};  ///< in the order in which they begin; of words before characters
};

class LinearModel {
 public:
  LinearModel(NgramFeatures features, LinearWeights weights);

  const NgramFeatures& features() const { return features_; }
  const LinearWeights& weights() const { return weights_; }
  index parameters() const;

  /// The logits [K] of a row.
  void logits(const SparseRow& row, std::span<double> logits) const;
  /// Writes [classes] probabilities, or the number in the model's unit (Classifier::predictions).
  void predict(const SparseRow& row, float* values) const;

  /// The parts of logit `output`. Throws kShape if there is no such logit.
  LogitParts parts_of(std::string_view text, index output) const;

  /// The columns of the largest and of the smallest weights of a logit, without the bias.
  std::vector<index> strongest(index output, index count, bool largest) const;

  /// The tensors that are stored: "weight", "prior", "threshold" if it has these, of isotonic maps
  /// "isotonic.ends", "isotonic.log_odds" and "isotonic.probability", and, of each block,
  /// "words.names", "words.idf" and "words.damping", or the same of "characters".
  std::vector<NamedTensor> tensors() const;

 private:
  NgramFeatures features_;
  LinearWeights weights_;
};

/// The model that tensors() stored; `where` names the file. `rules`, task and classes are those of
/// its configuration. Throws kModelDamaged for all that does not fit.
LinearModel linear_model_from(const Safetensors& tensors, const NgramRules& rules,
                              const ClassifierConfig& config, const std::string& where);

/// Writes the predictions for texts in valid UTF-8, [texts, classes]. Returns how many n-grams the
/// model knows of them, each once a text. The bits do not depend on the number of threads.
index predict_texts(const Context& context, const LinearModel& model,
                    std::span<const std::string_view> texts, float* values);

/// p = 1 / (1 + exp(-z))
double sigmoid(double z);

/// The predictions of logits [K]: [classes] probabilities, or the number. With isotonic maps [K]
/// they are what these make of the log-odds, of one class divided by their sum.
void predictions_of(ClassifierTask task, std::span<const double> logits, float* values,
                    std::span<const IsotonicMap> isotonic = {});

/// From logits to the log-odds of each probability: of one class of several those of the softmax,
/// else the logits themselves.
void to_log_odds(ClassifierTask task, std::span<double> logits);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Runs a classifier over a test set.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/config/json.h"
#include "fovea/data/table/table_options.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/classification.h"
#include "fovea/metrics/probabilities.h"
#include "fovea/metrics/regression.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/settings.h"

namespace fovea {

/// A text whose prediction is wrong, or, of numbers, far off.
struct Mistake {
  std::string file;
  index line = 0;
  std::string text;
  std::vector<std::string> truth = {};      ///< one label, or any; regression: the number
  std::vector<std::string> predicted = {};  ///< the same
  double truth_probability = 0;             ///< of the true label; NaN: several labels, numbers
  double probability = 0;                   ///< of the predicted label; NaN as above
  /// -log of the probability of what is true, of several labels their sum, in nats; of numbers the
  /// squared error.
  double loss = 0;
};

/// Precision over recall of a label; no label: of all decisions.
struct LabelCurve {
  std::optional<std::string> label;
  std::vector<PrecisionRecallPoint> points;
};

/// The scores on the test set; those that the kind of the classifier does not have are empty.
struct ClassifierScore {
  ClassifierTask task = ClassifierTask::kSingleLabel;
  InputKind input = InputKind::kText;
  std::vector<std::string> labels = {};
  index examples = 0;
  index truncated = 0;  ///< texts longer than the model's max_length
  double confidence = 0.95;
  double threshold = 0.5;  ///< several labels: from which probability on a label is predicted
  /// [labels] of a linear model of two classes or several labels: its own, for which `threshold`
  /// stands; none: it has none
  std::vector<double> thresholds = {};
  std::string threshold_rule = {};  ///< by what they were chosen: "precision=.95"

  std::optional<ClassificationIntervals> classes = {};
  std::optional<ProbabilityIntervals> probabilities = {};
  std::optional<BinaryIntervals> second_class = {};  ///< with two classes
  std::optional<ConfusionMatrix> confusion = {};
  std::optional<MultilabelIntervals> multilabel = {};
  std::optional<RegressionIntervals> numbers = {};
  std::optional<Interval> loss = {};  ///< several labels: mean over texts of their loss
  /// One class: of the likeliest class. Several labels: of all decisions.
  std::optional<ReliabilityTable> reliability = {};
  std::vector<LabelCurve> precision_recall = {};  ///< of the second of two classes; else of each of
                                                  ///< a few, and of all decisions together
  std::vector<Mistake> mistakes = {};             ///< the worst ones, highest loss first

  const std::vector<ScoresOf<Interval>>& by_label() const {
    return classes ? classes->classes : multilabel->labels;
  }
  const std::vector<index>& support() const {
    return classes ? classes->support : multilabel->support;
  }
  const std::vector<index>& predicted() const {
    return classes ? classes->predicted : multilabel->predicted;
  }

  /// Calls f(name, interval) for each number of the whole test set.
  template <class F>
  void visit_numbers(F&& f) const {
    const auto of_all = [&](const NumberName& name, const Interval& interval) {
      if (name.label < 0) f(name.name, interval);
    };
    if (classes) ClassificationIntervals::visit_numbers(*classes, of_all);
    if (multilabel) MultilabelIntervals::visit_numbers(*multilabel, of_all);
    if (loss) f("loss", *loss);
    if (probabilities) ProbabilityIntervals::visit_numbers(*probabilities, of_all);
    if (second_class) {
      f("roc_auc", second_class->roc_auc);
      f("average_precision", second_class->average_precision);
    }
    if (numbers) RegressionIntervals::visit_numbers(*numbers, of_all);
  }
};

/// -log p, in nats, of a probability in float32, as log_loss has it: neither 0 nor infinite.
double loss_of_probability(float p);

/// A confusion matrix of more classes than this is not written: see draw_confusion().
inline constexpr index kMostClassesOfMatrix = 200;

/// One object: "task", "examples", "truncated",  each number as {"value", "low", "high"}, "labels"
/// with the numbers of each, "confusion" [true][predicted], "reliability", "precision_recall" (of
/// each "label", or with null of all decisions, [recall, precision, threshold]), "mistakes".
Json json_of_score(const ClassifierScore& score);

/// The pictures confusion.svg and reliability.svg, as far as there are such.
struct ScorePicture {
  std::string name;
  std::string svg;
};
std::vector<ScorePicture> pictures_of(const ClassifierScore& score);

struct ClassifierTestOptions {
  TableOptions table = {};  ///< how the files are read; `labels` is not read
  double threshold = 0.5;
  index mistakes = 0;  ///< how many of the worst to keep, with their texts
  BootstrapOptions bootstrap = {};
};

/// The score of the rows of all files. Takes memory for the predictions, and for the texts of a
/// window and of the worst mistakes. Appends the readers' notes to `notes`.
///
/// Throws as LabelledReader does, kEmptyInput without a row, kInputFormat ("FILE:LINE: ...") for a
/// label that the model does not know or more labels than a text may have, kModelDamaged for
/// predictions that are not finite, kOptionValue.
ClassifierScore evaluate_classifier(const Context& context, const LoadedClassifier& model,
                                    std::span<const std::string> files,
                                    const ClassifierTestOptions& options,
                                    std::vector<std::string>& notes);

}  // namespace fovea

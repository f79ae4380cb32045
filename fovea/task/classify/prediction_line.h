// SPDX-License-Identifier: Apache-2.0
// The prediction of a classifier for a text, as a line.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fovea/base/view.h"
#include "fovea/model/classifier_config.h"
#include "fovea/task/classify/classifier.h"

namespace fovea {

/// The choice of predictions to print.
struct PredictionChoice {
  index top = 0;
  double threshold = 0.5;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("top", top,
          "how many labels to print, the likeliest first; 0: one, or of a model of --multi-label "
          "those above --threshold",
          {.range = ValueRange::from(0)});
    visit(
        "threshold", threshold,
        "models of --multi-label: the probability from which on a text has a label; a linear model "
        "has one of its own for each label, which 0.5 stands for",
        {.range = ValueRange::in(0, 1)});
  }
};

/// The meaning of a model's values.
struct ClassifierAnswers {
  ClassifierTask task;
  std::span<const std::string> labels = {};  ///< in the order of the values; none for regression
  NumberScale numbers = {};                  ///< of regression
  std::span<const float> thresholds = {};    ///< LoadedClassifier::thresholds
};

/// Throws kOptionValue unless top >= 0 and threshold is in [0, 1].
void check_options(const PredictionChoice& choice);

/// The labels that are told, the likeliest first; of equal ones, the first of the model. Where the
/// model has thresholds, likely is what is decisive() by them: at 1/2 a label is at its own.
std::vector<index> chosen_labels(const ClassifierAnswers& answers, Vec<const float> probabilities,
                                 const PredictionChoice& choice);

/// The number that a value of the model stands for, with as many digits as the value has.
std::string number_text(float value, const NumberScale& numbers);

/// "LABEL<TAB>PROBABILITY" for each label that is told, with a tab between them; or the numbers.
/// Control characters of labels are escaped, so it is one line, without its end. Probabilities have
/// the fewest digits that read back to the same bits. `values`: as TextPredictor gives them.
std::string prediction_text(const ClassifierAnswers& answers, Vec<const float> values,
                            const PredictionChoice& choice);

/// The predictions as one JSON object: {"label": ..., "probability": ..., "probabilities": {...}}
/// with the likeliest label and those that are chosen; for several labels {"labels": [...],
/// "probabilities": {...}}; for one number {"value": ...}, else {"values": [...]}.
std::string prediction_json(const ClassifierAnswers& answers, Vec<const float> values,
                            const PredictionChoice& choice);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// The prediction of a classifier for a text, as a line.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/view.h"
#include "fovea/config/json.h"
#include "fovea/model/classifier_config.h"
#include "fovea/task/classify/classifier.h"

namespace fovea {

/// The choice of predictions to print.
struct PredictionChoice {
  index top = 0;
  double threshold = 0.5;
  double min_probability = 0;

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
    visit("min_probability", min_probability,
          "models of one label: a text whose label has a smaller probability has an empty label",
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

/// Throws kOptionValue unless top >= 0 and threshold and min_probability are in [0, 1].
void check_options(const PredictionChoice& choice);

/// The labels that are told, the likeliest first; of equal ones, the first of the model. Where the
/// model has thresholds, likely is what is decisive() by them: at 1/2 a label is at its own.
std::vector<index> chosen_labels(const ClassifierAnswers& answers, Vec<const float> probabilities,
                                 const PredictionChoice& choice);

/// Whether the label of these values is less probable than choice.min_probability: it is not told.
bool abstains(const ClassifierAnswers& answers, Vec<const float> values,
              const PredictionChoice& choice);

/// How sure such values are, to compare texts by: the largest probability or, of several labels,
/// how far the label that is nearest to its threshold is from it.
float certainty(const ClassifierAnswers& answers, Vec<const float> values,
                const PredictionChoice& choice);

/// The number that a value of the model stands for, with as many digits as the value has.
std::string number_text(float value, const NumberScale& numbers);

/// The columns of an answer: label, probability, label_2, probability_2, ... (as many as `top`);
/// labels, probabilities; value.
std::vector<std::string> prediction_columns(const ClassifierAnswers& answers,
                                            const PredictionChoice& choice);
/// A field for each of these columns. Several labels, and their probabilities, are one field, with
/// `between` between them.
std::vector<std::string> prediction_fields(const ClassifierAnswers& answers,
                                           Vec<const float> values, const PredictionChoice& choice,
                                           std::string_view between);

/// "LABEL<TAB>PROBABILITY" for each label that is told, with a tab between them; or the numbers.
/// Control characters of labels are escaped, so it is one line, without its end. Probabilities have
/// the fewest digits that read back to the same bits. Where it abstains, the first label is empty.
/// `values`: as TextPredictor gives them.
std::string prediction_text(const ClassifierAnswers& answers, Vec<const float> values,
                            const PredictionChoice& choice);

/// The predictions as one JSON object: {"label": ..., "probability": ..., "probabilities": {...}}
/// with the likeliest label (null where it abstains) and those that are chosen; for several labels
/// {"labels": [...], "probabilities": {...}}; for one number {"value": ...}, else {"values":
/// [...]}.
Json::Object prediction_object(const ClassifierAnswers& answers, Vec<const float> values,
                               const PredictionChoice& choice);
/// Its keys.
std::vector<std::string> prediction_keys(const ClassifierAnswers& answers);
/// The same as a line.
std::string prediction_json(const ClassifierAnswers& answers, Vec<const float> values,
                            const PredictionChoice& choice);

}  // namespace fovea

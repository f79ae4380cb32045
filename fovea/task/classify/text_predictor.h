// SPDX-License-Identifier: Apache-2.0
// Predictions of a classifier for many texts: fast, and with the same bits however they come.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/view.h"
#include "fovea/config/json.h"
#include "fovea/model/classifier.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/length_batches.h"

namespace fovea {

/// A text (of a model of pairs a pair_text()), and what messages call it ("FILE:LINE").
struct NamedText {
  std::string_view text;
  std::string_view name;
};

/// Whether a table of tokens may take `table` bytes, with so much memory left in all and `batches`
/// of it for the batches: at most 256 MiB, and a quarter of what they leave.
bool has_room_for_table(double table, double batches, double memory);

/// Cuts texts into batches of about the same length and gives each thread batches of its own. No
/// bit of a prediction depends on the other texts, their order or the number of threads. Belongs to
/// one thread; the memory of one call is kept for the next.
class TextPredictor {
 public:
  /// How many texts or bytes of text are well read before they are predicted: enough to sort them
  /// by length, and little memory.
  static constexpr std::size_t kTextsAtOnce = 8192, kBytesAtOnce = std::size_t{4} << 20;

  /// `batch_tokens`: a batch ends before it would have more tokens than this (a longer text is a
  /// batch of its own). `model` must outlive the predictor. Throws kOutOfMemory if there is no room
  /// for such batches.
  TextPredictor(const Context& context, const LoadedClassifier& model, index batch_tokens = 2048);

  /// [texts, classes], valid until the next call: the probability of each class or label, or
  /// numbers in the model's unit, of which LoadedClassifier::numbers makes those of the texts.
  /// Throws kEncoding for a text that the tokenizer cannot read (behind what max_length drops it is
  /// not looked at), kModelDamaged for a prediction that is not finite.
  Rows<const float> predict(std::span<const NamedText> texts);
  /// The predictions for any number of texts, which messages call "texts[n]".
  Tensor predict_all(std::span<const std::string> texts);
  /// The predictions for samples `begin` to `end` of a set, which `file` names in errors, for a
  /// model of numbers.
  Rows<const float> predict(const FrameSet& set, index begin, index end, const std::string& file);

  /// How many of all texts so far were longer than the model's max_length, and truncated.
  index truncated() const { return truncated_; }
  index texts() const { return texts_; }
  /// How many tokens the model has read so far; of a linear one, n-grams that it knows.
  index tokens() const { return tokens_; }
  /// The seconds of all calls so far, without reading the texts into tokens.
  double model_seconds() const { return tapes_.seconds() + linear_seconds_; }
  /// Whether texts are read by Classifier::token_table() by now, which changes no bit.
  bool uses_table() const { return table_.defined(); }

 private:
  void predict_linear(std::span<const NamedText> texts);
  void make_table();
  void make_tokens(std::span<const NamedText> texts);
  void count_read();
  Rows<const float> predict_read(const std::function<std::string(std::size_t)>& name);
  void predict_batch(Tape& tape, std::span<const index> batch);
  Variable predictions(Tape& tape, const TextRows& rows) const;
  void require_finite(const std::function<std::string(std::size_t)>& name) const;

  const Context context_;
  const LoadedClassifier& model_;
  const index batch_tokens_;
  double batch_bytes_ = 0;     // that batches take, most
  double linear_seconds_ = 0;  // of a linear model
  BatchTapes tapes_;
  Tensor table_;                  // Classifier::token_table, once it pays
  std::vector<TextTokens> read_;  // of the texts of this call
  Rows<const float> frames_;      // that they name, for a model of numbers
  std::vector<float> values_;     // [texts, classes]
  index truncated_ = 0, texts_ = 0, tokens_ = 0;
};

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
/// The object as a line.
std::string prediction_json(const ClassifierAnswers& answers, Vec<const float> values,
                            const PredictionChoice& choice);

}  // namespace fovea

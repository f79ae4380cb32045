// SPDX-License-Identifier: Apache-2.0
// Fits a linear model to texts, and chooses by cross-validation how.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/data/examples.h"
#include "fovea/linear/linear_model.h"

namespace fovea {

/// The factors of the columns of n-grams, by which they are multiplied before the solution.
enum class NgramWeighting : std::uint8_t {
  kAuto,
  kTfidf,        ///< nothing more than their tf-idf
  kRatio,        ///< log-count ratios of a class and the others (Wang & Manning 2012, section 2.1)
  kBinary,       ///< as kTfidf, but an n-gram counts once in a text
  kBinaryRatio,  ///< as kRatio, likewise
};
inline constexpr EnumName<NgramWeighting> kNgramWeightingNames[] = {
    {NgramWeighting::kAuto, "auto"},
    {NgramWeighting::kTfidf, "tfidf"},
    {NgramWeighting::kRatio, "ratio"},
    {NgramWeighting::kBinary, "binary"},
    {NgramWeighting::kBinaryRatio, "binary-ratio"}};
inline bool is_binary(NgramWeighting weighting) {
  return weighting == NgramWeighting::kBinary || weighting == NgramWeighting::kBinaryRatio;
}
inline bool has_ratios(NgramWeighting weighting) {
  return weighting == NgramWeighting::kRatio || weighting == NgramWeighting::kBinaryRatio;
}
inline std::span<const EnumName<NgramWeighting>> enum_names(NgramWeighting) {
  return kNgramWeightingNames;
}

/// Which n-grams cross-validation may leave out, if the loss without them is clearly less.
enum class NgramsLeftOut : std::uint8_t {
  kAuto,
  kNone,
  kWords,  ///< those of words, of texts that have n-grams of characters as well
};
inline constexpr EnumName<NgramsLeftOut> kNgramsLeftOutNames[] = {{NgramsLeftOut::kAuto, "auto"},
                                                                  {NgramsLeftOut::kNone, "none"},
                                                                  {NgramsLeftOut::kWords, "words"}};
inline std::span<const EnumName<NgramsLeftOut>> enum_names(NgramsLeftOut) {
  return kNgramsLeftOutNames;
}

/// How probabilities are made of logits of texts that a model had not seen.
enum class CalibrationKind : std::uint8_t {
  kNone,
  kTemperature,  ///< one factor, of several labels one for each (Guo et al. 2017)
  kPlatt,     ///< a factor and a shift for each label (Platt 1999); of classes one factor for all
  kIsotonic,  ///< kPlatt, and ascending steps behind it (Zadrozny & Elkan 2002)
};
inline constexpr EnumName<CalibrationKind> kCalibrationKindNames[] = {
    {CalibrationKind::kNone, "none"},
    {CalibrationKind::kTemperature, "temperature"},
    {CalibrationKind::kPlatt, "platt"},
    {CalibrationKind::kIsotonic, "isotonic"}};
inline std::span<const EnumName<CalibrationKind>> enum_names(CalibrationKind) {
  return kCalibrationKindNames;
}

struct LinearFitOptions {
  std::string word_ngrams = "auto";
  std::string char_ngrams = "auto";
  NgramsLeftOut leave_out = NgramsLeftOut::kAuto;
  NgramWeighting weighting = NgramWeighting::kAuto;
  double c = 0;
  index folds = 0;
  CalibrationKind calibrate = CalibrationKind::kPlatt;
  std::string threshold = "f1";

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    constexpr FieldNeeds kLinear = {"model", "linear"};
    visit("word_ngrams", word_ngrams,
          "--model linear: lengths of n-grams of words, 1-2, or 0; auto: by the texts",
          {.needs = kLinear, .shown = "auto|LENGTHS"});
    visit("char_ngrams", char_ngrams,
          "--model linear: lengths of n-grams of characters inside words and their blanks, 1-5, or "
          "0; auto: by the texts",
          {.needs = kLinear, .shown = "auto|LENGTHS"});
    visit(
        "leave_out", leave_out,
        "--model linear: n-grams that cross-validation of 1,000 texts or more may leave out, where "
        "it is better without them; auto: those of words, of short texts",
        {.needs = kLinear});
    visit("weighting", weighting,
          "--model linear: tf-idf alone, or times the log-count ratio of a class and the others; "
          "binary: an n-gram counts once in a text; auto: tfidf or ratio, by cross-validation",
          {.needs = kLinear});
    visit("regularization_c", c,
          "--model linear: weight C of the loss beside the squares of the weights (as scikit-learn "
          "has it); 0: by cross-validation",
          {.range = ValueRange::in(0, 1e9, "by cross-validation"), .needs = kLinear});
    visit("folds", folds,
          "--model linear: parts of cross-validation, whose scores are told with their interval; "
          "0: 20 of few texts to 3 of many, and no interval",
          {.range = ValueRange::in(0, 1000, "by the number of texts"), .needs = kLinear});
    visit("calibrate", calibrate,
          "--model linear: how cross-validation makes probabilities of logits: a factor; platt: a "
          "factor and shifts; isotonic: ascending steps behind these, for thousands of texts",
          {.needs = kLinear});
    visit("threshold", threshold,
          "--model linear: from which probability on a label, or the second of two classes, is "
          "meant: chosen by f1, for precision=X or recall=X, or a number",
          {.needs = kLinear, .shown = "f1|precision=X|recall=X|X"});
  }
};

/// The n-grams that suit the texts, where the options say auto; `note` says why.
struct ChosenNgrams {
  NgramRules rules = {};
  NgramsLeftOut leave_out = NgramsLeftOut::kNone;
  std::string note = {};
};
ChosenNgrams choose_ngrams(std::span<const std::string> texts, const LinearFitOptions& options,
                           WordSplit split, bool lower);

/// The problem: rows of training_rows(), and what is true of each.
struct LinearData {
  const SparseRows& rows;
  const NgramFeatures& features;
  const Examples& truth;               ///< labels or numbers
  std::span<const std::string> texts;  ///< equal ones are of one fold
  ClassifierTask task = ClassifierTask::kSingleLabel;
  index classes = 0;
  std::span<const double> class_weights = {};  ///< [classes]; empty: all 1
};

/// If there are more labels or classes, C and the weighting are chosen by so many, at even
/// distances.
inline constexpr index kMostMeasured = 64;

/// A setting that cross-validation has tried.
struct LinearTrial {
  NgramWeighting weighting = NgramWeighting::kTfidf;
  bool without_words = false;  ///< whether all weights of n-grams of words are 0
  double c = 0;
  /// On texts that the model has not seen: nats a text or, of several labels, a label; of numbers
  /// the mean squared error in the model's unit. Of more than kMostMeasured outputs it is estimated
  /// from so many of them.
  double loss = 0;
};

struct LinearFit {
  LinearModel model;
  std::vector<LinearTrial> trials;  ///< one where C is given; not measured without folds
  std::size_t chosen = 0;           ///< of the trials
  std::vector<float> unseen;  ///< [texts, classes] predictions by models that had not seen the text
  std::vector<std::int32_t> fold = {};  ///< [texts] of cross-validation; without folds none
};

struct FitObserver {
  std::function<void(std::string_view what, double fraction)> works = {};
  std::function<bool()> interrupted = {};
};

/// The size of a problem, before its rows exist.
struct LinearSize {
  index texts = 0, columns = 0, values = 0;  ///< of the rows
  index outputs = 1;                         ///< logits
  index folds = 0, paths = 1, trials = 1;
  index measured = 1;      ///< outputs by which a trial is chosen
  index folds_again = 0;   ///< by which the chosen trial is measured once more
  double ngram_bytes = 0;  ///< of the n-grams and their names
  bool is_scaled = false;  ///< each output is solved by itself in float32

  /// How many problems of one output are solved.
  index problems() const { return measured * folds * trials + outputs * folds_again + outputs; }
  index lanes() const;  ///< problems that are solved side by side, at most
  /// Bytes that a copy of the features, training_rows() and fit_linear() take, at most.
  double bytes(const Context& context) const;
  /// Seconds, about.
  double seconds(const Context& context) const;
};
LinearSize linear_size(const NgramFeatures& features, index texts, ClassifierTask task,
                       index classes, const LinearFitOptions& options);

/// Nothing if it was interrupted. The bits depend neither on the number of threads nor on time.
std::optional<LinearFit> fit_linear(const Context& context, const LinearData& data,
                                    const LinearFitOptions& options, std::uint64_t seed,
                                    const FitObserver& observer = {});

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// All settings of training a text classifier, as one list of fields.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/data/batcher.h"
#include "fovea/data/table/table_options.h"
#include "fovea/linear/fit.h"
#include "fovea/model/classifier.h"
#include "fovea/task/encoder_base.h"
#include "fovea/task/setting_parts.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/options.h"

namespace fovea {

/// The metric by which the best weights are chosen.
enum class ClassifierMetric { kAuto, kLoss, kAccuracy, kMacroF1, kMicroF1, kRmse, kPearson };
inline constexpr EnumName<ClassifierMetric> kClassifierMetricNames[] = {
    {ClassifierMetric::kAuto, "auto"},         {ClassifierMetric::kLoss, "loss"},
    {ClassifierMetric::kAccuracy, "accuracy"}, {ClassifierMetric::kMacroF1, "macro-f1"},
    {ClassifierMetric::kMicroF1, "micro-f1"},  {ClassifierMetric::kRmse, "rmse"},
    {ClassifierMetric::kPearson, "pearson"}};
inline std::span<const EnumName<ClassifierMetric>> enum_names(ClassifierMetric) {
  return kClassifierMetricNames;
}

/// The contents of the files.
enum class InputKind {
  kText,   ///< labelled texts
  kPairs,  ///< labelled pairs of texts
  kNpz,    ///< arrays of numbers over time (data/frames.h)
};
inline constexpr EnumName<InputKind> kInputKindNames[] = {
    {InputKind::kText, "text"}, {InputKind::kPairs, "pairs"}, {InputKind::kNpz, "npz"}};
inline std::span<const EnumName<InputKind>> enum_names(InputKind) { return kInputKindNames; }

/// The words for an entry of the files, and for a row of it.
struct InputWords {
  std::string_view entry;  ///< "text", "sample"
  std::string_view row;    ///< "token", "time step"
};
InputWords words_of(InputKind input);

/// The least --max-length: a pair has a token of each text, and two separators.
index fewest_tokens(InputKind input);

/// How many texts it reads as one.
TextCount texts_of(InputKind input);

/// Makes a model on the layers of an encoder with this tokenizer one of pairs.
void make_cross_encoder(ClassifierConfig& model, const EncoderTokenizer& tokenizer);

/// FieldTraits::part of the settings of texts that only a bag or an encoder reads.
inline constexpr std::string_view kNetworkPart = "network";

/// The labelled texts, and how they become tokens. In the settings of a run that is prepared, and
/// in those of a stored model, tokenizer and max_length are never "auto" and 0.
struct ClassifierTextOptions {
  std::vector<std::string> train;
  std::vector<std::string> valid;
  double valid_fraction = 0.1;
  InputKind input = InputKind::kText;
  TableOptions table;
  bool multi_label = false;
  bool regression = false;
  std::string class_weights = "none";
  double label_smoothing = 0;
  ClassifierMetric metric = ClassifierMetric::kAuto;
  std::string tokenizer = "auto";
  std::string tokenizer_model;
  double subword_sampling = 0;
  WordSplit words = WordSplit::kPunctuation;
  bool lower = true;
  index min_count = 2;
  std::string embeddings;
  index max_length = 0;
  Truncate truncate = Truncate::kEnd;
  index batch_size = 32;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("train", train, "files of labelled texts to train on", kDataFiles);
    visit("valid", valid, "files of labelled texts to validate on", kDataFiles);
    visit("valid_fraction", valid_fraction,
          "without --valid: this part of the texts, drawn at random, is for validation",
          kDataSplit);
    visit("input", input,
          "what the files hold: labelled texts, pairs of them (as fovea train pairs has it), or "
          "arrays of numbers over time");
    table.visit_fields(under("Files", visit));
    visit("multi_label", multi_label, "a text may have any number of labels");
    visit("regression", regression, "the label is a number");
    visit("class_weights", class_weights,
          "weights of the classes in the loss: none, balanced (rare ones count more), or "
          "LABEL=NUMBER,...",
          {.resume = OnResume::kNoted, .shown = "none|balanced|LABEL=NUMBER,..."});
    visit("label_smoothing", label_smoothing,
          "share of each target that all classes get in equal parts, in training",
          {.range = ValueRange::share(), .part = kNetworkPart, .resume = OnResume::kNoted});
    visit("metric", metric, "metric of the validation by which the best weights are chosen",
          {.part = kNetworkPart});
    visit("tokenizer", tokenizer, "what a token is; auto: by the texts, word or char",
          {.needs = {"input", "text|pairs"},
           .part = kNetworkPart,
           .place = HelpPlace::kData,
           .names = [] { return "auto|" + tokenizer_names(); }});
    visit("tokenizer_model", tokenizer_model,
          "--tokenizer sentencepiece: the .model file whose pieces are the tokens",
          {.needs = {"input", "text|pairs"},
           .also_needs = {"tokenizer", kPieceKind},
           .part = kNetworkPart,
           .is_path = true});
    visit("subword_sampling", subword_sampling, kSubwordSamplingHelp,
          {.range = ValueRange::in(0, 1),
           .needs = {"input", "text"},
           .also_needs = {"tokenizer", kPieceKind},
           .part = kNetworkPart});
    visit("words", words, "--tokenizer word: what ends a word",
          {.needs = {"input", "text|pairs"}, .also_needs = {"tokenizer", "word|auto"}});
    visit("lower", lower, "--tokenizer char and word: put the text into lower case",
          {.needs = {"input", "text|pairs"}});
    visit("min_count", min_count, "--tokenizer word: words seen less often are read as <unk>",
          {.range = ValueRange::from(1),
           .needs = {"input", "text|pairs"},
           .also_needs = {"tokenizer", "word|auto"},
           .part = kNetworkPart});
    visit("embeddings", embeddings, kEmbeddingsHelp,
          {.needs = {"input", "text|pairs"}, .part = kNetworkPart, .is_path = true});
    visit("max_length", max_length,
          "most tokens of a text; 0: of the longest text, but at most 4096, with --encoder 512",
          {.range = ValueRange::in(0, kLargestSize, "of the longest text"), .part = kNetworkPart});
    visit("truncate", truncate, "which end of a text longer than --max-length is dropped",
          {.part = kNetworkPart});
    visit("batch_size", batch_size, "texts per batch",
          {.range = ValueRange::in(1, kLargestSize),
           .part = kNetworkPart,
           .resume = OnResume::kNoted,
           .place = HelpPlace::kTraining});
  }
};

/// A search for settings (task/classify/search.h).
struct AutoOptions {
  std::string budget;  ///< none: there is no search to do

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("auto", budget,
          "search for settings first, in this time (90s, 10m, 2h) or number of trials (40t)",
          {.needs = {"input", "text"}, .place = HelpPlace::kModel, .shown = "TIME"});
  }
};

struct ClassifierSettings {
  ClassifierSettings() : ClassifierSettings(InputKind::kText) {}
  /// The defaults of this input.
  explicit ClassifierSettings(InputKind input);

  ClassifierTextOptions text;
  ClassifierConfig model;
  LinearFitOptions linear;
  TrainOptions recipe;
  AutoOptions search;
  EncoderBaseOptions from;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit_groups(visit, *this);
    visit("linear", linear, "a linear model", {.resume = OnResume::kNo});
    visit("search", search, "a search for settings");
    visit("from", from, "the model to begin from", {.resume = OnResume::kNo});
  }
};

/// Whether a model of these settings reads tokens of its own: no linear one, none of numbers, and
/// none that began from elsewhere.
inline bool has_tokenizer(const ClassifierSettings& settings) {
  return settings.text.input != InputKind::kNpz &&
         settings.model.kind != ClassifierModel::kLinear && !settings.model.has_base();
}

/// How long a run is by default.
inline constexpr index kClassifierEpochs = 10;

/// Replaces --model auto: by linear for texts, unless a setting that only a bag or an encoder reads
/// is not its default; else by one of these two. In a search it stays auto, unless a setting that
/// some models alone read is not its default.
void choose_model(ClassifierSettings& settings);

/// Recipe and batches with which an encoder that is trained already goes on, where nobody says
/// more.
void apply_base_recipe(ClassifierSettings& settings);

/// Takes from settings.from.base what it decides: the layers and the tokens. `set`: the names of
/// the fields that a user has set. Throws kOptionValue for one of them that the base has otherwise,
/// or that has no effect with a base, and what reading the base throws.
void take_base(ClassifierSettings& settings, const std::vector<std::string>& set);

/// Whether a field of these settings has no effect on a model that begins from an encoder.
bool is_idle_with_encoder(std::string_view field);

/// The question about a text, with so many labels to train on.
ClassifierTask task_of(const ClassifierTextOptions& text, index labels);

/// Throws kOptionValue, which names the option, for an invalid value of text or recipe.
void check_options(const ClassifierSettings& settings);

}  // namespace fovea

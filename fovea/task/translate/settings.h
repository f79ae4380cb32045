// SPDX-License-Identifier: Apache-2.0
// All settings of training a translator, as one list of fields.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/option.h"
#include "fovea/base/types.h"
#include "fovea/model/translator.h"
#include "fovea/task/setting_parts.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/options.h"

namespace fovea {

/// The metric by which the best weights are chosen.
enum class TranslatorMetric : std::uint8_t {
  kLoss,
  kBleu,  ///< of the likeliest token at each step, words as sacreBLEU's 13a has them
  kChrf,
};
inline constexpr EnumName<TranslatorMetric> kTranslatorMetricNames[] = {
    {TranslatorMetric::kLoss, "loss"},
    {TranslatorMetric::kBleu, "bleu"},
    {TranslatorMetric::kChrf, "chrf"}};
inline std::span<const EnumName<TranslatorMetric>> enum_names(TranslatorMetric) {
  return kTranslatorMetricNames;
}

/// The pairs of sentences, and what becomes of them. In the settings of a stored model
/// target_tokenizer is never "".
struct TranslatorTextOptions {
  std::vector<std::string> source;
  std::vector<std::string> target;
  std::vector<std::string> train;
  std::vector<std::string> valid_source;
  std::vector<std::string> valid_target;
  std::vector<std::string> valid;
  double valid_fraction = 0.05;
  std::string tokenizer{kWordKind};
  std::string target_tokenizer;
  std::string tokenizer_model;
  std::string target_tokenizer_model;
  double subword_sampling = 0;
  bool shared_vocabulary = false;
  bool lower = false;
  WordSplit words = WordSplit::kSpaces;
  index min_count = 2;
  index batch_tokens = 2048;
  double token_dropout = 0;
  double label_smoothing = 0.1;
  TranslatorMetric metric = TranslatorMetric::kLoss;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("source", source, "files of sentences to translate from, one a line", kDataFiles);
    visit("target", target, "files of their translations, line by line", kDataFiles);
    visit(
        "train", train,
        "instead of --source and --target: files with a sentence, a tab and its translation a line",
        kDataFiles);
    visit("valid_source", valid_source, "files of sentences to validate on", kDataFiles);
    visit("valid_target", valid_target, "files of their translations", kDataFiles);
    visit("valid", valid,
          "instead of --valid-source and --valid-target: files with both, a tab between them",
          kDataFiles);
    visit("valid_fraction", valid_fraction,
          "without --valid and --valid-source: this part of the pairs, drawn at random, is for "
          "validation",
          kDataSplit);
    visit("tokenizer", tokenizer, "what a token of the source is",
          {.place = HelpPlace::kData, .names = tokenizer_names});
    visit("target_tokenizer", target_tokenizer,
          "what a token of the target is; none given: that of --tokenizer",
          {.place = HelpPlace::kData, .names = tokenizer_names});
    visit("tokenizer_model", tokenizer_model,
          "--tokenizer sentencepiece: the .model file whose pieces are the tokens",
          {.needs = {"tokenizer|target_tokenizer", kPieceKind}, .is_path = true});
    visit(
        "target_tokenizer_model", target_tokenizer_model,
        "--target-tokenizer sentencepiece: its .model file; none given: that of --tokenizer-model",
        {.is_path = true});
    visit("subword_sampling", subword_sampling, kSubwordSamplingHelp,
          {.range = ValueRange::in(0, 1), .needs = {"tokenizer|target_tokenizer", kPieceKind}});
    visit("shared_vocabulary", shared_vocabulary, "one vocabulary, of both sides together");
    visit("lower", lower, "--tokenizer char and word: put the text into lower case");
    visit("words", words, "--tokenizer word: what ends a word",
          {.needs = {"tokenizer|target_tokenizer", kWordKind}});
    visit("min_count", min_count, "--tokenizer word: words seen less often are read as <unk>",
          {.range = ValueRange::from(1), .needs = {"tokenizer|target_tokenizer", kWordKind}});
    visit("batch_tokens", batch_tokens, "about how many target tokens a batch has",
          {.range = ValueRange::in(1, 1 << 28),
           .resume = OnResume::kNoted,
           .place = HelpPlace::kTraining});
    visit("token_dropout", token_dropout,
          "probability that a token is read as the unknown word (of characters and bytes: as "
          "nothing), in training",
          {.range = ValueRange::share(), .resume = OnResume::kNoted});
    visit("label_smoothing", label_smoothing,
          "share of each target that all tokens get in equal parts, in training",
          {.range = ValueRange::share(), .resume = OnResume::kNoted});
    visit("metric", metric,
          "metric of the validation by which the best weights are chosen: its loss, or BLEU or "
          "chrF of its translations");
  }
};

struct TranslatorRecipe : TrainOptions {
  index average = 0;
  index average_best = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    TrainOptions::visit_fields(visit);
    const auto visit_checkpoints = under(kCheckpointsHeading, visit);
    visit_checkpoints(
        "average", average,
        "at the end, take the mean of the weights of the last N checkpoints if it validates "
        "better; 0: no",
        {.range = ValueRange::in(0, 1000, "no"), .resume = OnResume::kQuiet});
    visit_checkpoints(
        "average_best", average_best,
        "instead of --average: the mean of the weights of the N best evaluations; 0: no",
        {.range = ValueRange::in(0, 1000, "no"), .resume = OnResume::kQuiet});
  }
};

/// The translator that a training begins from.
struct TranslatorBase {
  std::string base;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    under("A model to begin from", visit)(
        "base", base,
        "begin from this translator, a folder of fovea; its layers and its tokens are kept",
        {.is_path = true, .place = HelpPlace::kModel, .shown = "DIR"});
  }
};

struct TranslatorSettings {
  TranslatorSettings();

  TranslatorTextOptions text;
  TranslatorConfig model;
  TranslatorRecipe recipe;
  TranslatorBase from;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit_groups(visit, *this);
    visit("from", from, "the model to begin from", {.resume = OnResume::kNo});
  }
};

/// How long a run is by default; and one that begins from a translator.
inline constexpr index kTranslatorEpochs = 20, kEpochsFromBase = 5;

/// The recipe for weights that have learned already.
void apply_base_recipe(TranslatorSettings& settings);
/// Takes from settings.from.base its model and its tokens. `set`: the names of the fields that a
/// user has set. Throws kOptionValue for what the base has otherwise, and what reading its
/// config.json throws.
void take_base(TranslatorSettings& settings, const std::vector<std::string>& set);

/// Named settings to start from; options that are given too override them.
struct TranslatorPreset {
  std::string_view name;
  std::string_view summary;
  void (*apply)(TranslatorSettings& settings);
};
std::span<const TranslatorPreset> translator_presets();
/// Throws kOptionValue, which lists the presets, if there is none of that name.
void apply_preset(std::string_view name, TranslatorSettings& settings);

/// Throws kOptionValue, which names the option, for an invalid value of text or recipe.
void check_options(const TranslatorSettings& settings);

}  // namespace fovea

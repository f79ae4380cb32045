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
#include "fovea/model/translator_config.h"
#include "fovea/task/setting_groups.h"
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
    visit("source", source, "files of sentences to translate from, one a line",
          {.resume = OnResume::kQuiet, .is_path = true});
    visit("target", target, "files of their translations, one a line",
          {.resume = OnResume::kQuiet, .is_path = true});
    visit("train", train, "instead: files with a sentence, a tab and its translation a line",
          {.resume = OnResume::kQuiet, .is_path = true});
    visit("valid_source", valid_source, "files of sentences to validate on",
          {.resume = OnResume::kQuiet, .is_path = true});
    visit("valid_target", valid_target, "files of their translations",
          {.resume = OnResume::kQuiet, .is_path = true});
    visit("valid", valid, "instead: files with both, a tab between them",
          {.resume = OnResume::kQuiet, .is_path = true});
    visit("valid_fraction", valid_fraction,
          "without these: this part of the pairs, drawn at random, is for validation",
          {.range = ValueRange::share("no validation"), .resume = OnResume::kUnlessSplit});
    visit("tokenizer", tokenizer, "what a token of the source is", {.names = tokenizer_names});
    visit("target_tokenizer", target_tokenizer,
          "what a token of the target is; none given: --tokenizer", {.names = tokenizer_names});
    visit("tokenizer_model", tokenizer_model,
          "tokenizer sentencepiece: the .model file whose pieces are the tokens",
          {.needs = {"tokenizer|target_tokenizer", kPieceKind}, .is_path = true});
    visit("target_tokenizer_model", target_tokenizer_model,
          "the same of the target; none given: --tokenizer-model", {.is_path = true});
    visit(
        "subword_sampling", subword_sampling,
        "tokenizer sentencepiece: cut the pairs anew in each epoch; of unigram models the power of "
        "a cut's probability, of BPE the share of merges left out; 0: the best cut",
        {.range = ValueRange::in(0, 1), .needs = {"tokenizer|target_tokenizer", kPieceKind}});
    visit("shared_vocabulary", shared_vocabulary, "one vocabulary, of both sides together");
    visit("lower", lower, "put the text into lower case; for tokenizer char and word");
    visit("words", words, "tokenizer word: what ends a word",
          {.needs = {"tokenizer|target_tokenizer", kWordKind}});
    visit("min_count", min_count, "tokenizer word: words seen less often are unknown",
          {.range = ValueRange::from(1), .needs = {"tokenizer|target_tokenizer", kWordKind}});
    visit("batch_tokens", batch_tokens, "target tokens of a batch, about",
          {.range = ValueRange::in(1, 1 << 28), .resume = OnResume::kNoted});
    visit("token_dropout", token_dropout,
          "probability that a token is read as the unknown word (of characters and bytes: as "
          "nothing), in training",
          {.range = ValueRange::share(), .resume = OnResume::kNoted});
    visit("label_smoothing", label_smoothing,
          "share of each target that all tokens get in equal parts, in training",
          {.range = ValueRange::share(), .resume = OnResume::kNoted});
    visit("metric", metric,
          "what says which weights are the best: the loss of the validation, or BLEU or chrF of "
          "its translations");
  }
};

struct TranslatorRecipe : TrainOptions {
  index average = 0;
  index average_best = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    TrainOptions::visit_fields(visit);
    visit("average", average,
          "at the end, take the mean of the weights of the last N checkpoints if it validates "
          "better; 0: no",
          {.range = ValueRange::in(0, 1000, "no"), .resume = OnResume::kQuiet});
    visit("average_best", average_best,
          "the same with the weights of the N best evaluations instead; 0: no",
          {.range = ValueRange::in(0, 1000, "no"), .resume = OnResume::kQuiet});
  }
};

struct TranslatorSettings {
  TranslatorSettings();

  TranslatorTextOptions text;
  TranslatorConfig model;
  TranslatorRecipe recipe;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit_groups(visit, *this);
  }
};

/// How long a run is by default.
inline constexpr index kTranslatorEpochs = 20;

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

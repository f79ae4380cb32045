// SPDX-License-Identifier: Apache-2.0
// All settings of training a language model, as one list of fields.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/option.h"
#include "fovea/base/types.h"
#include "fovea/data/batcher.h"
#include "fovea/model/language_model.h"
#include "fovea/task/adapters.h"
#include "fovea/task/setting_parts.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/options.h"

namespace fovea {

/// Which tokens of conversations are learned.
enum class LossOn { kAnswers, kAll };
inline constexpr EnumName<LossOn> kLossOnNames[] = {{LossOn::kAnswers, "answers"},
                                                    {LossOn::kAll, "all"}};
inline std::span<const EnumName<LossOn>> enum_names(LossOn) { return kLossOnNames; }

/// What a training makes probable.
enum class LanguageObjective {
  kNextToken,  ///< each next token of the text
  kDpo,        ///< of two answers the one that is preferred (task/language_model/preference.h)
};
inline constexpr EnumName<LanguageObjective> kLanguageObjectiveNames[] = {
    {LanguageObjective::kNextToken, "next-token"}, {LanguageObjective::kDpo, "dpo"}};
inline std::span<const EnumName<LanguageObjective>> enum_names(LanguageObjective) {
  return kLanguageObjectiveNames;
}

/// The text, and how it is cut into sequences.
struct TextOptions {
  std::vector<std::string> train;
  std::vector<std::string> valid;
  double valid_fraction = 0.1;
  std::string tokenizer = "char";
  std::string tokenizer_model;
  double subword_sampling = 0;
  bool lower = false;
  index min_count = 2;
  std::string vocabulary;
  std::string data = "blocks";
  LossOn loss_on = LossOn::kAnswers;
  LanguageObjective objective = LanguageObjective::kNextToken;
  double dpo_beta = 0.1;
  bool marks = true;
  index max_length = 0;
  Truncate truncate = Truncate::kEnd;
  bool by_length = true;
  index batch_size = 12;
  index sequence_length = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("train", train, "text files to train on, joined in this order", kDataFiles);
    visit("valid", valid, "text files to validate on", kDataFiles);
    visit("valid_fraction", valid_fraction,
          "without --valid: this last part of the text is for validation", kDataSplit);
    visit("tokenizer", tokenizer, "what a token is",
          {.place = HelpPlace::kData, .names = tokenizer_names});
    visit("tokenizer_model", tokenizer_model,
          "--tokenizer sentencepiece: the .model file whose pieces are the tokens",
          {.needs = {"tokenizer", kPieceKind}, .is_path = true});
    visit("subword_sampling", subword_sampling, kSubwordSamplingHelp,
          {.range = ValueRange::in(0, 1), .needs = {"tokenizer", kPieceKind}});
    visit("lower", lower, "--tokenizer char and word: put the text into lower case");
    visit("min_count", min_count, "--tokenizer word: words seen less often are read as <unk>",
          {.range = ValueRange::from(1), .needs = {"tokenizer", kWordKind}});
    visit("vocabulary", vocabulary,
          "--tokenizer word: a file of its words, one a line, as in vocab.txt",
          {.needs = {"tokenizer", kWordKind}, .is_path = true});
    visit("data", data,
          "blocks: random blocks of the text; lines: each line is a sequence; chat: each line is a "
          "conversation, for a --base with a chat template",
          {.names = [] { return names_in(kDataKinds, "|"); }});
    visit("loss_on", loss_on, "--data chat: which tokens are learned", {.needs = {"data", "chat"}});
    visit("objective", objective,
          "--data chat: next-token; or dpo: each line has two answers, of which one is preferred "
          "(Rafailov et al. 2023)",
          {.needs = {"data", "chat"}, .resume = OnResume::kNo});
    visit(
        "dpo_beta", dpo_beta,
        "--objective dpo: how strongly the model is held to what --base says; larger: more",
        {.range = ValueRange::over(0), .needs = {"objective", "dpo"}, .resume = OnResume::kNoted});
    visit("marks", marks, "--data lines: a begin token before each line, an end token behind it");
    visit("max_length", max_length,
          "--data lines: most tokens of a line, marks included; 0: any number",
          {.needs = {"data", "lines"}});
    visit("truncate", truncate, "which end of a line longer than --max-length is dropped",
          {.needs = {"max_length"}});
    visit("by_length", by_length, "--data lines: a batch holds lines of about the same length");
    visit("batch_size", batch_size, "sequences per batch; with --objective dpo pairs of them",
          {.resume = OnResume::kNoted, .place = HelpPlace::kTraining});
    visit("sequence_length", sequence_length,
          "most tokens of a sequence to train on; 0: as many as the model sees, --block",
          {.range = ValueRange::in(0, kLargestSize, "as many as --block"),
           .place = HelpPlace::kTraining});
  }
};

/// The model that a training begins from, and what of it is trained.
struct LanguageModelBase : AdaptableBase {
  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    AdaptableBase::visit_fields(
        visit,
        "begin from this model: a folder of fovea or of Hugging Face, or a GGUF file; its layers "
        "and its tokens are kept",
        "which products have adapters: q, k, v, o, up, down, gate, or names of tensors, with "
        "commas between, or all");
  }
};

struct LanguageModelSettings {
  LanguageModelBase from;
  TextOptions text;
  LanguageModelConfig model;
  TrainOptions recipe;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("from", from, "the model to begin from", {.resume = OnResume::kNo});
    visit_groups(visit, *this);
  }
};

/// How training, validation and test texts are cut.
BatchOptions batches_of(const LanguageModelSettings& settings);

/// Named settings to start from; options that are given too override them.
struct LanguageModelPreset {
  std::string_view name;
  std::string_view summary;
  void (*apply)(LanguageModelSettings& settings);
};

std::span<const LanguageModelPreset> language_model_presets();

/// Throws kOptionValue, which lists the presets, if there is none of that name.
void apply_preset(std::string_view name, LanguageModelSettings& settings);

/// Throws kOptionValue, which names the option, for an invalid value of text or recipe.
void check_options(const LanguageModelSettings& settings);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/settings.h"

#include <array>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/translator.h"
#include "fovea/task/base.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/setting_parts.h"
#include "fovea/task/translate/translator.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

namespace {

// For quick trials.
void apply_tiny(TranslatorSettings& s) {
  s.model.encoder_layers = s.model.decoder_layers = 2;
  s.model.heads = 2;
  s.model.width = 64;
  s.text.batch_tokens = 1024;
  s.recipe.lr = 2e-3;
  s.recipe.min_lr = 2e-4;
  s.recipe.warmup = 200;
}

void apply_small(TranslatorSettings&) {}

// The base model of Vaswani et al. 2017, table 3, with norms before each part.
void apply_base(TranslatorSettings& s) {
  s.model.encoder_layers = s.model.decoder_layers = 6;
  s.model.heads = 8;
  s.model.width = 512;
  s.text.batch_tokens = 4096;
  s.recipe.lr = 7e-4;
  s.recipe.min_lr = 7e-5;
  s.recipe.warmup = 4000;
}

constexpr std::array kTranslatorPresets = {
    TranslatorPreset{"tiny", "2 + 2 layers of width 64: to try things out", apply_tiny},
    TranslatorPreset{"small", "3 + 3 layers of width 256: the defaults", apply_small},
    TranslatorPreset{"base", "6 + 6 layers of width 512: the Transformer of 2017", apply_base},
};

void check_files(const TranslatorTextOptions& text) {
  require_together(text.source.size() == text.target.size(), "--source, --target",
                   fmt::format("{} files and {}", text.source.size(), text.target.size()),
                   "name as many with --target as with --source, in the same order");
  require_together(
      text.valid_source.size() == text.valid_target.size(), "--valid-source, --valid-target",
      fmt::format("{} files and {}", text.valid_source.size(), text.valid_target.size()),
      "name as many of one as of the other, in the same order");
}

void check_tokenizers(const TranslatorTextOptions& text) {
  const TokenizerKind& source = tokenizer_kind(text.tokenizer);
  const TokenizerKind& target =
      tokenizer_kind(text.target_tokenizer.empty() ? text.tokenizer : text.target_tokenizer);
  require_together(!text.shared_vocabulary || source.name == target.name,
                   "--shared-vocabulary, --target-tokenizer",
                   "one vocabulary has one kind of token", "leave one of the two out");
  require_subword_model(source.has_model, text.tokenizer_model, "--tokenizer-model");
  if (text.tokenizer_model.empty()) {
    require_subword_model(target.has_model, text.target_tokenizer_model,
                          "--target-tokenizer-model");
  }
  require_together(target.has_model || text.target_tokenizer_model.empty(),
                   "--target-tokenizer-model", "has no effect without --tokenizer sentencepiece",
                   "add that, or leave --target-tokenizer-model out");
  require_together(!text.shared_vocabulary || text.target_tokenizer_model.empty(),
                   "--shared-vocabulary, --target-tokenizer-model", "one vocabulary has one model",
                   "leave one of the two out");
  require_together(!text.lower || (source.has_lower && target.has_lower), "--lower",
                   "bytes are kept as they are, and a model of subwords says it itself",
                   "leave --lower out, or choose --tokenizer char or word");
}

}  // namespace

TranslatorSettings::TranslatorSettings() {
  recipe.lr = 1e-3;
  recipe.min_lr = 1e-4;
  recipe.schedule = ScheduleKind::kInverseSqrt;
  recipe.warmup = 1000;
  recipe.beta2 = 0.98;
  recipe.weight_decay = 0.01;
  recipe.stop_after = recipe.eval_every = recipe.save_every = kAutoLength;
  recipe.patience = 5;
}

std::span<const TranslatorPreset> translator_presets() { return kTranslatorPresets; }

void apply_preset(std::string_view name, TranslatorSettings& settings) {
  choose(kTranslatorPresets, name, "preset").apply(settings);
}

void apply_base_recipe(TranslatorSettings& settings) {
  settings.recipe.lr = 2e-4;
  settings.recipe.min_lr = 2e-5;
  settings.recipe.schedule = ScheduleKind::kLinear;
  settings.recipe.warmup = 100;
}

namespace {

bool is_decided(std::string_view field) {
  constexpr std::string_view kOfTokens[] = {"text.tokenizer",       "text.target_tokenizer",
                                            "text.tokenizer_model", "text.shared_vocabulary",
                                            "text.lower",           "text.words",
                                            "text.min_count",       "text.target_tokenizer_model"};
  return (field.starts_with("model.") && field != "model.dropout") || contains(kOfTokens, field);
}

}  // namespace

void take_base(TranslatorSettings& settings, const std::vector<std::string>& set) {
  const std::filesystem::path base = settings.from.base;
  if (is_foreign_translator(base)) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: a translator of transformers; only those of fovea are trained on",
                            base.string()),
                "name a folder that fovea train translate has written");
  }
  TranslatorSettings theirs = translator_settings_from_text(read_model_file(base, "config.json"),
                                                            (base / "config.json").string());
  require_as_base(fields_of(settings), fields_of(theirs), set, is_decided, base.string());
  if (contains(set, "model.dropout")) theirs.model.dropout = settings.model.dropout;
  settings.model = std::move(theirs.model);
  TranslatorTextOptions &text = settings.text, &of_base = theirs.text;
  text.tokenizer = std::move(of_base.tokenizer);
  text.target_tokenizer = std::move(of_base.target_tokenizer);
  text.tokenizer_model = std::move(of_base.tokenizer_model);
  text.target_tokenizer_model = std::move(of_base.target_tokenizer_model);
  text.shared_vocabulary = of_base.shared_vocabulary;
  text.lower = of_base.lower;
  text.words = of_base.words;
  text.min_count = of_base.min_count;
}

void check_options(const TranslatorSettings& s) {
  check_recipe(s.recipe);
  check_fields(s, TranslatorSettings());
  require_together(s.recipe.average < 2 || s.recipe.average_best < 2, "--average, --average-best",
                   "a model has one mean", "leave one of the two out");
  const bool validates =
      s.text.valid_fraction > 0 || !s.text.valid.empty() || !s.text.valid_source.empty();
  require_together(s.recipe.average_best < 2 || validates, "--average-best",
                   "has no effect without validation", "name --valid-source and --valid-target");
  const TranslatorTextOptions& text = s.text;
  check_files(text);
  check_tokenizers(text);
  require_together(!s.model.share_embeddings || text.shared_vocabulary, "--share-embeddings",
                   "source and target have vocabularies of their own",
                   "add --shared-vocabulary, or leave --share-embeddings out");
}

}  // namespace fovea

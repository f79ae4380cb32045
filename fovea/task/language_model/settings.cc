// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/settings.h"

#include <array>
#include <span>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/data/batcher.h"
#include "fovea/task/setting_parts.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

namespace {

// For quick trials: a minute on any machine.
void apply_tiny(LanguageModelSettings& s) {
  s.model.layers = 2;
  s.model.heads = 2;
  s.model.width = 64;
  s.model.block = 32;
  s.recipe.stop_after = "500u";
}

// nanoGPT's recipe for characters on a CPU. These are the defaults.
void apply_small(LanguageModelSettings&) {}

// The smallest model of Radford et al. 2019 (124 million parameters with its vocabulary), with the
// recipe by which nanoGPT reproduces it; the paper itself uses dropout 0.1.
void apply_gpt2(LanguageModelSettings& s) {
  s.model.layers = 12;
  s.model.heads = 12;
  s.model.width = 768;
  s.model.block = 1024;
  s.model.bias = true;
  s.model.activation = LayerActivation::kGeluTanh;
  s.text.batch_size = 8;
  s.recipe.lr = 6e-4;
  s.recipe.min_lr = 6e-5;
  s.recipe.warmup = 2000;
  s.recipe.beta2 = 0.95;
  s.recipe.stop_after = "600000u";
}

// The model and training of Hands-on NLP, chapter 6: post-norm, its own layer norm, Adam without
// decay, one line at a time; words that occur twice, lower case, lines of at most 40 words without
// marks.
void apply_source(LanguageModelSettings& s) {
  s.model.layers = 1;
  s.model.heads = 4;
  s.model.width = 128;
  s.model.ff = 512;
  s.model.block = 40;
  s.model.norm_position = NormPosition::kPost;
  s.model.ln_variant = LayerNormVariant::kUnbiased;
  s.model.bias = true;
  s.model.activation = LayerActivation::kRelu;
  s.model.tie = false;
  s.text.tokenizer = kWordKind;
  s.text.lower = true;
  s.text.min_count = 2;
  s.text.data = "lines";
  s.text.marks = false;
  s.text.max_length = 40;
  s.text.truncate = Truncate::kEnd;
  s.text.batch_size = 1;
  s.recipe.lr = 1e-3;
  s.recipe.min_lr = 1e-3;
  s.recipe.schedule = ScheduleKind::kConstant;
  s.recipe.warmup = 0;
  s.recipe.beta2 = 0.999;
  s.recipe.weight_decay = 0;
  s.recipe.clip = 1;
  s.recipe.stop_after = "50e";
  s.recipe.eval_every = "1e";
  s.recipe.save_every = "1e";
}

constexpr std::array kLanguageModelPresets = {
    LanguageModelPreset{"tiny", "2 layers of width 64: to try things out", apply_tiny},
    LanguageModelPreset{"small", "4 layers of width 128: the defaults", apply_small},
    LanguageModelPreset{"gpt2", "12 layers of width 768: GPT-2 small, nanoGPT's recipe",
                        apply_gpt2},
    LanguageModelPreset{"source", "the book's one-layer model of words, a line at a time",
                        apply_source},
};

void check_text(const TextOptions& text, bool has_base) {
  if (text.tokenizer == kPretrainedKind && has_base) {
    data_kind(text.data);
    return;
  }
  const TokenizerKind& kind = tokenizer_kind(text.tokenizer);
  data_kind(text.data);
  require_subword_model(kind.has_model, text.tokenizer_model, "--tokenizer-model");
  if (text.lower && !kind.has_lower) {
    throw Error(
        ErrorCode::kOptionValue,
        kind.has_model
            ? std::string("--lower: the model of --tokenizer sentencepiece says it")
            : fmt::format("--lower: --tokenizer {} keeps every byte as it is", text.tokenizer),
        kind.has_model ? "leave --lower out, or learn a model with fovea tokenizer train "
                         "--normalization nmt_nfkc_cf"
                       : "leave --lower out, or choose --tokenizer char or word");
  }
}

}  // namespace

std::span<const LanguageModelPreset> language_model_presets() { return kLanguageModelPresets; }

void apply_preset(std::string_view name, LanguageModelSettings& settings) {
  choose(kLanguageModelPresets, name, "preset").apply(settings);
}

BatchOptions batches_of(const LanguageModelSettings& s) {
  return {.block = s.text.sequence_length > 0 ? s.text.sequence_length : s.model.block,
          .batch_size = s.text.batch_size,
          .accumulate = s.recipe.accumulate,
          .seed = s.recipe.seed,
          .max_length = s.text.max_length,
          .truncate = s.text.truncate,
          .by_length = s.text.by_length,
          .subword_sampling = s.text.subword_sampling};
}

void check_options(const LanguageModelSettings& s) {
  check_options(s.recipe);
  check_options(batches_of(s));
  check_fields(s, LanguageModelSettings());
  check_ranges(s.from);
  check_text(s.text, !s.from.base.empty());
  check_adapters(s.from);
  if (s.text.objective == LanguageObjective::kDpo) {
    require_together(!s.recipe.evaluate_training, "--evaluate-training, --objective dpo",
                     "the training set is measured by next tokens alone", "leave one of them out");
    require_together(s.model.dropout == 0, "--dropout, --objective dpo",
                     "answers are compared by a model without dropout", "leave --dropout out");
    require_together(s.from.lora_dropout == 0, "--lora-dropout, --objective dpo",
                     "answers are compared by a model without dropout", "leave --lora-dropout out");
    require_together(s.text.loss_on == LossOn::kAnswers, "--loss-on all, --objective dpo",
                     "answers are compared, and the question is in both", "leave --loss-on out");
  }
  require_option(s.text.sequence_length <= s.model.block,
                 Hint{"the model sees --block tokens at once"}, "sequence_length",
                 s.text.sequence_length, "at most --block ({})", s.model.block);
  require_together(s.recipe.patience == 0 || !s.text.valid.empty() || s.text.valid_fraction > 0,
                   fmt::format("--patience {}", s.recipe.patience),
                   "has no effect without --valid-fraction",
                   "leave --patience out, or add --valid-fraction");
}

}  // namespace fovea

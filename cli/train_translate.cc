// SPDX-License-Identifier: Apache-2.0
// fovea train translate: trains a translator on pairs of sentences.
#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/run_training.h"
#include "fovea/base/option.h"
#include "fovea/task/translate/run.h"
#include "fovea/task/translate/settings.h"

namespace fovea::cli {

namespace {

std::string translate_epilog() {
  return epilog_of(
      {.examples =
           R"(  fovea train translate --source train.en --target train.de -o model
  fovea train translate --source train.en --target train.de --valid-source dev.en --valid-target dev.de -o model
  fovea train translate --train pairs.tsv --preset tiny -o model     a sentence, a tab, its translation
  fovea train translate --source train.zh --target train.en --tokenizer char --target-tokenizer word -o model
  fovea train translate --source train.en --target train.de --encoder-layers 6 --decoder-layers 2 -o model
  fovea train translate --base model --train terms.tsv -o ours       go on with other sentences
  fovea train translate --resume -o model                            go on after an interruption)",
       .data = "Line n of the source and line n of the target belong together. Files may be packed "
               "by gzip or zstd.",
       .settings_from = "defaults, --preset, --config, the environment"});
}

std::string translator_preset_names() { return names_in(translator_presets(), "|"); }

class TranslatorTraining final
    : public TrainingOf<TranslatorSettings, TranslatorRun, translator_preset_names> {
 public:
  std::string_view command() const override { return "train translate"; }
  std::string_view data_options() const override { return "--source FILE --target FILE"; }
  std::string_view unit() const override { return "token"; }
  std::string_view sizes() const override { return "--batch-tokens, --width or --encoder-layers"; }

  std::vector<std::string> overview() const override { return run_.overview; }
  std::vector<std::string> description() const override {
    const index updates = run_.training->updates_per_epoch();
    const TranslatorConfig& model = run_.settings.model;
    return {fmt::format("vocabularies of {} and {} tokens, {} update{} an epoch", model.vocabulary,
                        model.target_vocabulary, updates, updates == 1 ? "" : "s")};
  }

  TrainResult train(const Context& context, const std::filesystem::path& folder, StartAt start,
                    TrainingObserver& observer) const override {
    return train_translator(context, run_, folder, std::move(start), observer);
  }

 private:
  TranslatorSettings settings_in(const std::string& config, const std::string& name) override {
    return translator_settings_from_text(config, name);
  }
  TranslatorSettings usual(const TranslatorSettings& given) const override {
    TranslatorSettings settings;
    if (!given.from.base.empty()) apply_base_recipe(settings);
    return settings;
  }
  // Layers of a preset are those of a Transformer.
  void complete(TranslatorSettings& settings, const Said& said) const override {
    if (!settings.from.base.empty() && !said.resumes) {
      require_together(!said.has_preset, "--base, --preset", "a base has its own layers",
                       "leave one of them out");
      return take_base(settings, said.set);
    }
    TranslatorConfig& model = settings.model;
    if (!said.has_preset || model.kind != TranslatorKind::kBahdanauGru) return;
    const TranslatorConfig usual;
    if (!said.has("model.encoder_layers")) model.encoder_layers = usual.encoder_layers;
    if (!said.has("model.decoder_layers")) model.decoder_layers = usual.decoder_layers;
  }

  bool has_data() const override {
    return !settings_.text.train.empty() || !settings_.text.source.empty();
  }

  TranslatorRun make_run(const StoredRun* stored) const override {
    if (stored == nullptr) return prepare_run(settings_);
    TranslatorVocabulary known{.of_source = tokenizer_of(stored), .of_target = nullptr};
    if (!settings_.text.shared_vocabulary) {
      known.of_target = tokenizer_of(stored, kTargetTokenizerName);
    }
    return prepare_run(settings_, std::move(known), weights_of(stored));
  }
};

}  // namespace

Command train_translate_command() {
  return training_command<TranslatorTraining>(
      "Trains a translator, a Transformer or a GRU with attention, on pairs of sentences.",
      translate_epilog());
}

}  // namespace fovea::cli

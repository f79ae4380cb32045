// SPDX-License-Identifier: Apache-2.0
// fovea train lm: trains a language model on text files.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/run_training.h"
#include "cli/task_commands.h"
#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/model/language_model.h"
#include "fovea/task/language_model/base.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/task/setting_parts.h"

namespace fovea::cli {

namespace {

constexpr std::string_view kOfLstm = "it belongs to --model lstm, or layers lstm of --encoder";

// The advice on a field that means nothing to this kind of model; else "".
std::string_view hint_without_effect(const Field& field, LanguageModelKind kind) {
  using enum LanguageModelKind;
  if (kind == kTransformer) return {};
  const std::string_view name = field.last_name();
  if (kind == kEncoder) {
    if (name == "layers") return "say it of a layer: --encoder lstm:layers=2";
    return name == "window" ? "say it of a layer: --encoder attention:window=8" : "";
  }
  if (kind == kAttentionRnn && name == "layers") return "it has one layer";
  const PartOwner owner = owner_of_part(field.traits.part);
  if (kind != kLstm && owner == PartOwner::kLstm) return kOfLstm;
  const bool attends = kind == kAttentionRnn && (name == "heads" || name == "window");
  if (!attends && (owner == PartOwner::kAttention || name == "window")) {
    return "it belongs to attention: --model transformer, or attention layers of --encoder";
  }
  if (owner == PartOwner::kTransformer) {
    return "it belongs to --model transformer, or layers of --encoder";
  }
  return {};
}

[[noreturn]] void refuse_without_effect(std::string_view field, LanguageModelKind kind,
                                        std::string_view hint) {
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{} has no effect on --model {}", option_name(field), to_string(kind)),
              std::string(hint));
}

// Settings of the user must have an effect on a layer of --encoder; those of a preset without one
// are left out. (A bias has one on the logits, too.)
void require_effects(LanguageModelConfig& model, const std::vector<std::string>& set) {
  if (model.encoder.empty()) return;  // an error of its own
  LanguageModelConfig sized = model, usual;
  sized.vocabulary = 1;
  sized = resolve(sized);
  const std::vector<SizedStage> stages = sized_stages(sized);
  std::vector<Field> fields = fields_of(model);
  const std::vector<Field> theirs = fields_of(usual);
  for (std::size_t n = 0; n < fields.size(); ++n) {
    const std::string& name = fields[n].name;
    const std::string value = value_text(theirs[n]);
    if (value_text(fields[n]) == value || name == "bias") continue;
    const std::string_view needs = lacks_for_effect(fields[n].traits.part, sized, stages);
    if (contains(set, fmt::format("model.{}", name))) require_effect(fields[n], needs);
    if (!needs.empty()) set_from_text(fields[n], value, name);
  }
}

void check_vocabulary(const TextOptions& text, const std::vector<std::string>& set) {
  const bool says_count =
      contains(set, "text.min_count") && text.min_count != TextOptions().min_count;
  require_together(text.vocabulary.empty() || !says_count, "--vocabulary, --min-count",
                   "the file says which words are known", "leave --min-count out");
}

std::string lm_epilog() {
  return epilog_of(
      {.examples =
           R"(  fovea train lm --train book.txt -o model             a character model, with the defaults
  fovea train lm --train lines.txt --data lines --tokenizer word -o model
  fovea train lm --train a.txt b.txt --valid c.txt --layers 6 --width 384 -o model
  fovea train lm --train book.txt --model lstm --width 256 -o model
  fovea train lm --train book.txt --model encoder --encoder conv3,attention:window=64,gru -o model
  fovea train lm --base smollm2.gguf --train notes.txt -o notes     a pretrained model, on your text
  fovea train lm -c recipe.toml --lr 3e-4 -o model     a flag counts more than the file
  fovea train lm --resume -o model                     go on after an interruption)",
       .settings_from = "defaults, --preset, --config, the environment"});
}

std::string lm_presets() { return names_in(language_model_presets(), "|"); }

class LanguageModelTraining final
    : public TrainingOf<LanguageModelSettings, LanguageModelRun, lm_presets> {
 public:
  std::string_view command() const override { return "train lm"; }
  std::string_view unit() const override { return "token"; }
  std::string_view sizes() const override { return "--batch-size, --block, --width or --layers"; }

  std::vector<std::string> description() const override {
    const index updates = run_.training->updates_per_epoch();
    return {fmt::format("text: {} bytes, vocabulary of {} tokens, {} update{} an epoch",
                        run_.text_bytes, run_.tokenizer->vocabulary_size(), updates,
                        updates == 1 ? "" : "s"),
            run_.validation
                ? fmt::format("validation: {} targets, {} batches",
                              run_.validation->sequences().target_count(), run_.validation->size())
                : "validation: none"};
  }

  TrainResult train(const Context& context, const std::filesystem::path& folder, StartAt start,
                    TrainingObserver& observer) const override {
    return train_language_model(context, run_, folder, std::move(start), observer);
  }

 private:
  LanguageModelSettings settings_in(const std::string& config, const std::string& name) override {
    return settings_from_text(config, name);
  }
  LanguageModelSettings usual(const LanguageModelSettings& given) const override {
    LanguageModelSettings settings;
    settings.from.lora = given.from.lora;
    settings.text.objective = given.text.objective;
    if (!given.from.base.empty()) apply_base_recipe(settings);
    return settings;
  }
  void complete(LanguageModelSettings& settings, const Said& said) const override {
    if (said.resumes) return;
    if (!settings.from.base.empty()) return take_base(settings, said.set);
    check_vocabulary(settings.text, said.set);
    take_usual_sizes(settings.model, said.set);
  }

  LanguageModelRun make_run(const StoredRun* stored) const override {
    return prepare_run(settings_, tokenizer_data_of(stored), weights_of(stored));
  }
};

}  // namespace

void take_usual_sizes(LanguageModelConfig& model, const std::vector<std::string>& set) {
  const auto is_set = [&](std::string_view name) {
    return contains(set, fmt::format("model.{}", name));
  };
  if (model.kind == LanguageModelKind::kTransformer) {
    // A stored configuration says the default, too.
    if (is_set("forget_bias") && model.forget_bias != LanguageModelConfig().forget_bias) {
      refuse_without_effect("forget_bias", model.kind, kOfLstm);
    }
    return;
  }
  using enum LanguageModelKind;
  if (!is_set("position")) model.position = PositionKind::kNone;
  if (!is_set("layers")) model.layers = 1;
  if (model.kind == kAttentionRnn && !is_set("heads")) model.heads = 1;
  if (model.kind != kEncoder && model.position != PositionKind::kNone &&
      !adds_position_rows(model.position)) {
    refuse_without_effect(fmt::format("position {}", to_string(model.position)), model.kind,
                          "it belongs to attention; take learned, sinusoidal or none");
  }
  LanguageModelConfig usual;
  usual.layers = 1;
  const std::vector<Field> theirs = fields_of(usual);
  std::vector<Field> fields = fields_of(model);
  for (std::size_t n = 0; n < fields.size(); ++n) {
    const std::string_view hint = hint_without_effect(fields[n], model.kind);
    const std::string value = value_text(theirs[n]);
    if (hint.empty() || value_text(fields[n]) == value) continue;
    if (is_set(fields[n].name)) refuse_without_effect(fields[n].name, model.kind, hint);
    set_from_text(fields[n], value, fields[n].name);  // a preset's, of its Transformer
  }
  if (model.kind == kEncoder) require_effects(model, set);
}

Command train_lm_command() {
  return training_command<LanguageModelTraining>(
      "Trains a language model on text files: a Transformer, an RNN, or a mix of layers.",
      lm_epilog());
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/train_options.h"

#include <algorithm>

#include "cli/field_options.h"
#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/model/language_model_config.h"
#include "fovea/task/setting_parts.h"

namespace fovea::cli {

namespace {

std::vector<Field> settable_fields(TrainLmOptions& options) { return settable(fields_of(options)); }

std::vector<std::string> read(TrainLmOptions& options, const Arguments& arguments) {
  return read_settings(settable_fields(options), arguments);
}

constexpr std::string_view kOfLstm = "it belongs to --model lstm, or layers lstm of --encoder";

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

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

}  // namespace

std::vector<OptionSpec> train_lm_options() {
  TrainLmOptions defaults;
  return training_options(settable_fields(defaults));
}

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

RunOptions run_options_of(const Arguments& arguments) {
  TrainLmOptions options;
  read(options, arguments);
  return options.run;
}

LanguageModelSettings settings_of(LanguageModelSettings begin, const Arguments& arguments,
                                  const RunOptions& run) {
  TrainLmOptions options{.settings = std::move(begin)};
  if (!run.preset.empty()) apply_preset(run.preset, options.settings);
  const std::vector<std::string> set = read(options, arguments);
  let_min_lr_follow(options.settings.recipe, set, arguments.has("resume"));
  if (!arguments.has("resume")) {
    check_vocabulary(options.settings.text, set);
    take_usual_sizes(options.settings.model, set);
  }
  return options.settings;
}

std::string config_toml(const LanguageModelSettings& settings, const RunOptions& run) {
  TrainLmOptions options{.settings = settings, .run = run};
  return settings_toml(settable_fields(options));
}

}  // namespace fovea::cli

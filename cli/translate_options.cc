// SPDX-License-Identifier: Apache-2.0
#include "cli/translate_options.h"

#include <algorithm>
#include <string_view>

#include "cli/field_options.h"

namespace fovea::cli {

namespace {

std::vector<Field> settable_fields(TrainTranslateOptions& options) {
  return settable(fields_of(options));
}

}  // namespace

std::vector<OptionSpec> train_translate_options() {
  TrainTranslateOptions defaults;
  return training_options(settable_fields(defaults));
}

RunOptions translate_run_options(const Arguments& arguments) {
  TrainTranslateOptions options;
  read_settings(settable_fields(options), arguments);
  return options.run;
}

TranslatorSettings translate_settings(TranslatorSettings begin, const Arguments& arguments,
                                      const RunOptions& run) {
  TrainTranslateOptions options{.settings = std::move(begin)};
  if (!run.preset.empty()) apply_preset(run.preset, options.settings);
  const std::vector<std::string> set = read_settings(settable_fields(options), arguments);
  let_min_lr_follow(options.settings.recipe, set, arguments.has("resume"));
  TranslatorConfig& model = options.settings.model;
  if (!run.preset.empty() && model.kind == TranslatorKind::kBahdanauGru) {
    // Layers of a preset are those of a Transformer.
    const auto keep = [&](std::string_view field, index& layers, index usual) {
      if (std::find(set.begin(), set.end(), field) == set.end()) layers = usual;
    };
    keep("model.encoder_layers", model.encoder_layers, TranslatorConfig().encoder_layers);
    keep("model.decoder_layers", model.decoder_layers, TranslatorConfig().decoder_layers);
  }
  return options.settings;
}

std::string config_toml(const TranslatorSettings& settings, const RunOptions& run) {
  TrainTranslateOptions options{.settings = settings, .run = run};
  return settings_toml(settable_fields(options));
}

}  // namespace fovea::cli

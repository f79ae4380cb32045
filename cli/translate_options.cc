// SPDX-License-Identifier: Apache-2.0
#include "cli/translate_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "fovea/base/option.h"
#include "fovea/nn/options.h"
#include "fovea/text/tokenizer.h"

namespace fovea::cli {

namespace {

// The fields that a user can set: not what follows from the pairs.
std::vector<Field> settable_fields(TrainTranslateOptions& options) {
  std::vector<Field> fields = fields_of(options);
  std::erase_if(fields, [](const Field& field) {
    return field.name == "model.vocabulary" || field.name == "model.target_vocabulary" ||
           field.name == "model.revision";
  });
  return fields;
}

std::string position_names() {
  std::vector<std::string_view> names;
  for (const auto& [kind, name] : enum_names(PositionKind{})) names.push_back(name);
  return fmt::format("{}", fmt::join(names, "|"));
}

}  // namespace

std::vector<OptionSpec> train_translate_options() {
  TrainTranslateOptions defaults;
  std::vector<OptionSpec> options = training_options(settable_fields(defaults));
  for (OptionSpec& option : options) {
    if (option.name == "preset") option.placeholder = names_in(translator_presets(), "|");
    if (option.name == "target-tokenizer") option.placeholder = names_in(kTokenizers, "|");
    if (option.name == "decoder-position") option.placeholder = position_names();
  }
  return options;
}

RunOptions translate_run_options(const Arguments& arguments) {
  TrainTranslateOptions options;
  read_settings(settable_fields(options), arguments);
  return options.run;
}

TranslatorSettings translate_settings(TranslatorSettings begin, const Arguments& arguments,
                                      const RunOptions& run) {
  TrainTranslateOptions options{.settings = std::move(begin), .run = {}};
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
  TranslatorTextOptions& text = options.settings.text;
  for (auto* files : {&text.source, &text.target, &text.train, &text.valid_source,
                      &text.valid_target, &text.valid}) {
    for (std::string& file : *files) make_absolute(file);
  }
  for (std::string* file : {&text.tokenizer_model, &text.target_tokenizer_model}) {
    if (!file->empty()) make_absolute(*file);
  }
  return options.settings;
}

std::string config_toml(const TranslatorSettings& settings, const RunOptions& run) {
  TrainTranslateOptions options{.settings = settings, .run = run};
  return settings_toml(settable_fields(options));
}

}  // namespace fovea::cli

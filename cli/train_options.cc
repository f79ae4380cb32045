// SPDX-License-Identifier: Apache-2.0
#include "cli/train_options.h"

#include <algorithm>

#include "fovea/base/check.h"
#include "fovea/base/option.h"

namespace fovea::cli {

namespace {

// The fields that a user can set: all but the vocabulary, which follows from the text.
std::vector<Field> settable_fields(TrainLmOptions& options) {
  std::vector<Field> fields = fields_of(options);
  std::erase_if(fields, [](const Field& field) { return field.name == "model.vocabulary"; });
  return fields;
}

std::vector<std::string> read(TrainLmOptions& options, const Arguments& arguments) {
  return read_settings(settable_fields(options), arguments);
}

}  // namespace

std::vector<OptionSpec> train_lm_options() {
  TrainLmOptions defaults;
  return training_options(settable_fields(defaults));
}

void take_usual_sizes(LanguageModelConfig& model, const std::vector<std::string>& set) {
  if (model.kind == LanguageModelKind::kTransformer) return;
  const auto is_set = [&](std::string_view name) {
    return std::find(set.begin(), set.end(), name) != set.end();
  };
  using enum LanguageModelKind;
  const auto refuse = [&](std::string_view field, std::string_view hint) {
    if (!is_set(fmt::format("model.{}", field))) return;
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--{} has no effect on --model {}", field, to_string(model.kind)),
                std::string(hint));
  };
  if (model.kind == kEncoder) refuse("layers", "say it of a layer: --encoder lstm:layers=2");
  if (model.kind == kEncoder) refuse("window", "say it of a layer: --encoder attention:window=8");
  if (model.kind == kAttentionRnn) refuse("layers", "it has one layer");
  if (!is_set("model.position")) model.position = PositionKind::kNone;
  if (!is_set("model.layers")) model.layers = 1;
  if (model.kind == kAttentionRnn && !is_set("model.heads")) model.heads = 1;
}

RunOptions run_options_of(const Arguments& arguments) {
  TrainLmOptions options;
  read(options, arguments);
  return options.run;
}

LanguageModelSettings settings_of(LanguageModelSettings begin, const Arguments& arguments,
                                  const RunOptions& run) {
  TrainLmOptions options{.settings = std::move(begin), .run = {}};
  if (!run.preset.empty()) apply_preset(run.preset, options.settings);
  const std::vector<std::string> set = read(options, arguments);
  const auto is_set = [&](std::string_view name) {
    return std::find(set.begin(), set.end(), name) != set.end();
  };
  // If a new run sets --lr but not --min-lr, min_lr follows lr. A resumed run keeps its min_lr.
  TrainOptions& recipe = options.settings.recipe;
  if (!arguments.has("resume") && is_set("recipe.lr") && !is_set("recipe.min_lr")) {
    recipe.min_lr = recipe.schedule == ScheduleKind::kConstant ? recipe.lr : recipe.lr / 10;
  }
  if (!arguments.has("resume")) take_usual_sizes(options.settings.model, set);
  if (arguments.has("compat") && options.settings.model.compat.empty()) {
    options.settings.model.compat = "all";  // --compat without a list
  }
  TextOptions& text = options.settings.text;
  for (std::string& file : text.train) make_absolute(file);
  for (std::string& file : text.valid) make_absolute(file);
  if (!text.vocabulary.empty()) make_absolute(text.vocabulary);
  return options.settings;
}

std::string config_toml(const LanguageModelSettings& settings, const RunOptions& run) {
  TrainLmOptions options{.settings = settings, .run = run};
  return settings_toml(settable_fields(options));
}

}  // namespace fovea::cli

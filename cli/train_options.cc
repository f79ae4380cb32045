// SPDX-License-Identifier: Apache-2.0
#include "cli/train_options.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "cli/field_options.h"
#include "cli/messages.h"
#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/config/toml.h"
#include "fovea/data/batcher.h"
#include "fovea/text/tokenizer.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

// The fields that a user can set: all but the vocabulary, which follows from the text.
std::vector<Field> settable_fields(TrainLmOptions& options) {
  std::vector<Field> fields = fields_of(options);
  std::erase_if(fields, [](const Field& field) { return field.name == "model.vocabulary"; });
  return fields;
}

std::vector<Field> fields_below(const std::vector<Field>& fields, std::string_view table) {
  std::vector<Field> chosen;
  std::copy_if(fields.begin(), fields.end(), std::back_inserter(chosen),
               [&](const Field& field) { return field.name.rfind(table, 0) == 0; });
  return chosen;
}

// Returns the names of the fields that were set.
std::vector<std::string> read(TrainLmOptions& options, const Arguments& arguments) {
  const std::vector<Field> fields = settable_fields(options);
  std::vector<std::string> set;
  if (arguments.has("config")) set = set_from_toml_file(fields, arguments.text("config"));
  const std::vector<std::string> outside = set_from_outside(flags_of(fields), arguments);
  set.insert(set.end(), outside.begin(), outside.end());
  return set;
}

void make_absolute(std::string& file) {
  if (file == "-") return;  // standard input
  file = std::filesystem::absolute(file).lexically_normal().string();
}

}  // namespace

std::string placeholder_of(const OptionSpec& option) {
  if (option.name == "tokenizer") return names_in(kTokenizers, "|");
  if (option.name == "data") return names_in(kDataKinds, "|");
  if (option.name == "preset") return names_in(language_model_presets(), "|");
  if (option.name == "vocabulary") return "FILE";
  if (option.name == "window") return "N[,N...]";
  if (option.name == "encoder") return "LAYERS";
  if (option.name == "compat") return "DEFECT[,DEFECT...]";
  if (option.name == "output") return "DIR";
  return option.placeholder == "TEXT" ? "LENGTH" : option.placeholder;
}

std::vector<OptionSpec> train_lm_options() {
  TrainLmOptions defaults;
  const std::vector<Field> fields = settable_fields(defaults);
  std::vector<OptionSpec> options;
  const auto add = [&](std::vector<OptionSpec> group) {
    options.insert(options.end(), group.begin(), group.end());
  };
  add(options_of(flags_of(fields_below(fields, "text.")), "Text"));
  add(options_of(flags_of(fields_below(fields, "model.")), "Model"));
  add(options_of(flags_of(fields_below(fields, "recipe.")), "Training"));
  add(said_or_not(options_of(flags_of(fields_below(fields, "run.")), "Run")));
  add({{"config", OptionKind::kValue, "FILE", "read settings from this TOML file", "Run", "c"},
       {"dump-config", OptionKind::kFlag, "", "print all settings as TOML, and end", "Run", ""},
       {"resume", OptionKind::kOptionalValue, "[=PATH]",
        "continue from the newest checkpoint, or from PATH", "Run", ""},
       {"overwrite", OptionKind::kFlag, "", "replace an earlier run in the folder", "Run", ""},
       {"dry-run", OptionKind::kFlag, "",
        "print memory, FLOPs and time of the run, and write nothing", "Run", ""}});
  for (OptionSpec& option : options) {
    option.placeholder = placeholder_of(option);
    if (option.name == "compat") option.kind = OptionKind::kOptionalValue;
  }
  dress_message_options(options);
  for (const auto& [name, also] :
       {std::pair{"lr", "learning-rate"}, {"output", "o"}, {"threads", "t"}}) {
    also_called(options, name, also);
  }
  return options;
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
  const std::vector<Field> fields = settable_fields(options);
  for (const Field& field : fields) {
    if (!find_invalid_utf8(value_text(field))) continue;
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("{}: {}: not UTF-8, which TOML is", option_name(field.name), value_text(field)),
        "rename the file or folder, or name it by a link whose path is UTF-8");
  }
  return toml_text(fields);
}

}  // namespace fovea::cli

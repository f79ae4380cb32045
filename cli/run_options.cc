// SPDX-License-Identifier: Apache-2.0
#include "cli/run_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "cli/field_options.h"
#include "cli/messages.h"
#include "fovea/base/error.h"
#include "fovea/base/option.h"
#include "fovea/config/toml.h"
#include "fovea/data/batcher.h"
#include "fovea/task/language_model_settings.h"
#include "fovea/text/tokenizer.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

std::vector<Field> fields_below(const std::vector<Field>& fields, std::string_view table) {
  std::vector<Field> chosen;
  std::copy_if(fields.begin(), fields.end(), std::back_inserter(chosen),
               [&](const Field& field) { return field.name.rfind(table, 0) == 0; });
  return chosen;
}

std::string placeholder_of(const OptionSpec& option) {
  const bool is_text = option.placeholder == "TEXT";
  if (option.name == "tokenizer" && is_text) return names_in(kTokenizers, "|");
  if (option.name == "data") return names_in(kDataKinds, "|");
  if (option.name == "preset") return names_in(language_model_presets(), "|");
  if ((option.name == "vocabulary" && is_text) || option.name == "embeddings" ||
      option.name == "tokenizer-model" || option.name == "target-tokenizer-model") {
    return "FILE";
  }
  if (option.name == "window") return "N[,N...]";
  if (option.name == "encoder") return "LAYERS";
  if (option.name == "compat") return "[=DEFECT,...]";
  if (option.name == "output") return "DIR";
  if (option.name == "text-column" || option.name == "label-column") return "NAME|N";
  if (option.name == "separator") return "CHARACTER";
  if (option.name == "label-separator") return "TEXT";
  if (option.name == "class-weights") return "none|balanced|LABEL=NUMBER,...";
  return is_text ? "LENGTH" : option.placeholder;
}

}  // namespace

void dress_setting(OptionSpec& option) {
  option.placeholder = placeholder_of(option);
  if (option.name == "compat") option.kind = OptionKind::kOptionalValue;
}

std::vector<OptionSpec> training_options(const std::vector<Field>& fields) {
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
  for (OptionSpec& option : options) dress_setting(option);
  dress_message_options(options);
  for (const auto& [name, also] :
       {std::pair{"lr", "learning-rate"}, {"output", "o"}, {"threads", "t"}}) {
    also_called(options, name, also);
  }
  return options;
}

std::vector<std::string> read_settings(const std::vector<Field>& fields,
                                       const Arguments& arguments) {
  std::vector<std::string> set;
  if (arguments.has("config")) set = set_from_toml_file(fields, arguments.text("config"));
  const std::vector<std::string> outside = set_from_outside(flags_of(fields), arguments);
  set.insert(set.end(), outside.begin(), outside.end());
  return set;
}

std::string settings_toml(const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    if (!find_invalid_utf8(value_text(field))) continue;
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("{}: {}: not UTF-8, which TOML is", option_name(field.name), value_text(field)),
        "rename the file or folder, or name it by a link whose path is UTF-8");
  }
  return toml_text(fields);
}

void let_min_lr_follow(TrainOptions& recipe, const std::vector<std::string>& set, bool resumes) {
  const auto is_set = [&](std::string_view name) {
    return std::find(set.begin(), set.end(), name) != set.end();
  };
  if (!is_set("recipe.lr") || is_set("recipe.min_lr")) return;
  if (resumes && recipe.min_lr <= recipe.lr) return;
  recipe.min_lr = recipe.schedule == ScheduleKind::kConstant ? recipe.lr : recipe.lr / 10;
}

void make_absolute(std::string& file) {
  if (file == "-") return;  // standard input
  file = std::filesystem::absolute(file).lexically_normal().string();
}

void warn_of_trained_files(const std::vector<std::string>& trained,
                           const std::vector<std::string>& tested) {
  for (const std::string& file : tested) {
    const bool learned = std::any_of(trained.begin(), trained.end(), [&](const std::string& other) {
      std::error_code none;  // a file that is gone, or no file, is not the same
      return std::filesystem::equivalent(file, other, none);
    });
    if (!learned) continue;
    warn(
        fmt::format("{}: the model was trained on this file; of new texts it may know less", file));
  }
}

}  // namespace fovea::cli

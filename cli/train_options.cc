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

// Fields that a Transformer has for its attention, and for the rest of its layers.
constexpr std::string_view kOfAttention[] = {
    "kv_heads", "head_dim",   "qk_norm",         "score",     "attention_norm", "log_n_scale",
    "softcap",  "t5_buckets", "t5_max_distance", "shaw_clip", "rope_base",      "sink"};
constexpr std::string_view kOfBlocks[] = {"ff", "activation", "norm", "norm_position",
                                          "ln_variant"};

// What to do instead, if the field means nothing to the kind of model; else "".
std::string_view hint_without_effect(std::string_view field, LanguageModelKind kind) {
  using enum LanguageModelKind;
  if (kind == kTransformer) return {};
  if (kind == kEncoder) {
    if (field == "layers") return "say it of a layer: --encoder lstm:layers=2";
    return field == "window" ? "say it of a layer: --encoder attention:window=8" : "";
  }
  if (kind == kAttentionRnn && field == "layers") return "it has one layer";
  const auto is_in = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), field) != std::end(names);
  };
  const bool attends = kind == kAttentionRnn && (field == "heads" || field == "window");
  if (is_in(kOfAttention) || (!attends && (field == "heads" || field == "window"))) {
    return "it belongs to attention: --model transformer, or attention layers of --encoder";
  }
  if (is_in(kOfBlocks)) return "it belongs to --model transformer, or layers of --encoder";
  return {};
}

[[noreturn]] void refuse_without_effect(std::string_view field, LanguageModelKind kind,
                                        std::string_view hint) {
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{} has no effect on --model {}", option_name(field), to_string(kind)),
              std::string(hint));
}

void make_absolute(std::string& file) {
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
    return std::find(set.begin(), set.end(), fmt::format("model.{}", name)) != set.end();
  };
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
    const std::string_view hint = hint_without_effect(fields[n].name, model.kind);
    const std::string value = value_text(theirs[n]);
    if (hint.empty() || value_text(fields[n]) == value) continue;
    if (is_set(fields[n].name)) refuse_without_effect(fields[n].name, model.kind, hint);
    set_from_text(fields[n], value, fields[n].name);  // a preset's, of its Transformer
  }
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

// SPDX-License-Identifier: Apache-2.0
// fovea train lm: from text files to a language model.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/field_options.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "cli/signals.h"
#include "cli/threads.h"
#include "cli/training_log.h"
#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/context.h"
#include "fovea/base/machine.h"
#include "fovea/config/json.h"
#include "fovea/config/toml.h"
#include "fovea/data/batcher.h"
#include "fovea/task/language_model.h"
#include "fovea/text/tokenizer.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExamples = R"(Examples:
  fovea train lm --train book.txt -o model             a character model, with the defaults
  fovea train lm --train a.txt b.txt --valid c.txt --layers 6 --width 384 -o model
  fovea train lm -c recipe.toml --lr 3e-4 -o model     a flag counts more than the file
  fovea train lm --resume -o model                     go on after an interruption

A folder that is not empty is refused, unless
  --resume     goes on at its newest whole checkpoint, with the settings stored there; options given
               beside it count more
  --overwrite  removes what an earlier run wrote there (nothing else) and begins anew

Settings come, each counting more than those before it, from: defaults, --preset, --config, the
environment (FOVEA_HEAD_DIM is --head-dim), options. A run that ends by hours depends on the speed of
the machine; any other gives the same bits again, for any number of threads.

SIGINT and SIGTERM save a checkpoint and stop, SIGUSR1 saves and goes on, SIGUSR2 saves and stops.)";

// The fields that options can set; the vocabulary follows from the text.
std::vector<Field> settable_fields(LanguageModelSettings& settings) {
  std::vector<Field> fields = fields_of(settings);
  std::erase_if(fields, [](const Field& field) { return field.name == "model.vocabulary"; });
  return fields;
}

std::vector<Field> fields_below(const std::vector<Field>& fields, std::string_view table) {
  std::vector<Field> chosen;
  std::copy_if(fields.begin(), fields.end(), std::back_inserter(chosen),
               [&](const Field& field) { return field.name.rfind(table, 0) == 0; });
  return chosen;
}

template <class Kinds>
std::string names_of(const Kinds& kinds) {
  std::string names;
  for (const auto& kind : kinds) {
    names += names.empty() ? "" : "|";
    names += kind.name;
  }
  return names;
}

// What a text has to be, where its type alone does not say so.
std::string placeholder_of(const OptionSpec& option) {
  if (option.name == "tokenizer") return names_of(kTokenizers);
  if (option.name == "data") return names_of(kDataKinds);
  return option.placeholder == "TEXT" ? "LENGTH" : option.placeholder;
}

// Where a run is resumed, its folder; else the output.
struct Place {
  fs::path folder;
  StartAt start;
};

Place place_of(const Arguments& arguments) {
  Place place{arguments.text("output"), {.resume = arguments.has("resume"), .checkpoint = {}}};
  if (arguments.has("resume")) place.start.checkpoint = arguments.text("resume");
  if (place.folder.empty() && !place.start.checkpoint.empty()) {
    place.folder =
        fs::absolute(place.start.checkpoint).lexically_normal().parent_path().parent_path();
  }
  if (place.folder.empty() && !arguments.on("dry-run")) {
    throw Error(ErrorCode::kUsage, "train lm: no output folder",
                "say where the model goes: -o DIR");
  }
  if (place.start.resume && arguments.on("overwrite")) {
    throw Error(ErrorCode::kUsage, "train lm: --resume and --overwrite exclude each other",
                "--resume goes on, --overwrite begins anew");
  }
  return place;
}

LanguageModelSettings settings_of(const Arguments& arguments, const Place& place) {
  LanguageModelSettings settings;
  if (place.start.resume) settings = stored_settings(place.folder, place.start.checkpoint);
  if (arguments.has("preset")) apply_preset(arguments.text("preset"), settings);
  const std::vector<Field> fields = settable_fields(settings);
  std::vector<std::string> set;
  if (arguments.has("config")) set = set_from_toml_file(fields, arguments.text("config"));
  const std::vector<std::string> outside = set_from_outside(flags_of(fields), arguments);
  set.insert(set.end(), outside.begin(), outside.end());
  const auto is_set = [&](std::string_view name) {
    return std::find(set.begin(), set.end(), name) != set.end();
  };
  // Whoever chooses another learning rate alone means the whole schedule.
  if (is_set("recipe.lr") && !is_set("recipe.min_lr")) {
    const bool constant = settings.recipe.schedule == ScheduleKind::kConstant;
    settings.recipe.min_lr = constant ? settings.recipe.lr : settings.recipe.lr / 10;
  }
  if (settings.text.train.empty()) {
    throw Error(ErrorCode::kUsage, "train lm: no training text", "name a file: --train FILE");
  }
  return settings;
}

struct DryRun {
  index parameters = 0;
  index updates = 0;
  index tokens_per_update = 0;
  double flops_per_update = 0;
  double flops = 0;
  index predicted_memory_bytes = 0;
  index available_memory_bytes = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("parameters", parameters, "numbers that are learned");
    visit("updates", updates, "updates of the whole run; 0: it ends by hours");
    visit("tokens_per_update", tokens_per_update, "targets of an update, at most");
    visit("flops_per_update", flops_per_update, "of products, forward and backward");
    visit("flops", flops, "of the whole run");
    visit("predicted_memory_bytes", predicted_memory_bytes, "of the process, at its peak");
    visit("available_memory_bytes", available_memory_bytes, "that can be taken now");
  }
};

int print_dry_run(const RunCost& cost, const MemoryLimit& memory, bool json) {
  const DryRun dry{.parameters = cost.parameters,
                   .updates = cost.updates,
                   .tokens_per_update = cost.tokens_per_update,
                   .flops_per_update = cost.flops_per_update,
                   .flops = cost.flops_per_update * static_cast<double>(cost.updates),
                   .predicted_memory_bytes = static_cast<index>(cost.memory_bytes),
                   .available_memory_bytes = memory.bytes};
  if (json) {
    print(to_json_line(dry) + "\n");
    return 0;
  }
  print(fmt::format("parameters        {}\n", dry.parameters));
  print(dry.updates > 0 ? fmt::format("updates           {}\n", dry.updates)
                        : "updates           until the time is up\n");
  print(fmt::format("tokens an update  {}\n", dry.tokens_per_update));
  print(fmt::format("FLOPs an update   {:.4g}\n", dry.flops_per_update));
  if (dry.updates > 0) print(fmt::format("FLOPs             {:.4g}\n", dry.flops));
  print(fmt::format("predicted memory  {:.0f} MiB of {:.0f} MiB ({})\n",
                    cost.memory_bytes / (1 << 20), static_cast<double>(memory.bytes) / (1 << 20),
                    memory.reason));
  return 0;
}

void require_memory(const RunCost& cost, const MemoryLimit& memory) {
  if (cost.memory_bytes <= static_cast<double>(memory.bytes)) return;
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("training would take {:.0f} MiB; {:.0f} MiB are available ({})",
                          cost.memory_bytes / (1 << 20),
                          static_cast<double>(memory.bytes) / (1 << 20), memory.reason),
              "choose a smaller --batch-size, --block, --width or --layers");
}

struct Summary {
  double train_loss = std::numeric_limits<double>::quiet_NaN();
  double valid_loss = std::numeric_limits<double>::quiet_NaN();
  double best_valid_loss = std::numeric_limits<double>::quiet_NaN();
  index steps = 0;
  index tokens = 0;
  double tokens_per_second = 0;
  double seconds = 0;
  index parameters = 0;
  index peak_memory_bytes = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("train_loss", train_loss, "nats per target, mean since the previous evaluation");
    visit("valid_loss", valid_loss, "nats per target, the whole set, at the end");
    visit("best_valid_loss", best_valid_loss, "the lowest of all evaluations");
    visit("steps", steps, "updates since the beginning of the run");
    visit("tokens", tokens, "targets trained since the beginning of the run");
    visit("tokens_per_second", tokens_per_second, "of this process, in its updates");
    visit("seconds", seconds, "of this process");
    visit("parameters", parameters, "numbers that are learned");
    visit("peak_memory_bytes", peak_memory_bytes, "resident, of this process");
  }
};

// As a shell reads it back, so that a printed command can be pasted.
std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_./,:=+@%-").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Summary summary_of(const TrainResult& result, index parameters, double seconds) {
  const RunState& state = result.state;
  Summary summary;
  if (state.tokens > 0) summary.train_loss = state.recent_train_loss();
  if (state.evaluated_step == state.step && state.step > 0) summary.valid_loss = state.valid_loss;
  if (state.best_step >= 0) summary.best_valid_loss = state.best_valid_loss;
  summary.steps = state.step;
  summary.tokens = state.tokens;
  summary.tokens_per_second =
      result.process_step_seconds > 0
          ? static_cast<double>(result.process_tokens) / result.process_step_seconds
          : 0;
  summary.seconds = seconds;
  summary.parameters = parameters;
  summary.peak_memory_bytes = peak_memory_bytes();
  return summary;
}

void print_summary(const Summary& s, const fs::path& folder, bool json) {
  if (json) {
    print(to_json_line(s) + "\n");
    return;
  }
  print(fmt::format("{} updates, {} tokens in {:.1f} s ({:.0f} tokens/s)\n", s.steps, s.tokens,
                    s.seconds, s.tokens_per_second));
  print(fmt::format("train loss {:.4f}", s.train_loss));
  if (std::isfinite(s.valid_loss)) print(fmt::format(", validation loss {:.4f}", s.valid_loss));
  if (std::isfinite(s.best_valid_loss)) {
    print(fmt::format(", best validation loss {:.4f}", s.best_valid_loss));
  }
  print(fmt::format("\nmodel: {}\n", folder.string()));
}

int train(const Context& context, const Arguments& arguments, const Place& place,
          const LanguageModelRun& run, const RunCost& cost, double began) {
  listen_to_signals();
  TrainingLog log(cost.updates);
  const TrainResult result = train_language_model(context, run, place.folder, place.start, log);
  log.finish();
  if (result.stopped) {
    say(fmt::format("stopped after update {}; to go on: fovea train lm --resume -o {}",
                    result.state.step, shell_word(place.folder.string())));
  }
  print_summary(summary_of(result, cost.parameters, monotonic_seconds() - began), place.folder,
                arguments.on("json"));
  return result.stopped ? stop_status() : 0;
}

}  // namespace

CommandSpec train_lm_spec() {
  LanguageModelSettings defaults;
  const std::vector<Field> fields = settable_fields(defaults);
  CommandSpec spec{.name = "train lm",
                   .summary = "Trains a language model (decoder-only Transformer) on text files.",
                   .positionals = {},
                   .options = {},
                   .epilog = std::string(kExamples)};
  const auto add = [&](std::string_view table, std::string_view group) {
    for (OptionSpec& option : options_of(flags_of(fields_below(fields, table)), group)) {
      if (option.name == "lr") option.also = "learning-rate";
      option.placeholder = placeholder_of(option);
      spec.options.push_back(std::move(option));
    }
  };
  add("text.", "Text");
  add("model.", "Model");
  add("recipe.", "Training");
  const std::vector<OptionSpec> rest = {
      {"output", OptionKind::kValue, "DIR", "folder of the run and its model", "Run", "o"},
      {"preset", OptionKind::kValue, names_of(language_model_presets()),
       "where settings start from", "Run", ""},
      {"config", OptionKind::kValue, "FILE", "settings as TOML", "Run", "c"},
      {"resume", OptionKind::kOptionalValue, "[=PATH]",
       "go on, at the newest checkpoint or at PATH", "Run", ""},
      {"overwrite", OptionKind::kFlag, "", "replace an earlier run in the folder", "Run", ""},
      {"dry-run", OptionKind::kFlag, "", "print what the run takes, and write nothing", "Run", ""},
      {"threads", OptionKind::kValue, "N", "threads; 0: all cores [0]", "Run", "t"},
      {"json", OptionKind::kFlag, "", "print the result as one JSON object", "Run", ""}};
  spec.options.insert(spec.options.end(), rest.begin(), rest.end());
  return spec;
}

int train_lm(const Arguments& arguments) {
  const double began = monotonic_seconds();
  const bool json = arguments.on("json");
  const Context context = context_of(arguments);
  const Place place = place_of(arguments);
  const FolderUse use = folder_use(arguments);
  const bool dry_run = arguments.on("dry-run");
  if (!dry_run) {
    require_unlocked(place.folder);
    check_run_folder(place.folder, use);
  }
  // What is read from a run that is resumed must not change any more; another folder stays as it
  // is, or does not exist, until all is known to be well.
  std::unique_ptr<RunLock> lock;
  if (!dry_run && use == FolderUse::kResume) lock = lock_run_folder(place.folder, use);
  const LanguageModelSettings settings = settings_of(arguments, place);
  std::unique_ptr<Tokenizer> known;
  if (place.start.resume) known = stored_tokenizer(place.folder, place.start.checkpoint);
  const LanguageModelRun run = prepare_run(settings, std::move(known));
  for (const std::string& note : run.notes) warn(note);
  const RunCost cost = cost_of(run);
  const MemoryLimit memory = available_memory();
  if (dry_run) return print_dry_run(cost, memory, json);
  require_memory(cost, memory);
  if (!lock) lock = lock_run_folder(place.folder, use);
  clear_run_folder(place.folder, use);
  return train(context, arguments, place, run, cost, began);
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
// fovea train lm: trains a language model on text files.
#include <fmt/core.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/commands.h"
#include "cli/field_options.h"
#include "cli/output.h"
#include "cli/run_folder.h"
#include "cli/signals.h"
#include "cli/threads.h"
#include "cli/train_options.h"
#include "cli/train_report.h"
#include "cli/training_log.h"
#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/words.h"
#include "fovea/task/language_model.h"
#include "fovea/task/memory.h"
#include "fovea/task/same_run.h"
#include "fovea/train/schedule_change.h"

namespace fovea::cli {

namespace {

constexpr std::string_view kExamples = R"(Examples:
  fovea train lm --train book.txt -o model             a character model, with the defaults
  fovea train lm --train lines.txt --data lines --tokenizer word -o model
  fovea train lm --train a.txt b.txt --valid c.txt --layers 6 --width 384 -o model
  fovea train lm --train book.txt --model lstm --width 256 -o model
  fovea train lm --train book.txt --model encoder --encoder conv3,attention:window=64,gru -o model
  fovea train lm -c recipe.toml --lr 3e-4 -o model     a flag counts more than the file
  fovea train lm --resume -o model                     go on after an interruption

A folder that is not empty is refused, unless
  --resume     goes on at its newest whole checkpoint (or at the one that --resume=PATH names), with
               the settings stored there; options given beside it count more
  --overwrite  removes what an earlier run wrote there (nothing else) and begins anew; beside
               --resume=CHECKPOINT, what came after that checkpoint

Settings come, each counting more than those before it, from: defaults, --preset, --config, the
environment (FOVEA_HEAD_DIM is --head-dim), options. A run that ends by hours depends on the speed of
the machine; any other gives the same bits again, for any number of threads.

SIGINT, SIGTERM and SIGHUP save a checkpoint and stop, SIGUSR1 saves and goes on, SIGUSR2 saves and
stops.)";

// What the command line asks for and, if a run is resumed, what it starts from.
struct Job {
  double began = monotonic_seconds();
  RunOptions options;
  Place place;
  std::optional<StoredRun> stored;
  LanguageModelSettings settings;
  bool changed = false;  // whether options differ from those of the checkpoint
};

void require_output(const Job& job) {
  if (!job.place.folder.empty()) return;
  throw Error(ErrorCode::kUsage, "train lm: no output folder", "say where the model goes: -o DIR");
}

// Reads the stored run, if one is resumed, and all settings.
void settle(Job& job, const Arguments& arguments) {
  if (job.place.use == FolderUse::kResume) {
    require_output(job);
    job.stored = read_run(job.place);
  }
  job.settings = settings_of(job.stored ? job.stored->settings : LanguageModelSettings{}, arguments,
                             job.options);
  check_log_is_apart(job.settings.text.train, {});
  check_log_is_apart(job.settings.text.valid, {});
  check_log_is_apart({&job.settings.text.vocabulary, 1}, {});
  if (job.stored) {
    for (const std::string& warning : job.stored->warnings) warn(warning);
  }
  if (!job.stored) return;
  require_same_run(job.stored->settings, job.settings);
  const auto changes = changed_options(job.stored->settings, job.settings);
  for (const std::string& change : changes) warn(change);
  job.changed = !changes.empty();
}

// Warns if changed options change the learning rate. A run in epochs gets no warning if the batch
// size changed: the number of updates of an old epoch is not known then.
void tell_schedule(const Job& job, const LanguageModelRun& run) {
  const LanguageModelSettings &was = job.stored->settings, &is = run.settings;
  const bool same_epochs =
      was.text.batch_size == is.text.batch_size && was.recipe.accumulate == is.recipe.accumulate;
  if (!same_epochs && was.recipe.stop_after.ends_with('e')) return;
  const std::string change = schedule_change(
      was.recipe, is.recipe, run.training->updates_per_epoch(), state_of(*job.stored->checkpoint));
  if (!change.empty()) warn(change);
}

// The text of a run that is resumed may have been moved since it began.
LanguageModelRun prepare_text(const Job& job, std::unique_ptr<Tokenizer> known) {
  try {
    return prepare_run(job.settings, std::move(known));
  } catch (const Error& error) {
    if (!job.stored || error.code() != ErrorCode::kMissingInput) throw;
    throw error.with(error.code(), error.what(),
                     "if the text was moved, say where it is: --train FILE");
  }
}

LanguageModelRun prepare(Job& job) {
  if (job.settings.text.train.empty()) {
    throw Error(ErrorCode::kUsage, "train lm: no training text", "name a file: --train FILE");
  }
  std::unique_ptr<Tokenizer> known;
  if (job.stored) known = std::move(job.stored->tokenizer);
  LanguageModelRun run = prepare_text(job, std::move(known));
  for (const std::string& about_text : run.notes) warn(about_text);
  if (job.stored && job.stored->checkpoint) {
    require_same_text(job.stored->settings, identity_of(*job.stored->checkpoint), run);
    tell_schedule(job, run);
  }
  return run;
}

MemoryForecast forecast_memory(const Context& context, const Job& job,
                               const LanguageModelRun& run) {
  index checkpoint_bytes = 0;
  if (job.stored && job.stored->checkpoint) {
    for (const NamedFile& file : job.stored->checkpoint->files) {
      checkpoint_bytes += static_cast<index>(file.bytes.size());
    }
  }
  return {training_memory(context, run, checkpoint_bytes), reachable_memory()};
}

// A run that fails before it has saved weights is removed, so that the same command can start
// again. A run that diverged is kept: its metrics show how.
TrainResult train_in(const RunFolder& folder, const std::function<TrainResult()>& train) {
  try {
    return train();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kDiverged || folder.remove_unsaved()) throw;
    if (error.code() != ErrorCode::kDiskFull) throw;
    throw Error(error.code(), error.what(), "free some space, then go on with --resume");
  } catch (const std::exception&) {
    folder.remove_unsaved();
    throw;
  }
}

int train(const Context& context, Job& job, const LanguageModelRun& run, const RunCost& cost,
          const RunFolder& run_folder) {
  listen_to_signals();
  StartAt start{.resume = job.place.use == FolderUse::kResume};
  if (job.changed || job.place.goes_back) start.future = Future::kOther;
  if (job.stored) start.checkpoint = std::exchange(job.stored->checkpoint, std::nullopt);
  TrainingLog log(cost.updates, job.options.progress);
  const TrainResult result = train_in(run_folder, [&] {
    return train_language_model(context, run, job.place.folder, std::move(start), log);
  });
  log.finish();
  const std::string folder = job.place.folder.string();
  if (result.stopped) {
    say(fmt::format("stopped after update {}; to go on: fovea train lm --resume -o {}",
                    result.state.step, shell_word(folder)));
  }
  job.options.output = folder;
  print_result(result, cost.parameters, monotonic_seconds() - job.began, job.options);
  return result.stopped ? stop_status() : 0;
}

int dump_config(Job& job, const Arguments& arguments) {
  settle(job, arguments);
  check_options(job.settings);
  print(config_toml(job.settings, job.options));
  return 0;
}

int dry_run(const Context& context, Job& job, const Arguments& arguments) {
  settle(job, arguments);
  const LanguageModelRun run = prepare(job);
  const MemoryForecast memory = forecast_memory(context, job, run);
  const RunCost cost = cost_of(run);
  describe_run(context, run, cost, memory);
  RunState state;
  if (job.stored && job.stored->checkpoint) {
    state = state_of(*std::exchange(job.stored->checkpoint, std::nullopt));
  }
  print_forecast({cost, estimate_run_time(context, run, state), state.step, memory},
                 job.options.json);
  return 0;
}

int run_job(const Context& context, Job& job, const Arguments& arguments) {
  keep_requests();
  const std::filesystem::path& folder = job.place.folder;
  const FolderUse use = job.place.use;
  require_output(job);
  require_unlocked(folder);
  check_run_folder(folder, use);
  // A resumed run is locked before it is read. The folder of another run is not touched or created
  // until all checks have passed.
  std::optional<RunFolder> run_folder;
  if (use == FolderUse::kResume) run_folder.emplace(folder, use);
  settle(job, arguments);
  if (job.stored) require_nothing_lost(job.place, *job.stored);
  const LanguageModelRun run = prepare(job);
  const RunCost cost = cost_of(run);
  const MemoryForecast memory = forecast_memory(context, job, run);
  require_fit(memory);
  describe_run(context, run, cost, memory);
  if (!run_folder) run_folder.emplace(folder, use);
  run_folder->clear();
  return train(context, job, run, cost, *run_folder);
}

}  // namespace

CommandSpec train_lm_spec() {
  return {.name = "train lm",
          .summary =
              "Trains a language model on text files: a Transformer, an RNN, or a mix of layers.",
          .positionals = {},
          .options = train_lm_options(),
          .epilog = std::string(kExamples)};
}

int train_lm(const Arguments& arguments) {
  Job job;
  job.options = run_options_of(arguments);
  MessageOptions messages = job.options.messages;
  if (arguments.on("dump-config")) messages.log_file.clear();  // --dump-config writes no file
  set_messages(messages, job.options.json ? ErrorFormat::kJson : ErrorFormat::kText);
  job.place = place_of(arguments, job.options.output);
  const std::string config = arguments.text("config");
  check_log_is_apart({&config, 1}, job.place.folder);
  warn_of_unread_variables(train_lm_options());
  const Context context = context_of(job.options.threads);
  if (arguments.on("dump-config")) return dump_config(job, arguments);
  if (arguments.on("dry-run")) return dry_run(context, job, arguments);
  return run_job(context, job, arguments);
}

}  // namespace fovea::cli

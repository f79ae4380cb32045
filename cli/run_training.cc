// SPDX-License-Identifier: Apache-2.0
#include "cli/run_training.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iostream>
#include <limits>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/output.h"
#include "cli/score_text.h"
#include "cli/signals.h"
#include "fovea/base/check.h"
#include "fovea/base/clock.h"
#include "fovea/base/error.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/toml.h"
#include "fovea/report/progress.h"
#include "fovea/task/report/run_page.h"
#include "fovea/text/utf8.h"
#include "fovea/train/run_summary.h"
#include "fovea/train/trainer.h"

namespace fovea::cli {

namespace {

ProgressStyle style_of(ProgressKind kind, const Terminal& terminal) {
  if (quiet() || kind == ProgressKind::kNone) return ProgressStyle::kNone;
  const bool bar = kind == ProgressKind::kAuto && terminal.interactive;
  return bar ? ProgressStyle::kBar : ProgressStyle::kPlain;
}

// Shows the progress of a training: on stderr as a bar or as plain lines, at most one every ten
// seconds; in the log, if there is one, as lines.
class TrainingLog final : public TrainingObserver {
 public:
  // `updates` of the whole run; 0: not known. `unit`: what a target is, such as "token".
  TrainingLog(index updates, ProgressKind kind, std::string_view unit)
      : updates_(updates), kind_(kind), unit_(unit) {}
  // Prints the last line also after an error; a second error is ignored.
  ~TrainingLog() override {
    try {
      finish();
    } catch (...) {
    }
  }

  void begins(const RunState& state) override {
    show();
    if (state.step > 0) note(fmt::format("going on after update {}", state.step));
    if (state.evaluated_step >= 0) valid_ = {state.valid_loss, state.evaluated_step};
  }

  void noticed(const std::string& what) override { warn(what); }
  void told(const std::string& what) override {
    show();
    note(what);
  }
  Request request() override { return requested(); }

  void updated(const UpdateRecord& record, double fraction_done) override {
    for (Progress& progress : shown_) {
      progress.update({.fraction = fraction_done,
                       .step = record.step,
                       .steps = updates_,
                       .loss = record.mean16_loss,
                       .tokens_per_second = record.tokens_per_second,
                       .seconds_left = record.seconds_left,
                       .valid = valid_});
    }
  }

  void works(std::string_view what, double fraction_done) override {
    show();
    std::optional<double> left;
    if (fraction_done > 0) {
      left = (monotonic_seconds() - began_) * (1 - fraction_done) / fraction_done;
    }
    for (Progress& progress : shown_) {
      progress.update({.fraction = fraction_done, .work = std::string(what), .seconds_left = left});
    }
  }

  void evaluation_begins(index) override {
    for (Progress& progress : shown_) progress.busy("evaluating");
  }

  void evaluated(const EvaluationRecord& record) override {
    valid_ = {record.valid_loss, record.step};
    for (Progress& progress : shown_) progress.validated(record.valid_loss);
    if (record.is_best) {
      note(fmt::format(
          "update {}: validation loss {:.4f}, of the best weights so far; train loss {:.4f}",
          record.step, record.valid_loss, record.train_loss));
    } else {
      note(fmt::format("update {}: validation loss {:.4f}; train loss {:.4f}", record.step,
                       record.valid_loss, record.train_loss));
    }
  }

  void measured(const MetricsRecord& record) override {
    std::string line = fmt::format("update {}:", record.step);
    for (const MetricValue& one : record.values) {
      line += fmt::format("{} {} {:.4f}", line.ends_with(':') ? "" : ",", one.name, one.value);
    }
    note(line);
  }

  void saved(index, const std::filesystem::path& checkpoint) override {
    note(fmt::format("saved {}", escape_text(checkpoint.string())));
  }

  void finish() {
    for (Progress& progress : shown_) progress.finish();
  }

 private:
  // From the first event on, which may come before the training begins.
  void show() {
    if (!shown_.empty()) return;
    const Terminal terminal = message_terminal();
    const ProgressStyle style = style_of(kind_, terminal);
    const auto show_on = [&](std::ostream& out, ProgressStyle how) {
      shown_.emplace_back(
          out, ProgressOptions{.style = how,
                               .terminal = terminal,
                               .unit = unit_,
                               .columns = [] { return terminal_columns(STDERR_FILENO); },
                               .words = [](std::string_view words) { return in_language(words); }});
    };
    show_on(std::cerr, style);
    if (std::ostream* log = log_stream()) {
      show_on(*log, style == ProgressStyle::kNone ? style : ProgressStyle::kPlain);
    }
  }

  void note(const std::string& line) {
    if (quiet()) return;
    for (Progress& progress : shown_) progress.note(in_language(line));
  }

  const index updates_;
  const ProgressKind kind_;
  const std::string unit_;
  const double began_ = monotonic_seconds();
  std::vector<Progress> shown_;  // one on stderr, one in the log
  std::optional<ValidLoss> valid_;
};

// Lines of items with blanks between them; all lines but the first are indented.
std::string filled(const std::vector<std::string_view>& items, std::string_view indent) {
  constexpr std::size_t kColumns = 100;
  std::string text, line;
  for (const std::string_view item : items) {
    if (!line.empty() && line.size() + 1 + item.size() > kColumns) {
      text += line + "\n";
      line = indent;
      line += item;
      continue;
    }
    if (!line.empty()) line += ' ';
    line += item;
  }
  return text + line;
}

// The request of the command line and, if a run is resumed, the state that it starts from.
struct Job {
  Training& training;
  const Arguments& arguments;
  double began = monotonic_seconds();
  RunOptions options = {};
  Place place = {};
  std::optional<StoredRun> stored = {};
  bool changed = false;  // whether options differ from those of the checkpoint

  const StoredRun* stored_run() const { return stored ? &*stored : nullptr; }
};

void require_output(const Job& job) {
  if (!job.place.folder.empty()) return;
  throw Error(ErrorCode::kUsage, fmt::format("{}: no output folder", job.training.command()),
              "say where the model goes: -o DIR");
}

// Reads the stored run, if one is resumed, and all settings.
void settle(Job& job) {
  if (job.place.use == FolderUse::kResume) {
    require_output(job);
    job.stored = read_run(job.place);
  }
  const auto changes = job.training.settle(job.arguments, job.options, job.stored_run());
  check_log_is_apart(job.training.input_files(), {});
  if (job.stored) {
    for (const std::string& warning : job.stored->warnings) warn(warning);
  }
  for (const std::string& change : changes) warn(change);
  note_conversion(job.training.precision());
  job.changed = !changes.empty();
}

// Reads the data. The files of a run that is resumed may have been moved since it began.
void prepare(Job& job) {
  try {
    const std::vector<std::string> notes = job.training.prepare(job.stored_run());
    for (const std::string& line : job.training.overview()) note(line);
    for (const std::string& note : notes) warn(note);
  } catch (const Error& error) {
    if (!job.stored || error.code() != ErrorCode::kMissingInput) throw;
    throw error.with(
        error.code(), error.what(),
        fmt::format("if the file was moved, say where it is: {}", job.training.data_options()));
  }
}

// The bytes of the checkpoint that is held now.
index checkpoint_bytes(const Job& job) {
  index bytes = 0;
  if (!job.stored || !job.stored->checkpoint) return bytes;
  for (const NamedFile& file : job.stored->checkpoint->files) {
    bytes += static_cast<index>(file.bytes.size());
  }
  return bytes;
}

struct MemoryForecast {
  double bytes;       // of the process, at its peak
  MemoryLimit limit;  // what it may use
  bool fits() const { return bytes <= static_cast<double>(limit.bytes); }
};

MemoryForecast forecast_memory(const Context& context, const Job& job) {
  return {job.training.memory(context, checkpoint_bytes(job)), reachable_memory()};
}

// The run needs more memory than it may use, most of it for one option, or for none alone.
[[noreturn]] void fail_fit(const Context& context, const Job& job, const MemoryForecast& memory) {
  const std::string_view largest_option =
      job.training.largest_option(context, checkpoint_bytes(job));
  std::string hint = fmt::format("choose a smaller {}", job.training.sizes());
  if (largest_option == "--observe-every") {
    hint = fmt::format("choose a larger {}, which takes most of it", largest_option);
  } else if (!largest_option.empty()) {
    hint = fmt::format("choose a smaller {}, which takes most of it", largest_option);
  }
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("training would take {}; {} are available ({})", size_text(memory.bytes),
                          size_text(memory.limit.bytes), memory.limit.reason),
              std::move(hint));
}

// With --verbose: the machine, the data, and the model.
void describe_run(const Context& context, const Job& job, const RunCost& cost,
                  const MemoryForecast& memory) {
  tell_threads(context);
  for (const std::string& line : job.training.description()) detail(line);
  detail(fmt::format("model: {} parameters; about {} of {} will be used ({})", cost.parameters,
                     size_text(memory.bytes), size_text(memory.limit.bytes), memory.limit.reason));
}

// `state`: where the run goes on.
void print_forecast(const Context& context, const Job& job, const RunCost& cost,
                    const MemoryForecast& memory, const RunState& state) {
  const double flops = job.training.update_flops(context);
  const RunTime time = job.training.time(context, state);
  const double all_flops = flops * static_cast<double>(cost.updates);
  if (job.options.json) {
    print_json({{"parameters", cost.parameters},
                {"updates", cost.updates},  // 0: it ends by hours
                {"tokens_per_update", cost.tokens_per_update},
                {"flops_per_update", flops},
                {"flops", all_flops},
                {"predicted_memory_bytes", static_cast<index>(memory.bytes)},
                {"available_memory_bytes", memory.limit.bytes},
                {"fits", memory.fits()},
                {"predicted_seconds", time.seconds},
                {"predicted_seconds_basis", time.basis}});
    return;
  }
  print(fmt::format("parameters        {}\n", cost.parameters));
  if (!job.training.solves()) {
    print(fmt::format("updates           {}{}\n",
                      cost.updates > 0 ? std::to_string(cost.updates) : "until the time is up",
                      state.step > 0 ? fmt::format("; {} are done", state.step) : ""));
    print(fmt::format("{:<18}{}\n", fmt::format("{}s an update", job.training.row()),
                      cost.tokens_per_update));
    print(fmt::format("FLOPs an update   {:.4g}\n", flops));
    if (cost.updates > 0) print(fmt::format("FLOPs             {:.4g}\n", all_flops));
  }
  print(fmt::format("predicted memory  {} of {} ({})\n", size_text(memory.bytes),
                    size_text(memory.limit.bytes), memory.limit.reason));
  if (!memory.fits()) print("                  too much: the run would be refused\n");
  print(fmt::format("estimated time    {} ({})\n", format_duration(time.seconds), time.basis));
}

std::string counted(index n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

struct Totals {
  double train_loss, valid_loss, best_valid_loss, tokens_per_second;
};

// NaN: there is none.
Totals totals_of(const TrainResult& result) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const RunState& state = result.state;
  const bool is_evaluated = state.evaluated_step == state.step && state.step > 0;
  return {.train_loss = state.tokens > 0 ? state.recent_train_loss() : kNone,
          .valid_loss = is_evaluated ? state.valid_loss : kNone,
          .best_valid_loss = state.best_step >= 0 ? state.best_valid_loss : kNone,
          .tokens_per_second =
              result.process_step_seconds > 0
                  ? static_cast<double>(result.process_tokens) / result.process_step_seconds
                  : 0};
}

// "5 folds, means with 95 % intervals: accuracy 0.8540 (0.8321 to 0.8759), ..."
std::string folds_text(const std::vector<FoldedMetric>& folds) {
  if (folds.empty()) return "";
  std::string text;
  for (const FoldedMetric& metric : folds) {
    text += fmt::format("{} {} {:.4f} ({:.4f} to {:.4f})", text.empty() ? "" : ",", metric.name,
                        metric.mean, metric.low, metric.high);
  }
  return fmt::format("{}, means with 95 % intervals:{}\n",
                     counted(static_cast<index>(folds.front().folds.size()), "fold"), text);
}

void print_result(const Job& job, const RunCost& cost, const TrainResult& result) {
  const Totals s = totals_of(result);
  const RunState& state = result.state;
  const std::string folder = job.place.folder.string();
  const RunSummary stored = run_summary(folder);
  const double seconds = monotonic_seconds() - job.began;  // of this process
  const std::string targets = counted(state.tokens, job.training.unit());
  if (job.options.json) {
    Json::Object object{{"train_loss", s.train_loss},
                        {"valid_loss", s.valid_loss},
                        {"best_valid_loss", s.best_valid_loss},
                        {"steps", state.step},
                        {"tokens", state.tokens},
                        {"tokens_per_second", s.tokens_per_second},
                        {"seconds", seconds},
                        {"parameters", cost.parameters},
                        {"peak_memory_bytes", peak_memory_bytes()}};
    add_metrics(object, stored);
    print_json(std::move(object));
    return;
  }
  if (job.training.solves()) {
    if (result.stopped) return;  // there is no model
    const std::string found =
        std::isfinite(s.best_valid_loss)
            ? validation_text("chosen", s.best_valid_loss, stored.best_valid_metrics)
            : fmt::format("train loss {:.4f}; too few texts to validate", s.train_loss);
    print(fmt::format("solved for {} in {:.1f} s\n{}\n{}model: {}\n", targets, seconds, found,
                      folds_text(stored.folds), folder));
    return;
  }
  if (result.stopped && state.step == 0) return;  // before the first update: no model is there
  // Updates and tokens are those of the whole run; the time is that of this process.
  print(fmt::format("{}, {}; ", counted(state.step, "update"), targets));
  print(s.tokens_per_second > 0 ? fmt::format("{:.1f} s here, {:.0f} {}s/s\n", seconds,
                                              s.tokens_per_second, job.training.unit())
                                : "nothing was left to do: a longer --stop-after, or more "
                                  "--patience, makes the run longer\n");
  if (std::isfinite(s.best_valid_loss)) {
    print(fmt::format("{}, at update {}; ",
                      validation_text("best", s.best_valid_loss, stored.best_valid_metrics),
                      state.best_step));
  }
  if (std::isfinite(s.valid_loss)) {
    print(fmt::format("last validation loss {:.4f}; ", s.valid_loss));
  }
  print(fmt::format("train loss {:.4f}\nmodel: {}\n", s.train_loss, folder));
}

// A run that fails before it has saved weights is removed, so that the same command can start
// again. A run that diverged is kept: its metrics show how.
template <class F>
auto train_in(const RunFolder& folder, F&& train) {
  try {
    return train();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kDiverged || folder.remove_unsaved()) throw;
    if (error.code() != ErrorCode::kDiskFull) throw;
    throw Error(error.code(), error.what(),
                "free some space, then go on with --resume and the same options");
  } catch (const std::exception&) {
    folder.remove_unsaved();
    throw;
  }
}

TrainResult train_observed(const Context& context, const Job& job, StartAt start,
                           TrainingObserver& log) {
  const std::filesystem::path& folder = job.place.folder;
  if (!job.options.report) return job.training.train(context, folder, std::move(start), log);
  LivePage page(log, folder, job.options.lang);
  try {
    TrainResult result = job.training.train(context, folder, std::move(start), page);
    page.finish();
    return result;
  } catch (...) {
    page.finish();
    throw;
  }
}

int train(const Context& context, Job& job, const RunCost& cost, const RunFolder& run_folder) {
  StartAt start{.resume = job.place.use == FolderUse::kResume};
  if (job.changed || job.place.goes_back) start.future = Future::kOther;
  if (job.stored) start.checkpoint = std::exchange(job.stored->checkpoint, std::nullopt);
  TrainingLog log(cost.updates, job.options.progress, job.training.unit());
  const TrainResult result =
      train_in(run_folder, [&] { return train_observed(context, job, std::move(start), log); });
  log.finish();
  for (const std::string& finding : job.training.findings()) warn(finding);
  if (result.stopped) {
    const std::string folder = shell_word(job.place.folder.string());
    if (job.training.solves()) {
      say(fmt::format("stopped before the model was found; to begin anew: fovea {} --resume -o {}",
                      job.training.command(), folder));
    } else {
      say(fmt::format("stopped after update {}; to go on: fovea {} --resume -o {}",
                      result.state.step, job.training.command(), folder));
    }
  }
  if (job.options.final && !result.stopped) run_folder.keep_model();
  print_result(job, cost, result);
  return result.stopped ? stop_status() : 0;
}

int dump_config(Job& job) {
  settle(job);
  print(job.training.toml(job.options));
  return 0;
}

int dry_run(const Context& context, Job& job) {
  settle(job);
  prepare(job);
  const MemoryForecast memory = forecast_memory(context, job);
  const RunCost cost = job.training.cost();
  describe_run(context, job, cost, memory);
  RunState state;
  if (job.stored && job.stored->checkpoint) {
    state = state_of(*std::exchange(job.stored->checkpoint, std::nullopt));
  }
  print_forecast(context, job, cost, memory, state);
  return 0;
}

// A file to read that lies in the folder would be removed before it is read.
void require_inputs_outside(const Job& job) {
  if (job.place.use != FolderUse::kOverwrite) return;
  const std::filesystem::path folder = std::filesystem::weakly_canonical(job.place.folder);
  for (const std::string& file : job.training.input_files()) {
    if (file.empty() || file == "-") continue;
    const std::filesystem::path inside =
        std::filesystem::weakly_canonical(file).lexically_relative(folder);
    if (inside.empty() || *inside.begin() == "..") continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: lies in the folder that --overwrite replaces", file),
                "choose another folder for --output");
  }
}

// Before the first file is written or removed.
void open_folder(const Job& job, std::optional<RunFolder>& run_folder) {
  require_inputs_outside(job);
  listen_to_signals();
  if (!run_folder) run_folder.emplace(job.place.folder, job.place.use);
  run_folder->clear();
}

// Returns false if it was interrupted. What was chosen is then trained as a new run.
bool search(const Context& context, Job& job, const RunFolder& run_folder) {
  TrainingLog log(0, job.options.progress, job.training.unit());
  log.begins({});
  const bool resume = job.place.use == FolderUse::kResume;
  const std::optional<std::string> found = train_in(
      run_folder, [&] { return job.training.search(context, job.place.folder, resume, log); });
  log.finish();
  if (!found) {
    say(fmt::format("stopped in the search for settings; to go on: fovea {} --resume -o {}",
                    job.training.command(), shell_word(job.place.folder.string())));
    return false;
  }
  std::istringstream lines(*found);
  for (std::string line; std::getline(lines, line);) note(line);
  job.stored.reset();
  job.place.use = FolderUse::kNew;
  return true;
}

int run_job(const Context& context, Job& job) {
  const std::filesystem::path& folder = job.place.folder;
  const FolderUse use = job.place.use;
  require_output(job);
  require_unlocked(folder);
  check_run_folder(folder, use);
  // A resumed run is locked before it is read. The folder of another run is not touched or created
  // until all checks have passed.
  std::optional<RunFolder> run_folder;
  if (use == FolderUse::kResume) run_folder.emplace(folder, use);
  settle(job);
  if (job.stored) require_nothing_lost(job.place, *job.stored);
  const bool has_searched = job.training.searches();
  if (has_searched) {
    job.training.prepare_search();
    open_folder(job, run_folder);
    if (!search(context, job, *run_folder)) return stop_status();
  }
  prepare(job);
  const RunCost cost = job.training.cost();
  const MemoryForecast memory = forecast_memory(context, job);
  if (!memory.fits()) fail_fit(context, job, memory);
  describe_run(context, job, cost, memory);
  if (!has_searched) open_folder(job, run_folder);
  return train(context, job, cost, *run_folder);
}

// The name in help of the options of a nested struct: Text, Model, Training, Run.
std::string title_of(const Field& field) {
  std::string title(field.table_also.empty() ? field.table() : field.table_also);
  title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title;
}

// The paths that the field holds.
std::span<std::string> paths_of(const Field& field) {
  if (!field.traits.is_path) return {};
  if (auto* const* files = std::get_if<std::vector<std::string>*>(&field.target)) return **files;
  return {std::get<std::string*>(field.target), 1};
}

void make_absolute(std::string& file) {
  if (file.empty() || file == "-") return;  // standard input
  file = std::filesystem::absolute(file).lexically_normal().string();
}

}  // namespace

std::vector<OptionSpec> training_options(const std::vector<Field>& fields) {
  std::vector<OptionSpec> options = {{.name = "resume",
                                      .kind = OptionKind::kOptionalValue,
                                      .placeholder = "[=PATH]",
                                      .help = "continue from the newest checkpoint, or from PATH",
                                      .place = HelpPlace::kResume}};
  for (std::size_t begin = 0, end = 0; begin < fields.size(); begin = end) {
    while (end < fields.size() && fields[end].table() == fields[begin].table()) ++end;
    const std::span<const Field> group = std::span(fields).subspan(begin, end - begin);
    std::vector<OptionSpec> more = options_of(flags_of(group), title_of(group[0]));
    if (group[0].table() == "run") more = said_or_not(std::move(more));
    options.insert(options.end(), more.begin(), more.end());
  }
  options.insert(
      options.end(),
      {flag("dump-config", "print all settings as TOML, and end", "Run"),
       flag("dry-run", "print memory, FLOPs and time of the run, and write nothing", "Run")});
  return options;
}

std::vector<std::string> read_settings(const std::vector<Field>& fields,
                                       const Arguments& arguments) {
  std::vector<std::string> set;
  if (arguments.has("config")) set = set_from_toml_file(fields, arguments.text("config"));
  const std::vector<std::string> outside = read_options(arguments, flags_of(fields));
  set.insert(set.end(), outside.begin(), outside.end());
  for (const Field& field : fields) {
    for (std::string& file : paths_of(field)) make_absolute(file);
  }
  return set;
}

std::string settings_toml(const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    if (field.traits.only_command_line || !find_invalid_utf8(value_text(field))) continue;
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("{}: {}: not UTF-8, which TOML is", option_name(field.name), value_text(field)),
        "rename the file or folder, or name it by a link whose path is UTF-8");
  }
  return toml_text(fields);
}

void let_min_lr_follow(TrainOptions& recipe, const std::vector<std::string>& set, bool resumes) {
  if (!contains(set, "recipe.lr") || contains(set, "recipe.min_lr")) return;
  if (resumes && recipe.min_lr <= recipe.lr) return;
  recipe.min_lr = recipe.schedule == ScheduleKind::kConstant ? recipe.lr : recipe.lr / 10;
}

std::vector<std::string> paths_in(const std::vector<Field>& fields) {
  std::vector<std::string> files;
  for (const Field& field : fields) {
    const std::span<std::string> more = paths_of(field);
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

std::optional<TokenizerData> tokenizer_data_of(const StoredRun* stored, std::string_view file) {
  if (stored == nullptr) return std::nullopt;
  return tokenizer_data_from_text(stored->file(file), stored->path(file));
}

std::unique_ptr<Tokenizer> tokenizer_of(const StoredRun* stored, std::string_view file) {
  if (stored == nullptr) return nullptr;
  return make_tokenizer(*tokenizer_data_of(stored, file));
}

std::string epilog_of(const TrainingHelp& help) {
  constexpr std::string_view kFolders =
      R"(A folder that is not empty is refused, unless
  --resume     goes on at its newest whole checkpoint (or at the one that --resume=PATH names), with
               the settings stored there; options given beside it count more
  --overwrite  removes what an earlier run wrote there (nothing else) and begins anew; beside
               --resume=CHECKPOINT, what came after that checkpoint)";
  constexpr std::string_view kSignals =
      R"(SIGINT, SIGTERM and SIGHUP save a checkpoint and stop, SIGUSR1 saves and goes on, SIGUSR2 saves and
stops.)";
  constexpr std::string_view kLosses =
      R"(A train loss is a mean over the updates before, while the weights changed; a validation loss is
that of the weights as they are.)";
  const std::string settings = fmt::format(
      "Settings come, each counting more than those before it, from: {} (FOVEA_HEAD_DIM is "
      "--head-dim), options. A run that ends by hours depends on the speed of the machine; any "
      "other gives the same bits again, for any number of threads.",
      help.settings_from);
  std::string text = fmt::format("Examples:\n{}\n\n", help.examples);
  if (!help.data.empty()) text += fmt::format("{}\n\n", filled(parts_between(help.data, ' '), ""));
  text += fmt::format("{}\n\n{}\n\n{}\n\n{}", kFolders, filled(parts_between(settings, ' '), ""),
                      kSignals, kLosses);
  if (help.defaults.empty()) return text;
  const std::string when = fmt::format("{} other defaults hold", help.when) + ":";
  std::vector<std::string_view> items = {when};
  items.insert(items.end(), help.defaults.begin(), help.defaults.end());
  return text + "\n\n" + filled(items, "  ");
}

int run_training(Training& training, const Arguments& arguments) {
  Job job{training, arguments};
  job.options = training.run_options(arguments);
  MessageOptions messages = job.options.messages;
  if (arguments.on("dump-config")) messages.log_file.clear();  // --dump-config writes no file
  set_messages(messages, job.options.json ? ErrorFormat::kJson : ErrorFormat::kText);
  job.place = place_of(arguments, job.options.output);
  const std::string config = arguments.text("config");
  check_log_is_apart({&config, 1}, job.place.folder);
  warn_of_unread_variables(arguments.command());
  const Context context = context_of(job.options.threads);
  if (arguments.on("dump-config")) return dump_config(job);
  if (arguments.on("dry-run")) return dry_run(context, job);
  return run_job(context, job);
}

}  // namespace fovea::cli

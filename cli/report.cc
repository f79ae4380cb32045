// SPDX-License-Identifier: Apache-2.0
// fovea report: a page about training runs, side by side.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/language.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "fovea/base/error.h"
#include "fovea/base/file.h"
#include "fovea/base/words.h"
#include "fovea/report/run_figures.h"
#include "fovea/report/run_report.h"
#include "fovea/report/run_tables.h"
#include "fovea/report/terminal_plot.h"
#include "fovea/task/classify/linear.h"
#include "fovea/task/report/evaluation.h"
#include "fovea/task/report/run_page.h"
#include "fovea/text/utf8.h"
#include "fovea/train/run_state.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

struct ReportPage {
  std::string output = "report.html";
  std::string csv;
  bool terminal = false;
  bool learning_curve = false;
  bool overwrite = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("output", output, "the page to write",
          {.only_command_line = true, .place = HelpPlace::kOutput, .shown = "FILE", .also = "o"});
    visit("csv", csv, "write every number of the curves into this file; -: to stdout",
          {.only_command_line = true, .shown = "FILE"});
    visit("terminal", terminal, "draw the losses with characters, to stdout",
          {.only_command_line = true});
    visit("learning_curve", learning_curve,
          "train the linear classifiers anew on 1/16 to all of their texts: is more data worth it?",
          {.only_command_line = true});
    visit("overwrite", overwrite, "replace a page or a CSV that is there already",
          {.only_command_line = true});
  }
};

void require_different(const std::vector<std::string>& folders) {
  for (auto one = folders.begin(); one != folders.end(); ++one) {
    const auto same = std::find_if(folders.begin(), one, [&](const std::string& before) {
      std::error_code error;
      return before == *one || (fs::equivalent(before, *one, error) && !error);
    });
    if (same == one) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("report: {} and {} are the same folder", *same, *one),
                "name each run once");
  }
}

std::vector<RunReport> read_runs(const std::vector<std::string>& folders,
                                 const std::vector<std::string>& evaluations) {
  std::vector<RunReport> runs;
  for (std::size_t n = 0; n < folders.size(); ++n) {
    runs.push_back(report_of_run(folders[n], folders[n]));
    RunReport& run = runs.back();
    for (const Phrase& note : run.notes) {
      warn(fmt::format("{}: {}", run.name, note.english));
    }
    if (evaluations.empty()) continue;
    EvaluationFile found = read_evaluation(evaluations[n]);
    if (found.kind != kind_of_model(folders[n])) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("report: {} is of a {}, and {} of a {}", evaluations[n],
                              task_row(found.kind).name.english, run.name, run.kind.english),
                  "give the evaluations in the order of the folders");
    }
    if (!may_be_of(found, folders[n])) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("report: {} is of another model than {}", evaluations[n], run.name),
                  "give the evaluations in the order of the folders; after a new training make "
                  "them anew: fovea eval MODEL --test FILE --json");
    }
    run.evaluation = std::move(found.evaluation);
  }
  return runs;
}

void write(const std::string& file, std::size_t runs, const std::string& text) {
  write_file_atomically(file, text);
  note(fmt::format("{}: {} run{}, {}", escape_text(file), runs, runs == 1 ? "" : "s",
                   size_text(static_cast<double>(text.size()))));
}

// Trains models of parts of the texts. Ctrl-C stops it.
class CurveWatch final : public TrainingObserver {
 public:
  void told(const std::string& what) override { note(what); }
  Request request() override { return requested(); }
};

// Returns false if it was interrupted.
bool add_learning_curves(const std::vector<std::string>& folders, std::vector<RunReport>& runs) {
  listen_to_signals();
  const Context context;
  CurveWatch watch;
  for (std::size_t n = 0; n < folders.size(); ++n) {
    std::vector<std::string> notes;
    runs[n].learning = learning_curve(context, folders[n], watch, notes);
    for (const std::string& line : notes) warn(line);
    if (runs[n].learning.empty() && requested() == Request::kStop) return false;
  }
  return true;
}

std::string losses_of(const std::vector<RunReport>& runs, PageLanguage language) {
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  std::string text;
  for (const RunReport& run : runs) {
    const TerminalPlotOptions how{.columns = result_columns(),
                                  .unicode = result_terminal().unicode && !dumb,
                                  .language = language};
    text += (text.empty() ? "" : "\n") + terminal_losses(run, how);
    if (!run.learning.empty()) text += "\n" + terminal_learning(run, how);
  }
  return text;
}

int report(const Arguments& arguments) {
  begin_command(arguments);
  ReportPage options;
  read_options(arguments, options);
  const std::vector<std::string> folders = arguments.list("DIR");
  const std::vector<std::string> evaluations = arguments.list("eval");
  if (!evaluations.empty() && evaluations.size() != folders.size()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("report: there are {} folders and {} files of --eval", folders.size(),
                            evaluations.size()),
                "give a file for each folder, in the same order, or none");
  }
  const bool has_csv = arguments.has("csv");
  const bool has_page = arguments.has("output") || !(has_csv || options.terminal);
  if (has_page) check_page_file({"--output", options.output, options.overwrite});
  if (has_csv && options.csv != "-") {
    check_page_file({"--csv", options.csv, options.overwrite, "CSV", ".csv", kRunCsvMark});
  }
  require_different(folders);
  std::vector<RunReport> runs = read_runs(folders, evaluations);
  if (options.learning_curve) {
    if (!add_learning_curves(folders, runs)) return stop_status();
    for (const RunReport& run : runs) note(learning_advice(run.learning, language()));
  }
  if (has_page) {
    write(options.output, runs.size(),
          draw_run_page(runs, {.language = language(), .made = utc_time(), .version = kVersion}));
  }
  if (options.terminal) print(losses_of(runs, language()));
  if (has_csv && options.csv == "-") print(run_csv(runs));
  if (has_csv && options.csv != "-") write(options.csv, runs.size(), run_csv(runs));
  return 0;
}

}  // namespace

Command report_command() {
  return {.name = "report",
          .summary = "Makes a page of training runs: curves, metrics, settings, side by side.",
          .positionals = {{.name = "DIR", .help = "folders of runs", .is_list = true}},
          .options = joined(
              {{{.name = "eval",
                 .kind = OptionKind::kList,
                 .placeholder = "FILE",
                 .help = "what fovea eval --json printed, a file for each folder, in their order",
                 .place = HelpPlace::kData}},
               said_or_not(ReportPage(), "Page"),
               message_options()}),
          .epilog = R"(Examples:
  fovea report model -o report.html
  fovea report small large --lang zh -o compared.html
  fovea eval model --test test.tsv --json > test.json
  fovea report model --eval test.json -o tested.html
  fovea report model --terminal
  fovea report model --learning-curve --terminal
  fovea report small large --csv curves.csv

The page needs no network. With --terminal or --csv a page is written only if -o names it.
fovea train ... --report keeps one in the folder of the run.)",
          .run = report};
}

}  // namespace fovea::cli

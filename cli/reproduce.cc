// SPDX-License-Identifier: Apache-2.0
// fovea reproduce: runs the published experiments again.
#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "experiments/experiment.h"
#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/train/run_lock.h"

namespace fovea::cli {

namespace {

struct Experiment {
  std::string_view name;
  std::string_view summary;
  void (*run)(const Context&, const ReproduceOptions&, const ReproduceObserver&);
  std::string_view options;  // those that not all have
  std::string_view timed;    // by a script of PyTorch

  bool takes(std::string_view option) const { return has_word(options, ',', option); }
};

constexpr std::string_view kOfSources = "data,compat,fixed,pytorch,python,seeds";

constexpr std::array kExperiments = {
    Experiment{"prince", "E4, E5, E6, E9: language models on The Little Prince", reproduce_prince,
               kOfSources, "E4,E5,E9"},
    Experiment{"imdb", "E1, E2, E3, P9: text classifiers on the reviews of IMDB", reproduce_imdb,
               kOfSources, "E1,E2,E3,P9"},
    Experiment{"tag", "E8: names and words of Chinese, by attention and by others", reproduce_tag,
               "data,only,seeds", ""},
    Experiment{"translate", "E7, E14: translators, with and without positions", reproduce_translate,
               "data,seeds", ""},
    Experiment{"order", "P8: which of two tokens came first, with each kind of positions",
               reproduce_order, "seeds", ""},
    Experiment{"recall", "E12: a token at a distance of 10 to 500 tokens", reproduce_recall,
               "seeds", ""},
    Experiment{"speed", "E13: time for a token of five kinds of layers", reproduce_speed, "", ""},
};

constexpr std::string_view kReproduceExamples = R"(
Runs that were interrupted go on where they were, if the same command is given again; what is timed
(speed) begins anew. The folder of output has a folder for each run, a picture for each experiment,
and all numbers in results.jsonl.

Examples:
  fovea reproduce order --seeds 1 -o order
  fovea reproduce prince --data data -o prince
  fovea reproduce imdb --data data --seeds 1 -o imdb
  fovea reproduce tag --data data --only segment -o tag
  fovea reproduce translate --data data --seeds 1 -o translate
  fovea reproduce prince --data data --compat --seeds 5 --json -o prince
  fovea reproduce prince --data data --pytorch bench/sources.py --python venv/bin/python -o prince)";

// The choices of a user for a reproduction; each only on the command line.
struct Choices {
  std::string data, only, pytorch;
  std::string output = "reproduce-EXPERIMENT";
  std::string python = "python3";
  bool compat = false, fixed = false;
  index seeds = 3;
  double share = 1;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    const auto say = [&](std::string_view name, auto& value, std::string_view help,
                         FieldTraits traits) {
      traits.only_command_line = true;
      visit(name, value, help, traits);
    };
    say("data", data, "folder of the data of experiments", {.heading = "Input", .shown = "DIR"});
    say("compat", compat, "only as published, with its defects", {.heading = "Input"});
    say("fixed", fixed, "only corrected", {.heading = "Input"});
    say("seeds", seeds, "runs of each variant",
        {.range = ValueRange::in(1, 1000), .heading = "Input"});
    say("only", only, "tag: only what has one of these in its name, such as ner,crf",
        {.heading = "Input"});
    say("share", share,
        "this part of the epochs, updates, reviews or pairs, for a trial, in DIR/shareX",
        {.range = ValueRange::over(0, 1), .heading = "Input"});
    say("pytorch", pytorch, "time PyTorch, too, by this script (bench/sources.py, bench/imdb.py)",
        {.heading = "PyTorch", .shown = "FILE"});
    say("python", python, "the Python that has PyTorch", {.heading = "PyTorch", .shown = "PATH"});
    say("output", output, "folder of the results", {.shown = "DIR", .also = "o"});
  }
};

// PyTorch's seconds for an epoch, as the script of bench/ prints them; nothing if it fails.
std::optional<double> seconds_of_pytorch(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) return std::nullopt;
  char line[64] = "";
  double seconds = 0;
  if (std::fgets(line, sizeof line, pipe.get()) == nullptr) return std::nullopt;
  const std::string_view text = line;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc()) return std::nullopt;
  return seconds;
}

std::function<std::optional<double>(std::string_view)> pytorch_of(const Choices& choices,
                                                                  const Context& context,
                                                                  std::string_view timed) {
  if (choices.pytorch.empty()) return {};
  const std::string begin = fmt::format("{} {} --data {} --threads {} --epochs 2 --seconds --only ",
                                        shell_word(choices.python), shell_word(choices.pytorch),
                                        shell_word(choices.data), context.threads());
  // The script has these; each is timed once, for all its variants and seeds.
  return [begin, timed, known = std::map<std::string, std::optional<double>>()](
             std::string_view experiment) mutable -> std::optional<double> {
    if (!has_word(timed, ',', experiment)) return std::nullopt;
    const auto [entry, is_new] = known.try_emplace(std::string(experiment));
    if (is_new) {
      note(fmt::format("{}: timing PyTorch", experiment));
      entry->second = seconds_of_pytorch(begin + std::string(experiment));
      if (!entry->second) warn(fmt::format("PyTorch gave no time for {}", experiment));
    }
    return entry->second;
  };
}

std::string experiments_with(std::string_view option) {
  std::string names;
  for (const Experiment& e : kExperiments) {
    if (e.takes(option)) names += (names.empty() ? "" : ", ") + std::string(e.name);
  }
  return names;
}

ReproduceOptions settle(const Arguments& arguments, const Context& context,
                        const Experiment& experiment) {
  Choices choices;
  read_options(arguments, choices);
  for (const std::string_view option :
       {"data", "compat", "fixed", "pytorch", "python", "only", "seeds"}) {
    if (experiment.takes(option) || !arguments.has(option)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("reproduce {}: --{} has no effect here", experiment.name, option),
                fmt::format("it belongs to reproduce {}", experiments_with(option)));
  }
  if (arguments.has("python") && choices.pytorch.empty()) {
    throw Error(ErrorCode::kUsage, "reproduce: --python has no effect without --pytorch",
                "name the script that times PyTorch: --pytorch bench/sources.py");
  }
  if (experiment.takes("data") && !arguments.has("data")) {
    throw Error(
        ErrorCode::kUsage, fmt::format("reproduce {}: no folder of data", experiment.name),
        "say where the data lies: --data DIR; of an empty folder, it says which files go there");
  }
  if (choices.compat && choices.fixed) {
    throw Error(ErrorCode::kUsage, "reproduce: --compat and --fixed exclude each other",
                "without either, both variants are run");
  }
  if (!arguments.has("output")) choices.output = fmt::format("reproduce-{}", experiment.name);
  ReproduceOptions options{.data = choices.data,
                           .output = choices.output,
                           .seeds = choices.seeds,
                           .only = choices.only,
                           .share = choices.share,
                           .pytorch = pytorch_of(choices, context, experiment.timed)};
  if (choices.compat) options.variants = {ReproduceVariant::kCompat};
  if (choices.fixed) options.variants = {ReproduceVariant::kFixed};
  // Trials have a folder of their own, so that they take the place of no result.
  if (options.share < 1) options.output /= fmt::format("share{}", options.share);
  return options;
}

// Results beside the files of a model would be mistaken for one run.
void require_no_model(const std::filesystem::path& folder) {
  for (const char* file : {"config.json", "model.safetensors"}) {
    if (!std::filesystem::exists(folder / file)) continue;
    throw Error(ErrorCode::kOutputExists,
                fmt::format("{}: the folder holds a model ({})", folder.string(), file),
                "choose another folder with -o DIR");
  }
}

std::string list_of_experiments() {
  std::string list = "\nExperiments:\n";
  for (const Experiment& e : kExperiments) list += fmt::format("  {:<10} {}\n", e.name, e.summary);
  return list;
}

int reproduce(const Arguments& arguments) {
  begin_command(arguments);
  const std::string name = arguments.text("EXPERIMENT");
  const Experiment* const found = find_named(kExperiments, name);
  if (found == nullptr) {
    throw Error(ErrorCode::kUsage, fmt::format("reproduce: there is no experiment '{}'", name),
                fmt::format("experiments are: {}", names_in(kExperiments)));
  }
  const Experiment& experiment = *found;
  const Context context = context_of(arguments);
  const ReproduceOptions options = settle(arguments, context, experiment);
  const bool json = arguments.on("json");
  require_no_model(options.output);
  create_folders(options.output);
  const RunLock lock(options.output);
  ReproduceResults results(options.output / "results.jsonl");
  for (const std::string& line : results.notes()) warn(line);
  ReproduceObserver observer;
  observer.begins = [](const std::string& what) { note(what); };
  observer.stop = [] { return requested() == Request::kStop; };
  observer.measured = [&](const ReproduceRow& row) {
    results.add(row);
    if (json) print(json_of_row(row).line() + "\n");
  };
  listen_to_signals();
  try {
    experiment.run(context, options, observer);
  } catch (const ReproduceStopped&) {
    say("stopped; the same command goes on from here");
    return stop_status();
  }
  if (!json) print(results.table());
  return 0;
}

}  // namespace

Command reproduce_command() {
  return {.name = "reproduce",
          .summary = "Runs the published experiments again, as published and corrected.",
          .positionals = {{.name = "EXPERIMENT",
                           .help = names_in(kExperiments),
                           .choices = names_in(kExperiments, "|")}},
          .options =
              joined({said_or_not(Choices(), "Run"),
                      {threads_option(), json_option("print each number as a line of JSON", "Run")},
                      message_options()}),
          .epilog = list_of_experiments() + std::string(kReproduceExamples),
          .run = reproduce};
}

}  // namespace fovea::cli

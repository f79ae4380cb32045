// SPDX-License-Identifier: Apache-2.0
// fovea classify, fovea pairs: print the class, the labels or the number of each text, or pair.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/answer_printer.h"
#include "cli/answers.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/task_commands.h"
#include "fovea/base/clock.h"
#include "fovea/base/option.h"
#include "fovea/data/table/labelled_reader.h"
#include "fovea/task/classify/frame_weights.h"
#include "fovea/task/classify/prediction_line.h"
#include "fovea/task/classify/text_predictor.h"
#include "fovea/tensor/tensor_file.h"

namespace fovea::cli {

namespace {

constexpr index kMostSamples = 1024;  // of numbers

class TextAnswers {
 public:
  TextAnswers(const Context& context, const LoadedClassifier& model, AnswerPrinter& printer)
      : model_(model),
        printer_(printer),
        predictor_(context, model),
        answers_(
            launch_of(context),
            {.entries = TextPredictor::kTextsAtOnce, .bytes = TextPredictor::kBytesAtOnce},
            [this](const std::vector<AskedText>& texts) { return said_of(texts); },
            [this](std::string_view lines) { printer_.print(lines); }) {}

  // Answers samples of numbers. Throws NobodyReads.
  void answer(const FrameSet& set, const std::string& file) {
    for (index begin = 0; begin < set.samples(); begin += kMostSamples) {
      const index end = std::min(set.samples(), begin + kMostSamples);
      const Rows<const float> found = predictor_.predict(set, begin, end, file);
      std::string lines;
      for (index i = 0; i < found.rows; ++i) lines += printer_.lines_of({}, row_of(found, i));
      printer_.print(lines);
    }
  }

  // Throws NobodyReads.
  void add(AskedText asked) {
    const std::size_t bytes = asked.text.size() + asked.raw.row.size();
    answers_.add(std::move(asked), bytes);
  }

  // Prints a line for each text that is not answered yet. Throws NobodyReads.
  void answer() { answers_.answer(); }

  const LoadedClassifier& model() const { return model_; }
  const TextPredictor& predictor() const { return predictor_; }
  AnswerPrinter& printer() const { return printer_; }

 private:
  static Vec<const float> row_of(Rows<const float> rows, index i) {
    return {rows[i], rows.columns};
  }

  std::string said_of(const std::vector<AskedText>& texts) {
    std::vector<NamedText> named;
    for (const AskedText& asked : texts) {
      if (!asked.is_bad) named.push_back({asked.text, asked.name});
    }
    const Rows<const float> found = predictor_.predict(named);
    std::string lines;
    index next = 0;
    for (const AskedText& asked : texts) {
      lines += asked.is_bad ? printer_.lines_of(asked, std::nullopt)
                            : printer_.lines_of(asked, row_of(found, next++));
    }
    return lines;
  }

  const LoadedClassifier& model_;
  AnswerPrinter& printer_;
  TextPredictor predictor_;
  Answers<AskedText> answers_;
};

void answer_file(const std::string& file, const TableOptions& options, TextAnswers& answers) {
  require_no_npz(file);
  const auto answer = [&] { answers.answer(); };
  const std::string name = name_of_input(file);
  std::unique_ptr<LabelledReader> reader;
  try {
    reader = std::make_unique<LabelledReader>(answered_stream(file, answer), name, options);
  } catch (const Error& error) {
    // A pipe without lines has no answers; a file of that kind is a mistake.
    if (error.code() == ErrorCode::kEmptyInput && file == "-") return;
    throw;
  }
  if (const TableSummary& found = reader->summary();
      options.lines && found.format != TableFormat::kLines) {
    note(
        fmt::format("{}: read as a table like that of the training ({}); say --format lines to "
                    "read it line by line",
                    name, to_string(found.format)));
  }
  answers.printer().begin(*reader, answers.model().settings.text.table.label_separator);
  const auto read = [&] {
    for (LabelledText row; reader->next(row);) {
      answers.add({.text = std::move(row.text),
                   .name = reader->place(row),
                   .line = row.line,
                   .is_bad = reader->is_bad(),
                   .raw = options.raw_rows ? reader->take_raw(row) : RawRow()});
    }
  };
  answer_all(read, answer);
  for (const std::string& note : reader->notes()) warn(note);
  answers.printer().end(options.raw_rows ? reader->take_rest() : "");
}

// Samples of numbers. The weights come first: what cannot be written is no answer either.
void answer_frames(const Context& context, const LoadedClassifier& model, const std::string& name,
                   const std::string& weights, TextAnswers& answers) {
  const FrameFile file = read_frame_file(name, FrameLabels::kNone);
  const FrameSet set = frames_of(model, file);
  if (!weights.empty()) {
    const std::vector<NamedTensor> arrays = frame_weights(context, model, set, file.steps());
    check_tensors(weights, arrays);
    write_tensors(weights, arrays);
  }
  answers.answer(set, name);
  answers.printer().end("");
}

// Numbers come from a file that is named.
void require_file(const LoadedClassifier& model, const std::string& file) {
  if (!model.reads_frames() || file != "-") return;
  throw Error(ErrorCode::kUsage, "classify: the model reads numbers, and no file was named",
              "name an .npz file: fovea classify DIR FILE.npz");
}

// The file of the weights must have a name that says its format, and be no file yet.
std::string weights_file(const Arguments& arguments) {
  const std::string file = arguments.text("weights", "");
  if (file.empty()) return file;
  if (!file.ends_with(".npz")) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--weights: {}: expected a name that ends in .npz", file),
                "write --weights weights.npz");
  }
  if (std::filesystem::exists(std::filesystem::symlink_status(file))) {
    throw Error(ErrorCode::kOutputExists, fmt::format("--weights: {}: exists already", file),
                "choose another name, or remove it first");
  }
  return file;
}

// A tab stands between both texts of a line, unless the file is another table.
TableOptions table_of_pairs() {
  return {.pairs = true, .labels = LabelUse::kOptional, .empty_texts = EmptyTexts::kKeep};
}

TableOptions plain_lines() {
  return {.labels = LabelUse::kOptional, .lines = true, .empty_texts = EmptyTexts::kKeep};
}

// The options that say how texts, or pairs of them, are read of which no labels are read.
std::vector<Flag> table_flags(TableOptions& table) {
  return table.pairs ? flags_without(table, {"label-column", "label-separator"})
                     : flags_without(table, {"label-column", "label-separator", "second-column"});
}

// Who names a column, or a table by its file's name, does not mean plain lines.
std::vector<std::string> set_table(const Arguments& arguments, const std::string& file,
                                   TableOptions& table) {
  const std::vector<std::string> said = read_options(arguments, table_flags(table));
  for (const std::string_view name : {"format", "text_column", "header", "separator"}) {
    if (contains(said, name)) table.lines = false;
  }
  if (format_of_name(file)) table.lines = false;
  check_options(table);
  return said;
}

void require_input(std::string_view command, bool pairs, const LoadedClassifier& model) {
  if (pairs == model.reads_pairs()) return;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: the model reads {}", command,
                          pairs ? "single texts or numbers" : "pairs of texts"),
              pairs ? "fovea classify DIR FILE" : "fovea pairs DIR FILE");
}

int answer(const Arguments& arguments, TableOptions table) {
  const std::string file = arguments.text("FILE", "-"), command = arguments.command().name;
  begin_command(arguments, {file, arguments.text("output", file)}, arguments.text("DIR"));
  AnswerOutput output;
  PredictionChoice choice;
  std::vector<std::string> said = read_options(arguments, choice, output);
  std::erase(said, "json");
  for (std::string& name : set_table(arguments, file, table)) said.push_back(std::move(name));
  table.raw_rows = !output.output.empty();
  const bool stops = table.bad_rows == BadRows::kStop && contains(said, "bad_rows");
  table.keeps_bad_rows = table.raw_rows && !stops;
  check_options(choice);
  check_output(output, file, arguments.text("DIR"));
  const std::string weights = weights_file(arguments);
  if (!weights.empty()) said.emplace_back("weights");
  const Context context = model_context_of(arguments);
  const LoadedClassifier model = load_classifier(arguments.text("DIR"));
  require_input(command, table.pairs, model);
  require_effect(command, said, model);
  require_file(model, file);
  table = table_of_texts(model, std::move(table));
  tell_threads(context);
  AnswerPrinter printer({model.config().task, model.labels, model.numbers, model.thresholds()},
                        choice, output);
  TextAnswers answers(context, model, printer);
  const double began = monotonic_seconds();
  try {
    model.reads_frames() ? answer_frames(context, model, file, weights, answers)
                         : answer_file(file, table, answers);
  } catch (const NobodyReads&) {
    return 0;
  }
  const double seconds = monotonic_seconds() - began;
  const TextPredictor& predictor = answers.predictor();
  warn_of_truncated(model, predictor.truncated(), predictor.texts());
  if (const index abstained = printer.abstained(); abstained > 0) {
    note(
        fmt::format("without a label: {} of {}; theirs has a probability below "
                    "--min-probability {}",
                    abstained, predictor.texts(), choice.min_probability));
  }
  const InputWords words = words_of(model.settings.text.input);
  detail(fmt::format("{} {}s, {} {}s in {:.3f} s ({:.0f} {}s/s); the model: {:.3f} s",
                     predictor.texts(), words.entry, predictor.tokens(), words.row, seconds,
                     static_cast<double>(predictor.texts()) / seconds, words.entry,
                     predictor.model_seconds()));
  return 0;
}

int classify(const Arguments& arguments) { return answer(arguments, plain_lines()); }
int pairs(const Arguments& arguments) { return answer(arguments, table_of_pairs()); }

std::vector<OptionSpec> options_of_answers(TableOptions table, std::vector<OptionSpec> more = {}) {
  return joined({options_of(PredictionChoice(), "Output"), said_or_not(AnswerOutput(), "Output"),
                 std::move(more), options_of(table_flags(table), "Input"), computing_options(),
                 message_options()});
}

}  // namespace

Command classify_command() {
  Command command{
      .name = "classify",
      .summary = "Says what class, labels or number each line of text has.",
      .positionals = {{"DIR", "folder of the model"},
                      {"FILE",
                       "texts (-, or none: standard input), or an .npz of a model of numbers",
                       false}},
      .options = options_of_answers(
          plain_lines(), {{.name = "weights",
                           .placeholder = "FILE",
                           .help = "models of numbers: write the weights of time steps and joints "
                                   "to this .npz file",
                           .group = "Output"}}),
      .epilog = R"(Examples:
  fovea classify model texts.txt
  echo "a wonderful film" | fovea classify model
  fovea classify model texts.txt.zst --top 3 --json
  fovea classify model reviews.csv -o answers.csv            the table with columns behind its own
  fovea classify model pool.csv -o next.csv --sort uncertain what to label next, first
  fovea classify gestures test.npz --weights weights.npz

Prints for each line LABEL, a tab and its probability, as soon as the line has been read.)",
      .run = classify};
  for (OptionSpec& option : command.options) {
    if (option.name != "format") continue;
    option.help =
        "format of the texts; auto: by name or content. Not said: auto where a column is named or "
        "FILE ends in .tsv, .csv, .jsonl or the like, else lines";
  }
  return command;
}

Command pairs_command() {
  return {.name = "pairs",
          .summary = "Says what class, labels or number each pair of texts has.",
          .positionals = {{"DIR", "folder of the model"},
                          {"FILE", "pairs of texts (-, or none: standard input)", false}},
          .options = options_of_answers(table_of_pairs()),
          .epilog = R"(Examples:
  fovea pairs model pairs.tsv
  printf 'A man sleeps.\tNobody is awake.\n' | fovea pairs model
  fovea pairs model questions.jsonl --text-column question --second-column answer --json

Prints for each pair LABEL, a tab and its probability, as soon as the line has been read.)",
          .run = pairs};
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
// fovea classify, fovea pairs: print the class, the labels or the number of each text, or pair.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/answers.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/task_commands.h"
#include "fovea/base/clock.h"
#include "fovea/base/fields.h"
#include "fovea/base/file.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/data/table/labelled_reader.h"
#include "fovea/data/table/row_writer.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/text_predictor.h"
#include "fovea/task/encoder_peft.h"
#include "fovea/task/explain.h"
#include "fovea/tensor/tensor_file.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

enum class AnswerOrder { kInput, kUncertain };
constexpr EnumName<AnswerOrder> kAnswerOrderNames[] = {{AnswerOrder::kInput, "input"},
                                                       {AnswerOrder::kUncertain, "uncertain"}};
std::span<const EnumName<AnswerOrder>> enum_names(AnswerOrder) { return kAnswerOrderNames; }

struct AnswerOutput {
  AnswerOrder sort = AnswerOrder::kInput;
  std::string output;
  bool overwrite = false;
  bool json = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("output", output,
          "write into this file: a table with the columns of the answer behind its own, in which "
          "rows that cannot be read stay, too; -: to stdout",
          {.only_command_line = true, .shown = "FILE", .also = "o"});
    visit("overwrite", overwrite, "replace the file of --output if it is there already",
          {.only_command_line = true});
    visit("sort", sort,
          "uncertain: the texts of which the model is least sure first, with their line and text: "
          "label these next");
    visit("json", json, "print each answer as a JSON object on a line of its own",
          {.only_command_line = true});
  }
};

// Throws what check_page_file and check_output_is_apart throw.
void check_output(const AnswerOutput& output, const std::string& input,
                  const std::filesystem::path& model) {
  const std::string& file = output.output;
  if (file.empty() || file == "-") return;
  check_output_is_apart(file, input, model);
  if (without_compression_suffix(file) != file) {
    throw Error(ErrorCode::kUsage, fmt::format("--output: {}: the file is not packed", file),
                "leave .gz or .zst out, or say -o - and pack what is printed");
  }
  check_page_file({.option = "--output",
                   .file = file,
                   .overwrite = output.overwrite,
                   .kind = "table",
                   .ending = ".csv",
                   .mark = ""});
}

// A text of which the model was asked.
struct AskedText {
  std::string text, name;  // name: what messages call it
  index line = 0;
  bool is_bad = false;  // it could not be read, and is not answered
  RawRow raw = {};
};

constexpr double kBetweenChecks = 64 << 20;  // bytes of answers
constexpr float kLast = 2;                   // more certain than any

// Writes a classifier's answers: as lines of text or JSON, or as columns of the table that was
// asked; to stdout or into a file that appears when it is whole; in the order of the texts, or the
// least certain first.
class AnswerPrinter {
 public:
  // Opens the file. `answers` refers to the model.
  AnswerPrinter(const ClassifierAnswers& answers, const PredictionChoice& choice,
                AnswerOutput output)
      : answers_(answers), choice_(choice), output_(std::move(output)) {
    if (output_.output.empty() || output_.output == "-") return;
    file_ = std::make_unique<AtomicFile>(output_.output);
    remove_if_stopped(file_->temporary());
  }
  ~AnswerPrinter() {
    if (file_) remove_if_stopped({});
  }

  // Rows of this table follow. `between`: what stands between several labels in a field.
  void begin(const LabelledReader& reader, std::string_view between) {
    const TableSummary& table = reader.summary();
    const bool divided = table.format == TableFormat::kTsv || table.format == TableFormat::kCsv;
    const bool objects = table.format == TableFormat::kJsonLines;
    if (output_.output.empty() || output_.json || (!divided && !objects)) return;
    if (const auto named = format_of_name(output_.output); named && *named != table.format) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--output: {}: the texts are {}, and so is what is written",
                              output_.output, to_string(table.format)),
                  fmt::format("name a file that ends in .{}", to_string(table.format)));
    }
    between_ = between.empty() ? "|" : between;
    rows_ = std::make_unique<RowWriter>(
        table, objects ? prediction_keys(answers_) : prediction_columns(answers_, choice_));
    print(rows_->header(reader.raw_header()));
  }

  // The lines of an answer; "" where they are kept to be sorted. No values: it is not answered.
  std::string lines_of(const AskedText& asked, std::optional<Vec<const float>> values) {
    if (values && abstains(answers_, *values, choice_)) ++abstained_;
    std::string lines = rows_ ? row_of(asked, values) : line_of(asked, values);
    if (output_.sort == AnswerOrder::kInput) return rows_ ? asked.raw.before + lines : lines;
    keep(values ? certainty(answers_, *values, choice_) : kLast, std::move(lines));
    return {};
  }

  // Throws NobodyReads.
  void print(std::string_view lines) {
    if (file_) {
      file_->write(lines);
    } else {
      print_answers(lines);
    }
  }

  // All answers have been printed; `rest` stands behind the last row.
  void end(std::string_view rest) {
    std::stable_sort(kept_.begin(), kept_.end(),
                     [](const Kept& a, const Kept& b) { return a.certainty < b.certainty; });
    for (const Kept& one : kept_) print(one.lines);
    if (rows_ && output_.sort == AnswerOrder::kInput) print(rest);
    if (file_) file_->publish();
  }

  index abstained() const { return abstained_; }

 private:
  struct Kept {
    float certainty;
    std::string lines;
  };

  std::string line_of(const AskedText& asked, std::optional<Vec<const float>> values) const {
    const bool sorted = output_.sort != AnswerOrder::kInput;
    if (output_.json) {
      Json::Object object = values ? prediction_object(answers_, *values, choice_) : Json::Object();
      if (sorted) {
        object.emplace_back("line", asked.line);
        object.emplace_back("text", asked.text);
      }
      return Json(std::move(object)).line() + '\n';
    }
    std::string line = values ? prediction_text(answers_, *values, choice_) : "";
    if (sorted) line += fmt::format("\t{}\t{}", asked.line, escape_text(asked.text));
    return line + '\n';
  }

  std::string row_of(const AskedText& asked, std::optional<Vec<const float>> values) const {
    if (!rows_->writes_objects()) {
      return rows_->row(asked.raw.row, values
                                           ? prediction_fields(answers_, *values, choice_, between_)
                                           : std::vector<std::string>(rows_->names().size()));
    }
    std::vector<Json> members(rows_->names().size());
    if (values) {
      Json::Object object = prediction_object(answers_, *values, choice_);
      for (std::size_t n = 0; n < members.size(); ++n) members[n] = std::move(object[n].second);
    }
    return rows_->row(asked.raw.row, std::move(members), asked.name);
  }

  void keep(float certainty, std::string lines) {
    if (!lines.ends_with('\n')) lines += '\n';  // the last of its file is another's neighbour now
    const double bytes = sizeof(Kept) + static_cast<double>(lines.capacity());
    kept_.push_back({certainty, std::move(lines)});
    unchecked_ += bytes;
    if (unchecked_ < kBetweenChecks) return;
    unchecked_ = 0;
    require_memory("the answers to sort", kBetweenChecks + 2.0 * sizeof(Kept) * kept_.size(),
                   "ask of less text at once, or leave --sort out");
  }

  const ClassifierAnswers answers_;
  const PredictionChoice choice_;
  const AnswerOutput output_;
  std::unique_ptr<AtomicFile> file_;  // null: stdout
  std::unique_ptr<RowWriter> rows_;   // null: lines
  std::string between_;
  std::vector<Kept> kept_;
  double unchecked_ = 0;  // bytes of these
  index abstained_ = 0;
};

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
  EncoderAdapterOptions peft;
  read_options(arguments, peft);
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
  const LoadedClassifier model = load_classifier(
      arguments.text("DIR"), table.pairs ? InputKind::kPairs : InputKind::kText, peft.adapter);
  require_input(command, table.pairs, model);
  require_effect(command, said, model);
  require_file(model, file);
  table = table_of_texts(model, std::move(table));
  tell_threads(context);
  AnswerPrinter printer({model.config().task, model.labels, model.numbers, model.thresholds()},
                        choice, output);
  TextAnswers answers(context, model, printer);
  const double began = monotonic_seconds();
  model.reads_frames() ? answer_frames(context, model, file, weights, answers)
                       : answer_file(file, table, answers);
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
                 std::move(more), options_of(table_flags(table), "Input"),
                 options_of(EncoderAdapterOptions(), kAdaptersHeading), computing_options(),
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

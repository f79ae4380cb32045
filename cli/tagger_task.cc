// SPDX-License-Identifier: Apache-2.0
// The part of eval, explain and inspect for a tagger.
#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/aligned.h"
#include "cli/common_options.h"
#include "cli/field_options.h"
#include "cli/output.h"
#include "cli/run_options.h"
#include "cli/table_options.h"
#include "cli/task_commands.h"
#include "fovea/report/terminal.h"
#include "fovea/task/classify/vectors.h"
#include "fovea/task/report/evaluation.h"
#include "fovea/task/tag/evaluate.h"
#include "fovea/task/tag/explain.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

constexpr index kWidestType = 24;         // columns
constexpr index kTagMatrixColumns = 100;  // a wider matrix is a list
constexpr index kSentenceColumns = 2000;  // of a mistake

std::string shown_type(std::string_view type) {
  return fit_columns(escape_text(type), kWidestType);
}

index widest_of(const TaggerScore& score) {
  index widest = 4;
  for (const std::string& type : score.types) {
    widest = std::max(widest, display_width(shown_type(type)));
  }
  return widest;
}

void add_numbers(std::string& report, const TaggerScore& score) {
  report += fmt::format("{:<18} {:>10}   {:.0f} % interval\n", "", "", 100 * score.confidence);
  score.visit_numbers([&](std::string_view name, const Interval& interval) {
    if (name.starts_with("weighted_")) return;  // left to --json
    std::string spoken(name);
    std::replace(spoken.begin(), spoken.end(), '_', ' ');
    report += fmt::format("{:<18} {:>10}   {} to {}\n", spoken, four_digits(interval.value),
                          four_digits(interval.low), four_digits(interval.high));
  });
}

void add_types(std::string& report, const TaggerScore& score) {
  const index widest = widest_of(score);
  report += fmt::format("\n{}  {:>8}  {:>9}  {:>8}  {:>9}  {:>6}  {:>6}   {:.0f} % of F1\n",
                        left("type", widest), "spans", "predicted", "right", "precision", "recall",
                        "F1", 100 * score.confidence);
  for (std::size_t k = 0; k < score.types.size(); ++k) {
    const ScoresOf<Interval>& scores = score.spans.types[k];
    report += fmt::format("{}  {:>8}  {:>9}  {:>8}  {:>9.4f}  {:>6.4f}  {:>6.4f}   {} to {}\n",
                          left(shown_type(score.types[k]), widest), score.spans.support[k],
                          score.spans.predicted[k], score.spans.right[k], scores.precision.value,
                          scores.recall.value, scores.f1.value, four_digits(scores.f1.low),
                          four_digits(scores.f1.high));
  }
}

void add_confusion(std::string& report, const TaggerScore& score) {
  const ConfusionMatrix& matrix = *score.confusion;
  index cell = widest_of(score);
  for (const index count : matrix.counts) {
    cell = std::max(cell, static_cast<index>(std::to_string(count).size()));
  }
  const index widest = widest_of(score);
  std::vector<std::string> names;
  for (const std::string& type : score.types) names.push_back(shown_type(type));
  names.emplace_back("none");
  if (widest + matrix.classes * (cell + 2) > kTagMatrixColumns) {
    report += "\nspans most often confused (the whole matrix: --json)\n";
    report +=
        confused_pairs(matrix, [&](index type) { return names[static_cast<std::size_t>(type)]; });
    return;
  }
  report += "\nspans by their type (a row for each true one, a column for each predicted one)\n";
  report += std::string(static_cast<std::size_t>(widest), ' ');
  for (const std::string& name : names) report += "  " + right(name, cell);
  report += '\n';
  for (index t = 0; t < matrix.classes; ++t) {
    report += left(names[static_cast<std::size_t>(t)], widest);
    for (index p = 0; p < matrix.classes; ++p) {
      report += "  " + right(std::to_string(matrix.at(t, p)), cell);
    }
    report += '\n';
  }
}

// The words with their tags, true before predicted, where they differ.
std::string in_context(const TaggedMistake& m) {
  std::string text;
  for (std::size_t w = 0; w < m.words.size(); ++w) {
    if (w > 0) text += ' ';
    text += escape_text(m.words[w]);
    if (m.truth[w] == m.predicted[w]) continue;
    text += fmt::format(" [{}, not {}]", escape_text(m.truth[w]), escape_text(m.predicted[w]));
  }
  return fit_columns(text, kSentenceColumns);
}

void add_mistakes(std::string& report, const TaggerScore& score) {
  if (score.mistakes.empty()) return;
  report += score.task == TagTask::kSegment
                ? "\nworst mistakes (what is true, then what was found)\n"
                : "\nworst mistakes (beside a word: its tag, and the wrong one)\n";
  for (const TaggedMistake& m : score.mistakes) {
    report += fmt::format("{}:{}  wrong tags: {} of {}\n", escape_text(m.file), m.line, m.wrong,
                          m.words.size());
    if (score.task == TagTask::kSegment) {
      for (const std::vector<std::string>* tags : {&m.truth, &m.predicted}) {
        report += fmt::format("    {}\n", fit_columns(in_words(m.words, *tags), kSentenceColumns));
      }
    } else {
      report += fmt::format("    {}\n", in_context(m));
    }
  }
}

std::string report_of_column(const TaggerScore& score) {
  std::string report = fmt::format(
      "{} sentence{}, {} {}{}\n", score.sentences, score.sentences == 1 ? "" : "s", score.words,
      score.task == TagTask::kSegment ? "character" : "word", score.words == 1 ? "" : "s");
  add_numbers(report, score);
  if (score.has_spans) add_types(report, score);
  if (score.confusion) add_confusion(report, score);
  add_mistakes(report, score);
  return report;
}

// The report on several columns, each in turn, and the mean of their main numbers.
std::string report_of(std::span<const TaggerScore> columns) {
  if (columns.size() == 1) return report_of_column(columns[0]);
  std::string report;
  for (const TaggerScore& score : columns) {
    report += fmt::format("column {}: {}\n", score.column, report_of_column(score));
  }
  return report + fmt::format("mean of the columns (micro F1 of spans, or accuracy): {}\n",
                              four_digits(mean_score(columns)));
}

struct TaggerTestFiles {
  index errors = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("errors", errors, "print this many of the worst mistakes, with their texts");
  }
};

std::vector<OptionSpec> tagger_eval_options() {
  TaggerTestFiles test;
  TaggedOptions table;
  std::vector<OptionSpec> options = options_of(flags_of(fields_of(test)), "Taggers");
  for (OptionSpec& option :
       said_or_not(options_of(tagged_flags(table), "Tagged sentences, of taggers"))) {
    options.push_back(std::move(option));
  }
  return options;
}

int eval_tagger(const Arguments& arguments) {
  const std::vector<std::string> files = arguments.list("test");
  TaggerTestFiles options;
  set_from_outside(flags_of(fields_of(options)), arguments);
  const Context context = model_context_of(arguments);
  const LoadedTagger model = load_tagger(arguments.text("DIR"));
  TaggerTestOptions test{.table = model.settings.text.table, .mistakes = options.errors};
  require_column_effect("eval", set_from_outside(tagged_flags(test.table), arguments), files,
                        test.table);
  tell_threads(context);
  detail(fmt::format("model: {} parameters, vocabulary of {} {}, {} tags, {}",
                     parameter_count(model.settings.model), model.settings.model.vocabulary,
                     model.segments() ? "characters" : "words", tag_count(model.settings.model),
                     arguments.text("DIR")));
  std::vector<std::string> notes;
  const std::vector<TaggerScore> scores = evaluate_tagger(context, model, files, test, notes);
  for (const std::string& note : notes) warn(note);
  warn_of_trained_files(model.settings.text.train, files);
  print(arguments.on("json") ? evaluation_line(json_of_scores(scores), arguments.text("DIR"))
                             : report_of(scores));
  return 0;
}

Explanation explain_tagger(const Context& context, const std::filesystem::path& folder,
                           const Arguments& arguments, const ExplainRequest& request) {
  refuse(arguments, {"truncate", "sample", "joint", "time", "steps"},
         "a tagger reads whole sentences");
  if (request.options.saliency == SaliencyMethod::kNone) {
    refuse(arguments, {"token", "column"}, "without --saliency no tag is explained");
  }
  return explain_text(context, load_tagger(folder), explained_text(arguments), request.options);
}

std::string column_line(const TaggerConfigFile& file, const TagSet& tags, std::size_t column) {
  return fmt::format("{} tags, scheme {}, head {}\n", tags.size(),
                     to_string(scheme_of_column(file.settings.text, column)),
                     to_string(head_of(file.settings.model, column)));
}

// Its task and its tags.
std::string tagger_outputs(const TaggerConfigFile& file, const std::vector<TagSet>& sets) {
  const TaggerSettings& settings = file.settings;
  const std::vector<std::string> names = column_names(settings.text);
  std::string lines = fmt::format("task: {}, ", to_string(settings.text.task));
  lines += sets.size() == 1 ? column_line(file, sets[0], 0)
                            : fmt::format("{} tag columns\n", sets.size());
  if (const VectorCounts& vectors = file.outputs.vectors; vectors.words > 0) {
    lines += vectors_line(vectors, settings.text.embeddings) +
             (settings.model.freeze_embeddings ? "; the table is frozen\n" : "\n");
  }
  for (std::size_t c = 0; c < sets.size(); ++c) {
    if (sets.size() > 1) {
      lines += fmt::format("column {}: {}", names[c], column_line(file, sets[c], c));
    }
    for (const std::string& tag : sets[c].names()) {
      lines += fmt::format("  tag {}\n", escape_text(tag));
    }
  }
  return lines;
}

// "tags"; of several columns "columns", each with its name, scheme, head and tags.
void add_tags(Json::Object& object, const TaggerConfigFile& file, const std::vector<TagSet>& sets) {
  const auto list = [](const TagSet& tags) {
    return Json::Array(tags.names().begin(), tags.names().end());
  };
  if (sets.size() == 1) {
    object.emplace_back("tags", list(sets[0]));
    return;
  }
  const std::vector<std::string> names = column_names(file.settings.text);
  Json::Array columns;
  for (std::size_t c = 0; c < sets.size(); ++c) {
    Json::Object column;
    column.emplace_back("column", names[c]);
    column.emplace_back("scheme", to_string(scheme_of_column(file.settings.text, c)));
    column.emplace_back("head", to_string(head_of(file.settings.model, c)));
    column.emplace_back("tags", list(sets[c]));
    columns.emplace_back(std::move(column));
  }
  object.emplace_back("columns", std::move(columns));
}

ModelDescription describe_tagger(const ConfigFiles& configs) {
  TaggerConfigFile file = configs.began(tagger_config_from_text);
  const std::vector<TagSet> sets = tag_sets(file, (configs.folder / "config.json").string());
  ModelDescription description =
      described(file.settings, configs.now(tagger_config_from_text).settings);
  description.targets = file.settings.text.task == TagTask::kSegment ? "characters" : "words";
  description.outputs = tagger_outputs(file, sets);
  add_tags(description.output_members, file, sets);
  description.output_members.emplace_back("embeddings", json_of(file.outputs.vectors));
  return description;
}

}  // namespace

const TaskCommands kTaggerCommands = {.kind = ModelKind::kTagger,
                                      .called = "a tagger",
                                      .eval_options = tagger_eval_options,
                                      .eval = eval_tagger,
                                      .explain = explain_tagger,
                                      .describe = describe_tagger};

}  // namespace fovea::cli

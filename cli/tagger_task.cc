// SPDX-License-Identifier: Apache-2.0
// The part of eval, explain and inspect for a tagger.
#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/score_text.h"
#include "cli/task_commands.h"
#include "fovea/base/option.h"
#include "fovea/report/terminal.h"
#include "fovea/task/embeddings.h"
#include "fovea/task/encoder_peft.h"
#include "fovea/task/explain.h"
#include "fovea/task/report/evaluation.h"
#include "fovea/task/tag/evaluate.h"
#include "fovea/task/tag/tagger.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

constexpr index kSentenceColumns = 2000;  // of a mistake

// The types of spans, and "none".
std::vector<std::string> type_names(const TaggerScore& score) {
  std::vector<std::string> names = shown_names(score.types);
  names.emplace_back("none");
  return names;
}

void add_numbers(std::string& report, const TaggerScore& score) {
  report += numbers_head(score.confidence);
  score.visit_numbers([&](std::string_view name, const Interval& interval) {
    if (!name.starts_with("weighted_")) report += number_line(name, interval);  // left to --json
  });
}

void add_types(std::string& report, const TaggerScore& score) {
  const index widest = widest_of(type_names(score));
  report += fmt::format("\n{}  {:>8}  {:>9}  {:>8}  {:>9}  {:>6}  {:>6}   {:.0f} % of F1\n",
                        left("type", widest), "spans", "predicted", "right", "precision", "recall",
                        "F1", 100 * score.confidence);
  for (std::size_t k = 0; k < score.types.size(); ++k) {
    const ScoresOf<Interval>& scores = score.spans.types[k];
    report += fmt::format("{}  {:>8}  {:>9}  {:>8}  {:>9.4f}  {:>6.4f}  {:>6.4f}   {} to {}\n",
                          left(shown_name(score.types[k]), widest), score.spans.support[k],
                          score.spans.predicted[k], score.spans.right[k], scores.precision.value,
                          scores.recall.value, scores.f1.value, four_digits(scores.f1.low),
                          four_digits(scores.f1.high));
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
  if (score.confusion) {
    report += confusion_text(
        *score.confusion, type_names(score),
        {"spans by their type (a row for each true one, a column for each predicted one)",
         "spans most often confused (the whole matrix: --json)"});
  }
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
  return joined({options_of(TaggerTestFiles(), "Taggers"),
                 said_or_not(TaggedOptions(), "Tagged sentences, of taggers"),
                 options_of(EncoderAdapterOptions(), kAdaptersHeading)});
}

int eval_tagger(const Arguments& arguments) {
  const std::vector<std::string> files = arguments.list("test");
  TaggerTestFiles options;
  EncoderAdapterOptions peft;
  read_options(arguments, options, peft);
  const Context context = model_context_of(arguments);
  const LoadedTagger model = load_tagger(arguments.text("MODEL"), peft.adapter);
  TaggerTestOptions test{.table = model.settings.text.table, .mistakes = options.errors};
  require_column_effect("eval", read_options(arguments, test.table), files, test.table);
  tell_threads(context);
  detail(fmt::format("model: {} parameters, vocabulary of {} {}, {} tags, {}", model.parameters(),
                     model.settings.model.vocabulary,
                     model.reads_pieces() ? "tokens"
                     : model.segments()   ? "characters"
                                          : "words",
                     tag_count(model.settings.model), arguments.text("MODEL")));
  std::vector<std::string> notes;
  const std::vector<TaggerScore> scores = evaluate_tagger(context, model, files, test, notes);
  for (const std::string& note : notes) warn(note);
  warn_of_trained_files(model.settings.text.train, files);
  print(arguments.on("json")
            ? evaluation_line(json_of_scores(scores), arguments.text("MODEL"), peft.adapter)
            : report_of(scores));
  return 0;
}

Explanation explain_tagger(const Context& context, const std::filesystem::path& folder,
                           const Arguments& arguments, const ExplainRequest& request) {
  constexpr std::string_view kWhole = ": a tagger reads whole sentences";
  refuse_options(arguments, {"truncate"}, kWhole);
  refuse_options(arguments, kOfNumbers, kWhole);
  if (request.options.saliency == SaliencyMethod::kNone) {
    refuse_options(arguments, {"token", "column"}, ": without --saliency no tag is explained");
  }
  return explain_text(context, load_tagger(folder, request.adapters), explained_text(arguments),
                      request.options);
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
  if (file.settings.model.has_base()) {
    std::erase_if(description.settings,
                  [](const SettingLine& line) { return is_idle_with_tagger_base(line.name); });
  }
  description.targets = file.settings.text.task == TagTask::kSegment ? "characters" : "words";
  description.outputs = tagger_outputs(file, sets);
  add_tags(description.output_members, file, sets);
  description.output_members.emplace_back("embeddings", json_of(file.outputs.vectors));
  return description;
}

}  // namespace

void require_column_effect(std::string_view command, std::span<const std::string> said,
                           std::span<const std::string> files, const TaggedOptions& table) {
  const auto has = [&](TaggedFormat format) {
    return std::any_of(files.begin(), files.end(),
                       [&](const std::string& file) { return format_of(file, table) == format; });
  };
  for (const std::string& name : said) {
    if (name == "format") continue;
    const bool is_conllu = name == "column";
    if (has(is_conllu ? TaggedFormat::kConllu : TaggedFormat::kConll)) continue;
    const std::string_view format = is_conllu ? "conllu" : "conll";
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: {} has no effect: no file is of the format {}", command,
                            option_name(name), format),
                fmt::format("leave it out, or say --format {} if the file is", format));
  }
}

const TaskCommands kTaggerCommands = {.kind = ModelKind::kTagger,
                                      .called = "a tagger",
                                      .eval_options = tagger_eval_options,
                                      .eval = eval_tagger,
                                      .explain = explain_tagger,
                                      .describe = describe_tagger};

}  // namespace fovea::cli

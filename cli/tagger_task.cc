// SPDX-License-Identifier: Apache-2.0
// What eval, explain and inspect do with a tagger.
#include <fmt/core.h>

#include <string>
#include <utility>

#include "cli/field_options.h"
#include "cli/output.h"
#include "cli/run_options.h"
#include "cli/tag_options.h"
#include "cli/tagger_report.h"
#include "cli/task_commands.h"
#include "cli/threads.h"
#include "fovea/task/classify/vectors.h"
#include "fovea/task/report/evaluation.h"
#include "fovea/task/tag/evaluate.h"
#include "fovea/task/tag/explain.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

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

// SPDX-License-Identifier: Apache-2.0
#include "cli/eval_tagger.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "cli/field_options.h"
#include "cli/output.h"
#include "cli/run_options.h"
#include "cli/tag_options.h"
#include "cli/tagger_report.h"
#include "cli/threads.h"
#include "fovea/task/report/evaluation.h"
#include "fovea/task/tag/evaluate.h"

namespace fovea::cli {

namespace {

struct TaggerTestFiles {
  index errors = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("errors", errors, "print this many of the worst mistakes, with their texts");
  }
};

}  // namespace

std::vector<OptionSpec> tagger_test_options() {
  TaggerTestFiles test;
  TaggedOptions table;
  std::vector<OptionSpec> options = options_of(flags_of(fields_of(test)), "Taggers");
  for (OptionSpec& option :
       said_or_not(options_of(tagged_flags(table), "Tagged sentences, of taggers"))) {
    options.push_back(std::move(option));
  }
  return options;
}

int eval_tagger(const Arguments& arguments, const std::vector<std::string>& files) {
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

}  // namespace fovea::cli

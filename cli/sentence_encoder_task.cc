// SPDX-License-Identifier: Apache-2.0
// The part of eval, explain and inspect for a sentence encoder.
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/score_text.h"
#include "cli/task_commands.h"
#include "fovea/task/embed/evaluate.h"
#include "fovea/task/embed/sentence_encoder.h"
#include "fovea/task/encoder_peft.h"
#include "fovea/task/report/evaluation.h"

namespace fovea::cli {

namespace {

std::string report_of(const EmbedScore& score) {
  std::string report = score.ranking ? fmt::format("{} pair{}, {} candidates\n", score.pairs,
                                                   score.pairs == 1 ? "" : "s", score.candidates)
                                     : fmt::format("{} pair{} with scores\n", score.pairs,
                                                   score.pairs == 1 ? "" : "s");
  report += numbers_head(score.confidence);
  score.visit_numbers([&](std::string_view name, const Interval& interval) {
    report += number_line(name, interval);
  });
  return report;
}

std::vector<OptionSpec> embed_eval_options() {
  return joined({said_or_not(GroupTableOptions(), "Pairs of texts, of sentence encoders"),
                 options_of(EncoderAdapterOptions(), kAdaptersHeading)});
}

int eval_sentence_encoder(const Arguments& arguments) {
  const std::string folder = arguments.text("MODEL");
  const std::vector<std::string> files = arguments.list("test");
  EncoderAdapterOptions peft;
  read_options(arguments, peft);
  const Context context = model_context_of(arguments);
  const SentenceModel model = load_embedder(folder, peft.adapter);
  // The columns are those of the training, unless the options say others.
  GroupTableOptions table;
  std::vector<std::string> trained;
  if (is_sentence_encoder(folder)) {
    const EmbedTextOptions text =
        embed_settings_from_text(read_model_file(folder, "config.json"), folder).text;
    table = text.table;
    trained = text.train;
  }
  read_options(arguments, table);
  tell_threads(context);
  std::vector<std::string> notes;
  const EmbedScore score = evaluate_sentence_encoder(context, model, files, table, {}, notes);
  for (const std::string& note : notes) warn(note);
  warn_of_trained_files(trained, files);
  print(arguments.on("json") ? evaluation_line(json_of(score), folder, peft.adapter)
                             : report_of(score));
  return 0;
}

Explanation explain_sentence_encoder(const Context&, const std::filesystem::path& folder,
                                     const Arguments&, const ExplainRequest&) {
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{}: a sentence encoder gives vectors, and no answers to explain",
                          folder.string()),
              "make vectors with it: fovea embed, or fovea similar");
}

ModelDescription describe_sentence_encoder(const ConfigFiles& configs) {
  const EmbedSettings began = configs.began(embed_settings_from_text);
  ModelDescription description = described(began, configs.now(embed_settings_from_text));
  description.targets = "pairs";
  description.outputs =
      fmt::format("vectors of {} numbers, pooling {}{}\n", began.model.width,
                  to_string(began.model.pooling), began.model.normalizes ? ", of length 1" : "");
  return description;
}

}  // namespace

const TaskCommands kSentenceEncoderCommands = {.kind = ModelKind::kSentenceEncoder,
                                               .called = "a sentence encoder",
                                               .eval_options = embed_eval_options,
                                               .eval = eval_sentence_encoder,
                                               .explain = explain_sentence_encoder,
                                               .describe = describe_sentence_encoder};

}  // namespace fovea::cli

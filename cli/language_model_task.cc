// SPDX-License-Identifier: Apache-2.0
// The part of eval, explain and inspect for a language model.
#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/task_commands.h"
#include "fovea/task/explain.h"
#include "fovea/task/language_model/evaluate.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/task/report/evaluation.h"

namespace fovea::cli {

namespace {

std::string line_of(const TextScore& score) {
  std::string line =
      fmt::format("loss {:.4f} nats a token, perplexity {:.2f}, ", score.loss, score.perplexity);
  if (std::isfinite(score.bits_per_byte))
    line += fmt::format("{:.4f} bits a byte, ", score.bits_per_byte);
  line += fmt::format("{} tokens", score.tokens);
  if (score.unknown > 0) {
    line +=
        fmt::format(", {:.1f} % of them unknown words",
                    100 * static_cast<double>(score.unknown) / static_cast<double>(score.tokens));
  }
  return line + "\n";
}

void warn_of_what_was_left_out(const TextScore& score) {
  if (score.single_lines > 0) {
    warn(fmt::format("lines of a single token, which predict nothing: {}; they are left out",
                     score.single_lines));
  }
  if (score.truncated_lines > 0) {
    warn(
        fmt::format("lines longer than the model's --max-length: {}; they are truncated, as in "
                    "training",
                    score.truncated_lines));
  }
}

std::vector<OptionSpec> language_model_eval_options() {
  return joined({options_of(TextEvaluation(), "Language models"),
                 options_of(PretrainedOptions(), "Language models")});
}

int eval_language_model(const Arguments& arguments) {
  PretrainedOptions pretrained{.weights = WeightTypes::kAsTheyLie};
  TextEvaluation evaluation;
  read_options(arguments, pretrained, evaluation);
  const std::vector<std::string> files = arguments.list("test");
  const Context context = model_context_of(arguments);
  const LoadedLanguageModel loaded = load_language_model(arguments.text("MODEL"), pretrained);
  tell_threads(context);
  detail(fmt::format("model: {} parameters, vocabulary of {} tokens, {}",
                     parameter_count(loaded.settings.model), loaded.settings.model.vocabulary,
                     arguments.text("MODEL")));
  const TextScore score = evaluate_text(context, loaded, files, evaluation);
  warn_of_trained_files(loaded.settings.text.train, files);
  warn_of_what_was_left_out(score);
  print(arguments.on("json")
            ? evaluation_line(json_of(score), arguments.text("MODEL"), pretrained.adapter)
            : line_of(score));
  return 0;
}

Explanation explain_language_model(const Context& context, const std::filesystem::path& folder,
                                   const Arguments& arguments, const ExplainRequest& request) {
  refuse_options(arguments, {"token", "column"},
                 ": only taggers have tags of each token, and translators a translation");
  refuse_options(arguments, kOfNumbers, ": the model reads texts, not numbers");
  return explain_text(context, load_language_model(folder, {.adapter = request.adapters}),
                      explained_text(arguments), request.options);
}

ModelDescription describe_language_model(const ConfigFiles& configs) {
  ModelDescription description =
      described(configs.began(settings_from_text), configs.now(settings_from_text));
  description.targets = "target tokens";
  return description;
}

}  // namespace

const TaskCommands kLanguageModelCommands = {.kind = ModelKind::kLanguageModel,
                                             .called = "a language model",
                                             .eval_options = language_model_eval_options,
                                             .eval = eval_language_model,
                                             .explain = explain_language_model,
                                             .describe = describe_language_model};

}  // namespace fovea::cli

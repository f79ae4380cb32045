// SPDX-License-Identifier: Apache-2.0
// The part of eval, explain and inspect for a language model.
#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/score_text.h"
#include "cli/task_commands.h"
#include "fovea/task/explain.h"
#include "fovea/task/language_model/evaluate.h"
#include "fovea/task/language_model/evaluate_preferences.h"
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
                 options_of(PreferenceEvaluation(), "Language models"),
                 options_of(PretrainedOptions(), "Language models")});
}

std::string report_of(const PreferenceScore& score) {
  std::string report = fmt::format("{} pair{}, rewards of beta {}, held to {}\n", score.pairs,
                                   score.pairs == 1 ? "" : "s", score.beta, score.reference);
  report += numbers_head(score.confidence);
  score.visit_numbers([&](std::string_view name, const Interval& interval) {
    report += number_line(name, interval);
  });
  return report;
}

void warn_of_what_was_left_out(const PreferenceScore& score) {
  const index all = score.pairs + score.left_out + score.equal;
  if (score.left_out > 0) {
    warn(fmt::format("pairs that are longer than the model reads: {} of {}; they are left out",
                     score.left_out, all));
  }
  if (score.equal > 0) {
    warn(fmt::format("pairs of equal answers: {} of {}; they are left out", score.equal, all));
  }
}

int eval_preferences(const Arguments& arguments, const PretrainedOptions& pretrained,
                     const PreferenceEvaluation& options, const std::vector<std::string>& said) {
  refuse_options(arguments, {"stride"}, " with --preferences");
  const std::string model = arguments.text("MODEL");
  const std::vector<std::string> files = arguments.list("test");
  const Context context = model_context_of(arguments);
  tell_threads(context);
  const PreferenceScore score =
      evaluate_preferences(context, model, pretrained, files, options, said);
  if (!is_pretrained(model)) warn_of_trained_files(load_settings(model).text.train, files);
  warn_of_what_was_left_out(score);
  print(arguments.on("json") ? evaluation_line(json_of(score), model, pretrained.adapter)
                             : report_of(score));
  return 0;
}

int eval_language_model(const Arguments& arguments) {
  PretrainedOptions pretrained{.weights = WeightTypes::kAsTheyLie};
  TextEvaluation evaluation;
  PreferenceEvaluation preference;
  const std::vector<std::string> said = read_options(arguments, pretrained, evaluation, preference);
  if (measures_preferences(preference, said, arguments.text("MODEL"))) {
    return eval_preferences(arguments, pretrained, preference, said);
  }
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

// SPDX-License-Identifier: Apache-2.0
// fovea eval: how well a language model predicts a text, a classifier its labels, or a tagger its
// tags; how good files of translations are.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/eval_classifier.h"
#include "cli/eval_tagger.h"
#include "cli/eval_translations.h"
#include "cli/eval_translator.h"
#include "cli/field_options.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "cli/run_options.h"
#include "cli/threads.h"
#include "fovea/base/error.h"
#include "fovea/config/json.h"
#include "fovea/task/language_model/evaluate.h"
#include "fovea/task/model_kind.h"
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

// The options of classifiers and of taggers, each once.
std::vector<OptionSpec> test_options() {
  std::vector<OptionSpec> options = classifier_test_options();
  for (OptionSpec& option : tagger_test_options()) {
    const auto same = std::find_if(options.begin(), options.end(), [&](const OptionSpec& other) {
      return other.name == option.name;
    });
    if (same == options.end()) {
      options.push_back(std::move(option));
    } else if (same->placeholder != option.placeholder) {
      same->placeholder += "; " + option.placeholder;
    }
  }
  return options;
}

// Throws if one of these options was given.
void require_effect(const std::vector<OptionSpec>& options, const Arguments& arguments,
                    std::string_view model) {
  for (const OptionSpec& option : options) {
    if (!arguments.has(option.name)) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("eval: --{} has no effect on {}", option.name, model), "leave it out");
  }
}

// The first options that are not among the second.
std::vector<OptionSpec> without(std::vector<OptionSpec> options,
                                const std::vector<OptionSpec>& others) {
  std::erase_if(options, [&](const OptionSpec& option) {
    return std::any_of(others.begin(), others.end(),
                       [&](const OptionSpec& other) { return other.name == option.name; });
  });
  return options;
}

// How translations are scored.
std::vector<OptionSpec> metric_options() {
  std::vector<OptionSpec> options = translation_test_options();
  std::erase_if(options, [](const OptionSpec& option) { return option.name == "reference"; });
  return options;
}

int eval_language_model(const Arguments& arguments, const std::vector<std::string>& files) {
  require_effect(test_options(), arguments, "a language model");
  const Context context = model_context_of(arguments);
  const LoadedLanguageModel loaded = load_language_model(arguments.text("DIR"));
  tell_threads(context);
  detail(fmt::format("model: {} parameters, vocabulary of {} tokens, {}",
                     parameter_count(loaded.settings.model), loaded.settings.model.vocabulary,
                     arguments.text("DIR")));
  const TextScore score = evaluate_text(context, loaded, files);
  warn_of_trained_files(loaded.settings.text.train, files);
  warn_of_what_was_left_out(score);
  print(arguments.on("json") ? evaluation_line(json_of(score), arguments.text("DIR"))
                             : line_of(score));
  return 0;
}

int eval_files_of_translations(const Arguments& arguments) {
  check_log_is_apart(translation_files(arguments), "");
  if (arguments.has("DIR")) {
    throw Error(ErrorCode::kUsage, "eval: --hypothesis scores files; a model has no part in it",
                "leave out the folder of the model, or give it --test");
  }
  if (arguments.has("test")) {
    throw Error(ErrorCode::kUsage, "eval: --test has no effect on translations", "leave it out");
  }
  require_effect(test_options(), arguments, "translations");
  require_effect(translator_test_options(), arguments, "files of translations");
  warn_of_unread_variables(eval_spec().options);
  return eval_translations(arguments);
}

}  // namespace

CommandSpec eval_spec() {
  CommandSpec spec{
      .name = "eval",
      .summary =
          "Measures how well a model predicts a text, or labels, or tags; scores translations.",
      .positionals = {{"DIR", "folder of the model; none with --hypothesis", false}},
      .options = {{"test", OptionKind::kList, "FILE",
                   "text files, joined in this order; of a classifier, labelled texts; of a "
                   "tagger, tagged sentences",
                   "Options", ""},
                  precision_option(),
                  threads_option(),
                  {"json", OptionKind::kFlag, "", "print the result as one JSON object", "Options",
                   ""}},
      .epilog = R"(Examples:
  fovea eval model --test test.txt
  fovea eval classifier --test test.tsv --errors 10 --plots plots
  fovea eval tagger --test test.conll --errors 10
  fovea eval translator --source test.en --reference test.de
  fovea eval translator --source test.en --reference test.de --against other
  fovea eval --hypothesis translated.en --reference test.en
  fovea eval --hypothesis b.zh --reference test.zh --tokenize zh --against a.zh)"};
  for (OptionSpec& option : test_options()) spec.options.push_back(std::move(option));
  for (OptionSpec& option : translator_test_options()) spec.options.push_back(std::move(option));
  for (OptionSpec& option : translation_test_options()) spec.options.push_back(std::move(option));
  for (OptionSpec& option : message_options()) spec.options.push_back(std::move(option));
  return spec;
}

int eval(const Arguments& arguments) {
  set_messages_from(arguments);
  if (asks_for_translations(arguments)) return eval_files_of_translations(arguments);
  if (!arguments.has("DIR")) {
    throw Error(ErrorCode::kUsage, "eval: neither a model nor translations to score",
                "fovea eval DIR --test FILE, or fovea eval --hypothesis FILE --reference FILE");
  }
  const std::vector<std::string> files = arguments.list("test");
  const std::string folder = arguments.text("DIR");
  check_log_is_apart(files, folder);
  if (files.empty() && !arguments.has("source") && !arguments.has("reference")) {
    throw Error(ErrorCode::kUsage, "eval: no text to predict",
                "name a file: --test FILE, of a translator --source FILE --reference FILE");
  }
  const ModelKind kind = kind_of_model(folder);
  if (kind == ModelKind::kTranslator) {
    require_effect(test_options(), arguments, "a translator");
    if (arguments.on("score")) {
      require_effect(metric_options(), arguments, "--score");
    }
    warn_of_unread_variables(eval_spec().options);
    return eval_translator(arguments);
  }
  require_effect(translator_test_options(), arguments, "any model but a translator");
  require_effect(translation_test_options(), arguments, "any model but a translator");
  switch (kind) {
    case ModelKind::kLanguageModel:
      return eval_language_model(arguments, files);
    case ModelKind::kTagger:
      require_effect(without(classifier_test_options(), tagger_test_options()), arguments,
                     "a tagger");
      warn_of_unread_variables(eval_spec().options);
      return eval_tagger(arguments, files);
    case ModelKind::kClassifier:
    case ModelKind::kTranslator:
      break;
  }
  require_effect(without(tagger_test_options(), classifier_test_options()), arguments,
                 "a classifier");
  warn_of_unread_variables(eval_spec().options);
  return eval_classifier(arguments, files);
}

}  // namespace fovea::cli

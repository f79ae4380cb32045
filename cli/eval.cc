// SPDX-License-Identifier: Apache-2.0
// fovea eval: how well a language model predicts a text, a classifier its labels, or a tagger its
// tags; how good files of translations are.
#include "cli/eval.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/aligned.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/field_options.h"
#include "cli/output.h"
#include "cli/run_options.h"
#include "cli/task_commands.h"
#include "fovea/base/error.h"

namespace fovea::cli {

namespace {

constexpr std::string_view kGroup = "Translations";
constexpr index kName = 8, kNumber = 9;  // columns

std::string two_digits(double number) { return fmt::format("{:.2f}", number); }

void add_sentences(std::string& report, const TranslationScore& score) {
  report += right("line", kNumber);
  for (const MetricScore& metric : score.metrics) report += right(metric.name, kNumber);
  report += '\n';
  for (index n = 0; n < score.sentences; ++n) {
    report += right(fmt::format("{}", n + 1), kNumber);
    for (const MetricScore& metric : score.metrics) {
      report += right(two_digits(metric.sentences[static_cast<std::size_t>(n)]), kNumber);
    }
    report += '\n';
  }
  report += '\n';
}

void add_comparison(std::string& report, const TranslationScore& score) {
  report += fmt::format("\n{}{}{}{}   95 % interval           p   ({} resamples, seed {})\n",
                        left("", kName), right("against", kNumber), right("score", kNumber),
                        right("change", kNumber), score.resamples, score.seed);
  for (const MetricScore& metric : score.metrics) {
    if (!metric.paired) continue;
    const PairedBootstrap& paired = *metric.paired;
    const Interval& change = paired.difference;
    report += fmt::format("{}{}{}{}   {}  {:.4f}\n", left(metric.name, kName),
                          right(two_digits(paired.baseline.score), kNumber),
                          right(two_digits(paired.system.score), kNumber),
                          right(fmt::format("{:+.2f}", change.value), kNumber),
                          left(fmt::format("{:+.2f} to {:+.2f}", change.low, change.high), 16),
                          paired.p_value);
  }
}

std::vector<OptionSpec> options_of(const TaskCommands& task) {
  return task.eval_options == nullptr ? std::vector<OptionSpec>() : task.eval_options();
}

bool has(const std::vector<OptionSpec>& options, std::string_view name) {
  return std::any_of(options.begin(), options.end(),
                     [&](const OptionSpec& option) { return option.name == name; });
}

// The options of all kinds of models, each once.
std::vector<OptionSpec> task_options() {
  std::vector<OptionSpec> options;
  for (const TaskCommands& task : task_commands()) {
    for (OptionSpec& option : options_of(task)) {
      const auto same = std::find_if(options.begin(), options.end(), [&](const OptionSpec& other) {
        return other.name == option.name;
      });
      if (same == options.end()) {
        options.push_back(std::move(option));
      } else if (same->placeholder != option.placeholder) {
        same->placeholder += "; " + option.placeholder;
      }
    }
  }
  return options;
}

// Throws if an option of some models was given that is none of these.
void require_effect(const std::vector<OptionSpec>& own, const Arguments& arguments,
                    std::string_view what) {
  for (const OptionSpec& option : task_options()) {
    if (has(own, option.name) || !arguments.has(option.name)) continue;
    throw Error(ErrorCode::kUsage, fmt::format("eval: --{} has no effect on {}", option.name, what),
                "leave it out");
  }
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
  require_effect(translation_test_options(), arguments, "files of translations");
  warn_of_unread_variables(eval_spec().options);
  return eval_translations(arguments);
}

}  // namespace

std::vector<OptionSpec> translation_test_options() {
  TranslationScoreOptions options;
  std::vector<OptionSpec> specs = {
      {.name = "hypothesis",
       .kind = OptionKind::kValue,
       .placeholder = "FILE",
       .help = "without a model: translations to score, a sentence a line",
       .place = HelpPlace::kData},
      {.name = "reference",
       .kind = OptionKind::kList,
       .placeholder = "FILE",
       .help = "right translations of --source or --hypothesis, line by line; several files: with "
               "--hypothesis each line may be any of theirs, with --source they follow each other",
       .place = HelpPlace::kData},
      {"against", OptionKind::kValue, "FILE | DIR",
       "translations of another system, or beside a translator the folder of another one, to "
       "compare with by a paired bootstrap",
       std::string(kGroup), ""}};
  for (OptionSpec& option : options_of(flags_of(fields_of(options)), kGroup)) {
    specs.push_back(std::move(option));
  }
  specs.push_back({"sentence-scores", OptionKind::kFlag, "", "also the scores of each line",
                   std::string(kGroup), ""});
  return specs;
}

bool asks_for_translations(const Arguments& arguments) {
  return arguments.has("hypothesis") ||
         (!arguments.has("DIR") && (arguments.has("reference") || arguments.has("against")));
}

std::vector<std::string> translation_files(const Arguments& arguments) {
  std::vector<std::string> files = arguments.list("reference");
  for (const char* const option : {"hypothesis", "against"}) {
    if (arguments.has(option)) files.push_back(arguments.text(option));
  }
  return files;
}

TranslationScoreOptions score_options(const Arguments& arguments, TranslationScoreOptions options) {
  set_from_outside(flags_of(fields_of(options)), arguments);
  return options;
}

SentenceScores sentence_scores_of(const Arguments& arguments) {
  return arguments.on("sentence-scores") ? SentenceScores::kYes : SentenceScores::kNo;
}

int eval_translations(const Arguments& arguments) {
  for (const char* const option : {"hypothesis", "reference"}) {
    if (arguments.has(option)) continue;
    throw Error(ErrorCode::kUsage, fmt::format("eval: --{} is missing", option),
                "give both: fovea eval --hypothesis FILE --reference FILE");
  }
  const TranslationScoreOptions options = score_options(arguments);
  const TranslationScore score = score_translation_files(
      context_of(arguments),
      {arguments.text("hypothesis"), arguments.list("reference"), arguments.text("against")},
      options);
  warn_of_case(score);
  const SentenceScores sentences = sentence_scores_of(arguments);
  print(arguments.on("json") ? json_of_score(score, sentences).line() + "\n"
                             : report_of(score, sentences));
  return 0;
}

void warn_of_case(const TranslationScore& score) {
  if (!score.lacks_capitals) return;
  warn(
      "the references have capital letters, the translations have none: BLEU and chrF count words "
      "that begin with one as wrong; to compare lower case, say --lowercase");
}

std::string report_of(const TranslationScore& score, SentenceScores sentences) {
  std::string report;
  if (sentences == SentenceScores::kYes) add_sentences(report, score);
  report += fmt::format("{} sentence{}, {} reference{}\n", score.sentences,
                        score.sentences == 1 ? "" : "s", score.references,
                        score.references == 1 ? "" : "s");
  bool compared = false;
  for (const MetricScore& metric : score.metrics) {
    report += fmt::format("{}{}   {}\n", left(metric.name, kName),
                          right(two_digits(metric.score), kNumber), metric.signature);
    if (!metric.details.empty()) {
      report += fmt::format("{}   {}\n", left("", kName + kNumber), metric.details);
    }
    compared |= metric.paired.has_value();
  }
  if (compared) add_comparison(report, score);
  return report;
}

CommandSpec eval_spec() {
  CommandSpec spec{
      .name = "eval",
      .summary =
          "Measures how well a model predicts a text, or labels, or tags; scores translations.",
      .positionals =
          {{"DIR",
            "folder of the model, also of Hugging Face, or a GGUF file; none with --hypothesis",
            false}},
      .options = {{.name = "test",
                   .kind = OptionKind::kList,
                   .placeholder = "FILE",
                   .help = "text files, joined in this order; of a classifier, labelled texts (or "
                           "pairs of them); of a tagger, tagged sentences",
                   .place = HelpPlace::kData},
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
  for (OptionSpec& option : task_options()) spec.options.push_back(std::move(option));
  spec.options.push_back(precision_option());
  spec.options.push_back(threads_option());
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
  const TaskCommands& task = commands_of_model(folder);
  require_effect(options_of(task), arguments, task.called);
  warn_of_unread_variables(eval_spec().options);
  return task.eval(arguments);
}

}  // namespace fovea::cli

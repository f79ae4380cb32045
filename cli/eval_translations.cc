// SPDX-License-Identifier: Apache-2.0
#include "cli/eval_translations.h"

#include <fmt/core.h>

#include <utility>

#include "cli/aligned.h"
#include "cli/field_options.h"
#include "cli/output.h"
#include "cli/threads.h"
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

}  // namespace fovea::cli

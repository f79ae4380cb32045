// SPDX-License-Identifier: Apache-2.0
// The part of eval, explain and inspect for a translator; eval of files of translations.
#include <fmt/core.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/score_text.h"
#include "cli/task_commands.h"
#include "fovea/base/error.h"
#include "fovea/config/json.h"
#include "fovea/task/explain.h"
#include "fovea/task/report/evaluation.h"
#include "fovea/task/score_json.h"
#include "fovea/task/translate/evaluate.h"
#include "fovea/task/translate/line_translator.h"
#include "fovea/task/translate/translator.h"

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

void warn_of_case(const TranslationScore& score) {
  if (!score.lacks_capitals) return;
  warn(
      "the references have capital letters, the translations have none: BLEU and chrF count words "
      "that begin with one as wrong; to compare lower case, say --lowercase");
}

std::vector<OptionSpec> translation_options() {
  return joined(
      {{{.name = "hypothesis",
         .placeholder = "FILE",
         .help = "without a model: translations to score, a sentence a line",
         .place = HelpPlace::kData},
        {.name = "reference",
         .kind = OptionKind::kList,
         .placeholder = "FILE",
         .help = "right translations of --source or --hypothesis, line by line; several files: "
                 "with --hypothesis each line may be any of theirs, with --source they follow "
                 "each other",
         .place = HelpPlace::kData},
        {.name = "against",
         .placeholder = "FILE | DIR",
         .help = "translations of another system, or beside a translator the folder of another "
                 "one, to compare with by a paired bootstrap",
         .group = std::string(kGroup)}},
       options_of(TranslationScoreOptions(), kGroup),
       {flag("sentence-scores", "also the scores of each line", std::string(kGroup))}});
}

SentenceScores sentence_scores_of(const Arguments& arguments) {
  return arguments.on("sentence-scores") ? SentenceScores::kYes : SentenceScores::kNo;
}

// A line for each pair; of one that the model cannot read an empty line, or an object without
// tokens.
void print_scores(const TranslatorScore& score, bool json) {
  std::string lines;
  for (const PairScore& pair : score.scores) {
    if (json) {
      lines +=
          Json(Json::Object{{"log_probability", pair.log_probability}, {"tokens", pair.tokens}})
              .line() +
          "\n";
    } else {
      lines +=
          pair.tokens == 0 ? "\n" : fmt::format("{:.6f}\t{}\n", pair.log_probability, pair.tokens);
    }
  }
  print(lines);
}

std::string line_of(const TranslatorScore& score) {
  std::string line =
      fmt::format("loss {:.4f} nats a token, perplexity {:.2f}, {} tokens of {} pair{}", score.loss,
                  score.perplexity, score.tokens, score.pairs, score.pairs == 1 ? "" : "s");
  if (score.unknown > 0) {
    line +=
        fmt::format(", {:.1f} % of the tokens unknown words",
                    100 * static_cast<double>(score.unknown) / static_cast<double>(score.tokens));
  }
  return line + "\n";
}

PairFiles files_of(const Arguments& arguments) {
  return {.source = arguments.list("source"),
          .target = arguments.list("reference"),
          .tables = arguments.list("test")};
}

// How the sources are translated to be scored.
struct SearchFields {
  index beam = SearchOptions{}.beam;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("beam", beam, "of a translator: hypotheses that are kept; 1: always the likeliest token");
  }
};

TranslationOptions search_of(const Arguments& arguments, const SearchOptions& usual) {
  SearchFields fields{.beam = usual.beam};
  read_options(arguments, fields);
  TranslationOptions options;
  options.search = usual;
  options.search.beam = fields.beam;
  options.long_lines = LongLines::kSplit;
  check_options(options);
  return options;
}

std::vector<std::string> translate_sources(const Context& context, const LoadedTranslator& loaded,
                                           const SentencePairs& pairs, const Arguments& arguments) {
  const TranslationOptions options = search_of(arguments, loaded.search);
  LineTranslator translator(context, *loaded.model, loaded.vocabulary, options, "sources");
  return *translate_all(translator, pairs.source, [] { return false; });
}

// The translations of another model, or of a file.
std::vector<std::string> baseline_of(const Context& context, const std::string& path,
                                     const SentencePairs& pairs, const Arguments& arguments) {
  if (!std::filesystem::is_directory(path)) {
    return read_lines_beside(path, "the sources", pairs.source.size());
  }
  return translate_sources(context, load_translator(path), pairs, arguments);
}

TranslationScore score_sources(const Context& context, const LoadedTranslator& loaded,
                               const SentencePairs& pairs, const TranslationScoreOptions& options,
                               const Arguments& arguments) {
  std::vector<std::string> baseline;
  const bool compares = arguments.has("against");
  if (compares) baseline = baseline_of(context, arguments.text("against"), pairs, arguments);
  const std::vector<std::string> made = translate_sources(context, loaded, pairs, arguments);
  return score_translations(context, {made, {pairs.target}}, options,
                            compares ? &baseline : nullptr);
}

// chrF of the sources as if they were translations. Where these are no better, something is wrong.
double score_of_copies(const Context& context, const SentencePairs& pairs,
                       const TranslationScore& score, bool lowercase) {
  const double copied = score_translations(context, {pairs.source, {pairs.target}},
                                           {.metric = "chrf", .lowercase = lowercase})
                            .metrics[0]
                            .score;
  for (const MetricScore& metric : score.metrics) {
    if (metric.name != "chrF2" || metric.score > copied) continue;
    warn(
        fmt::format("chrF of the translations is {:.2f}, of the sources themselves {:.2f}: are "
                    "--source and --reference exchanged?",
                    metric.score, copied));
  }
  return copied;
}

void print_all(TranslatorScore score, const TranslationScore& translations, double copied,
               const Arguments& arguments) {
  const SentenceScores sentences = sentence_scores_of(arguments);
  if (!arguments.on("json")) {
    print(line_of(score) + report_of(translations, sentences) +
          fmt::format("\nchrF of the sources themselves {:.2f}\n", copied));
    return;
  }
  Json::Object object;
  add(object, "task", "translate");
  const Json predicted = json_of(score);
  for (const auto& [name, value] : predicted.object()) add(object, name, value);
  add_scores(object, translations, sentences);
  add(object, "copy_chrf", copied);
  print(evaluation_line(Json(std::move(object)), arguments.text("MODEL")));
}

void warn_of_what_was_left_out(const TranslatorScore& score) {
  if (score.empty > 0) {
    warn(fmt::format("pairs with an empty side: {}; the loss leaves them out", score.empty));
  }
  if (score.too_long > 0) {
    warn(fmt::format("pairs longer than the model's --block: {}; the loss leaves them out",
                     score.too_long));
  }
}

std::vector<OptionSpec> translator_eval_options() {
  return joined(
      {{{.name = "source",
         .kind = OptionKind::kList,
         .placeholder = "FILE",
         .help = "of a translator: sentences to translate, one a line",
         .place = HelpPlace::kData},
        flag("score",
             "of a translator: print how probable the model finds each translation, a line each",
             std::string(kGroup))},
       options_of(SearchFields(), kGroup),
       translation_options()});
}

// With --score nothing is translated, and no metric computed.
void refuse_metrics(const Arguments& arguments) {
  for (const OptionSpec& option : translation_options()) {
    if (option.name != "reference") refuse_options(arguments, {option.name}, " on --score");
  }
}

int eval_translator(const Arguments& arguments) {
  if (arguments.on("score")) refuse_metrics(arguments);
  const Context context = model_context_of(arguments);
  SentencePairs pairs;
  const PairFiles files = files_of(arguments);
  read_pairs(pairs, files, EmptyPairs::kKeep);
  const LoadedTranslator loaded = load_translator(arguments.text("MODEL"));
  const TranslatorScore score = evaluate_translator(context, loaded, pairs);
  warn_of_trained_files(loaded.settings.text.source, files.source);
  warn_of_trained_files(loaded.settings.text.train, files.tables);
  warn_of_what_was_left_out(score);
  if (arguments.on("score")) {
    print_scores(score, arguments.on("json"));
    return 0;
  }
  // The case of letters counts as it did when the model was trained.
  TranslationScoreOptions options{.lowercase = loaded.vocabulary.target().data().lower};
  read_options(arguments, options);
  const TranslationScore translations = score_sources(context, loaded, pairs, options, arguments);
  warn_of_case(translations);
  print_all(score, translations, score_of_copies(context, pairs, translations, options.lowercase),
            arguments);
  return 0;
}

Explanation explain_translator(const Context& context, const std::filesystem::path& folder,
                               const Arguments& arguments, const ExplainRequest& request) {
  constexpr std::string_view kWhole = ": a translator reads whole sentences";
  refuse_options(arguments, {"column"}, ": only taggers have tag columns");
  refuse_options(arguments, {"adapter"}, ": no adapters of translators are read");
  refuse_options(arguments, {"truncate"}, kWhole);
  refuse_options(arguments, kOfNumbers, kWhole);
  if (request.options.saliency == SaliencyMethod::kNone) {
    refuse_options(arguments, {"token"}, ": without --saliency no token is explained");
  }
  return explain_text(context, load_translator(folder), explained_text(arguments), request.options);
}

ModelDescription describe_translator(const ConfigFiles& configs) {
  ModelDescription description = described(configs.began(translator_settings_from_text),
                                           configs.now(translator_settings_from_text));
  description.targets = "target tokens";
  return description;
}

}  // namespace

bool asks_for_translations(const Arguments& arguments) {
  return arguments.has("hypothesis") ||
         (!arguments.has("MODEL") && (arguments.has("reference") || arguments.has("against")));
}

int eval_translations(const Arguments& arguments) {
  if (arguments.has("MODEL")) {
    throw Error(ErrorCode::kUsage, "eval: --hypothesis scores files; a model has no part in it",
                "leave out the folder of the model, or give it --test");
  }
  refuse_options(arguments, {"test"}, " on translations");
  require_own_options(translation_options(), arguments, "files of translations");
  for (const char* const option : {"hypothesis", "reference"}) {
    if (arguments.has(option)) continue;
    throw Error(ErrorCode::kUsage, fmt::format("eval: --{} is missing", option),
                "give both: fovea eval --hypothesis FILE --reference FILE");
  }
  TranslationScoreOptions options;
  read_options(arguments, options);
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

const TaskCommands kTranslatorCommands = {.kind = ModelKind::kTranslator,
                                          .called = "a translator",
                                          .eval_options = translator_eval_options,
                                          .eval = eval_translator,
                                          .explain = explain_translator,
                                          .describe = describe_translator};

}  // namespace fovea::cli

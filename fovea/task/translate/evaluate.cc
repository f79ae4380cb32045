// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/evaluate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/config/field.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/kernel/cross_entropy.h"
#include "fovea/model/pass_plan.h"
#include "fovea/task/score_json.h"
#include "fovea/task/translate/run.h"

namespace fovea {

namespace {

std::vector<const TranslationMetricKind*> kinds_of(std::string_view names) {
  std::vector<const TranslationMetricKind*> kinds;
  for (bool more = true; more;) {
    const std::size_t comma = names.find(',');
    more = comma != names.npos;
    const TranslationMetricKind& kind =
        choose(translation_metrics(), names.substr(0, comma), "metric");
    if (std::find(kinds.begin(), kinds.end(), &kind) != kinds.end()) {
      fail_option("metric", kind.name, "named once");
    }
    kinds.push_back(&kind);
    if (more) names.remove_prefix(comma + 1);
  }
  return kinds;
}

Json json_of(const ResampledScore& score) {
  Json::Object object;
  add(object, "score", score.score);
  add(object, "mean", score.mean);
  add(object, "half_width", score.half_width);
  return object;
}

Json json_of(const MetricScore& metric, SentenceScores sentences) {
  Json::Object object;
  add(object, "name", metric.name);
  add(object, "score", metric.score);
  add(object, "signature", metric.signature);
  if (!metric.details.empty()) add(object, "details", metric.details);
  if (sentences == SentenceScores::kYes) {
    add(object, "sentences", Json::Array(metric.sentences.begin(), metric.sentences.end()));
  }
  if (metric.paired) {
    add(object, "baseline", json_of(metric.paired->baseline));
    add(object, "system", json_of(metric.paired->system));
    add(object, "difference", json_of_interval(metric.paired->difference));
    add(object, "p_value", metric.paired->p_value);
  }
  return object;
}

constexpr index kBatchTokens = 512;  // so that their logits take little memory

void require_room(const Context& context, const TranslatorConfig& config,
                  const PairEvaluation& set) {
  const TranslationLoad load{{set.largest_source(), TapeMode::kInference},
                             {set.largest_target(), TapeMode::kInference}};
  const double logits =
      4 * static_cast<double>(set.largest_target()) * static_cast<double>(config.target_vocabulary);
  require_memory("the evaluation", logits + plan_pass(context, config, load).bytes(),
                 "free some memory, or use a machine that has more");
}

}  // namespace

TranslationScore score_translations(const Context& ctx, const Translations& translations,
                                    const TranslationScoreOptions& options,
                                    const std::vector<std::string>* baseline) {
  check_ranges(options);
  TranslationScore result{.sentences = static_cast<index>(translations.hypotheses.size()),
                          .references = static_cast<index>(translations.references.size()),
                          .resamples = options.resamples,
                          .seed = options.seed,
                          .lacks_capitals = !options.lowercase && lack_capitals(translations)};
  for (const TranslationMetricKind* kind : kinds_of(options.metric)) {
    const auto metric =
        kind->make({options.tokenize, options.lowercase ? LetterCase::kLower : LetterCase::kKept});
    const TranslationCounts counts(ctx, *metric, translations);
    const std::vector<double> sums = counts.sums();
    MetricScore score{.name = std::string(metric->name()),
                      .signature = metric->signature(result.references),
                      .score = metric->score(sums),
                      .details = metric->details(sums),
                      .sentences = sentence_scores(*metric, counts)};
    if (baseline != nullptr) {
      const TranslationCounts others(ctx, *metric, {*baseline, translations.references});
      score.paired = paired_bootstrap(ctx, *metric, others, counts,
                                      {.resamples = options.resamples, .seed = options.seed});
    }
    result.metrics.push_back(std::move(score));
  }
  return result;
}

std::vector<std::string> read_lines_beside(const std::string& file, const std::string& other,
                                           std::size_t lines) {
  std::vector<std::string> read = read_text_lines(file);
  if (read.size() != lines) {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{} has {} lines, but {} has {}", name_of_input(file), read.size(),
                            name_of_input(other), lines),
                "line n of each file must be of the same sentence");
  }
  return read;
}

TranslationScore score_translation_files(const Context& ctx, const TranslationFiles& files,
                                         const TranslationScoreOptions& options) {
  kinds_of(options.metric);  // before anything is read
  const std::vector<std::string> hypotheses = read_text_lines(files.hypothesis);
  const auto read = [&](const std::string& file) {
    return read_lines_beside(file, files.hypothesis, hypotheses.size());
  };
  std::vector<std::vector<std::string>> references;
  for (const std::string& file : files.references) references.push_back(read(file));
  std::vector<std::string> baseline;
  if (!files.baseline.empty()) baseline = read(files.baseline);
  Translations translations{.hypotheses = hypotheses};
  translations.references.assign(references.begin(), references.end());
  return score_translations(ctx, translations, options,
                            files.baseline.empty() ? nullptr : &baseline);
}

Json json_of_score(const TranslationScore& score, SentenceScores sentences) {
  Json::Object object;
  add(object, "task", "translate");
  add_scores(object, score, sentences);
  return object;
}

void add_scores(Json::Object& object, const TranslationScore& score, SentenceScores sentences) {
  add(object, "sentences", score.sentences);
  add(object, "references", score.references);
  Json::Array metrics;
  bool compared = false;
  for (const MetricScore& metric : score.metrics) {
    metrics.push_back(json_of(metric, sentences));
    compared |= metric.paired.has_value();
  }
  if (compared) {
    add(object, "resamples", score.resamples);
    add(object, "seed", score.seed);
  }
  add(object, "metrics", std::move(metrics));
}

std::vector<double> pair_losses(Tape& tape, const Translator& model, const PairBatch& batch) {
  tape.reset(TapeMode::kInference);
  const TranslationBatch view = view_of(batch);
  const Rows<const float> logits = model.logits(tape, view).value<float>();
  std::vector<float> losses(batch.targets.size());
  cross_entropy<float>(tape.context(), logits, {.ids = view.targets}, 1,
                       {losses.data(), static_cast<index>(losses.size())}, {});
  std::vector<double> sums(batch.samples.size());
  for (std::size_t s = 0; s < sums.size(); ++s) {
    for (auto n = batch.target_offsets[s]; n < batch.target_offsets[s + 1]; ++n) {
      sums[s] += double{losses[static_cast<std::size_t>(n)]};
    }
  }
  return sums;
}

TranslatorScore evaluate_translator(const Context& context, const LoadedTranslator& loaded,
                                    const SentencePairs& pairs) {
  const TranslatorConfig& config = loaded.settings.model;
  TranslatorScore score;
  score.scores.resize(static_cast<std::size_t>(pairs.size()));
  PairTokens tokens;
  std::vector<std::size_t> lines;  // of the pairs that count
  for (std::size_t i = 0; i < score.scores.size(); ++i) {
    const PairFit fit =
        append(tokens, loaded.vocabulary.both(), pairs.source[i], pairs.target[i], config.block);
    score.empty += fit == PairFit::kEmpty;
    score.too_long += fit == PairFit::kTooLong;
    if (fit == PairFit::kTaken) lines.push_back(i);
  }
  score.pairs = tokens.size();
  if (score.pairs == 0) {
    throw Error(ErrorCode::kInputTooSmall, "no pair of sentences that the model can read",
                "give sentences that are not empty, and no longer than the model's --block");
  }
  score.tokens = tokens.target_count();
  const token unknown = loaded.vocabulary.target().special().unknown;
  score.unknown = std::count(tokens.target.begin(), tokens.target.end(), unknown);
  const PairEvaluation set(std::move(tokens), kBatchTokens);
  require_room(context, config, set);
  Tape tape(context, TapeMode::kInference);
  double sum = 0;
  for (index b = 0; b < set.size(); ++b) {
    const PairBatch batch = set[b];
    const std::vector<double> losses = pair_losses(tape, *loaded.model, batch);
    for (std::size_t s = 0; s < losses.size(); ++s) {
      score.scores[lines[static_cast<std::size_t>(batch.samples[s])]] = {
          -losses[s], batch.target_offsets[s + 1] - batch.target_offsets[s]};
      sum += losses[s];
    }
  }
  score.loss = sum / static_cast<double>(score.tokens);
  score.perplexity = std::exp(score.loss);
  if (std::isfinite(score.loss)) return score;
  throw Error(ErrorCode::kModelDamaged, "the loss of the translations is not finite",
              "train the model again, or evaluate an earlier checkpoint");
}

}  // namespace fovea

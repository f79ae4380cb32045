// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/translation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fovea/base/check.h"
#include "fovea/metrics/ngram_metrics.h"
#include "fovea/metrics/ter.h"
#include "fovea/text/python_text.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr TranslationMetricKind kMetrics[] = {
    {"bleu", "shared n-grams of words",
     [](const MetricOptions& o) { return bleu({.tokens = o.tokens, .letters = o.letters}); }},
    {"chrf", "shared n-grams of characters",
     [](const MetricOptions& o) { return chrf({.letters = o.letters}); }},
    {"chrf++", "those of characters, and of up to two words",
     [](const MetricOptions& o) { return chrf({.word_order = 2, .letters = o.letters}); }},
    {"ter", "edits and shifts for each word of the reference",
     [](const MetricOptions&) { return ter(); }}};

bool has_capital(std::string_view text) {
  while (!text.empty()) {
    const TakenCharacter c = take_character(text);
    if (lower_character(c.value) != c.value) return true;
  }
  return false;
}

ResampledScore spread_of(double score, Vec<const double> resamples) {
  std::vector<double> sorted(resamples.begin(), resamples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t cut = sorted.size() / 40;  // 2.5 % on each side
  const double sum = std::accumulate(resamples.begin(), resamples.end(), 0.0);
  return {score, sum / static_cast<double>(sorted.size()),
          (sorted[sorted.size() - 1 - cut] - sorted[cut]) / 2};
}

// sacreBLEU's, which is that of Moses.
double p_value(Vec<const double> differences, double real) {
  const auto resamples = static_cast<double>(differences.size);
  double mean = 0;
  for (const double difference : differences) mean += std::abs(difference) / resamples;
  const auto above = std::count_if(differences.begin(), differences.end(), [&](double difference) {
    return std::abs(difference) - mean > std::abs(real);
  });
  return static_cast<double>(above + 1) / (resamples + 1);
}

}  // namespace

std::string TranslationMetric::signature(index references) const {
  return fmt::format("nrefs:{}|{}|version:{}", references, settings(), kSacreBleuVersion);
}

std::span<const TranslationMetricKind> translation_metrics() { return kMetrics; }

bool lack_capitals(const Translations& translations) {
  const auto has = [](std::span<const std::string> texts) {
    return std::any_of(texts.begin(), texts.end(), has_capital);
  };
  return std::any_of(translations.references.begin(), translations.references.end(), has) &&
         !has(translations.hypotheses);
}

std::string detail::in_case(std::string_view text, LetterCase letters) {
  return letters == LetterCase::kLower ? python_lower(text) : std::string(text);
}

std::string_view detail::case_in_signature(LetterCase letters) {
  return letters == LetterCase::kLower ? "lc" : "mixed";
}

TranslationCounts::TranslationCounts(const Context& ctx, const TranslationMetric& metric,
                                     const Translations& translations)
    : sentences_(static_cast<index>(translations.hypotheses.size())),
      columns_(metric.counts()),
      numbers_(static_cast<std::size_t>(
          checked_product(sentences_, columns_, "translations: sentences times numbers"))) {
  check(sentences_ > 0, Hint{"give at least one sentence"}, "{}: there are no sentences",
        metric.name());
  check(!translations.references.empty(), "{}: there are no references", metric.name());
  for (const auto& reference : translations.references) {
    check(reference.size() == translations.hypotheses.size(),
          Hint{"each hypothesis needs its reference: a line each"},
          "{}: {} hypotheses, {} references", metric.name(), sentences_, reference.size());
  }
  constexpr double kWork = 1e5;  // some n-grams of some hundred characters
  ctx.for_ranges(sentences_, kWork, [&](index begin, index end) {
    std::vector<std::string_view> references(translations.references.size());
    for (index n = begin; n < end; ++n) {
      const auto at = static_cast<std::size_t>(n);
      for (std::size_t r = 0; r < references.size(); ++r) {
        references[r] = translations.references[r][at];
        require_utf8(references[r], fmt::format("reference {}", n + 1));
      }
      const std::string_view hypothesis = translations.hypotheses[at];
      require_utf8(hypothesis, fmt::format("hypothesis {}", n + 1));
      metric.count(hypothesis, references, {numbers_.data() + n * columns_, columns_});
    }
  });
}

std::vector<double> TranslationCounts::sums(Vec<const index> times) const {
  std::vector<double> sums(static_cast<std::size_t>(columns_));
  for (index n = 0; n < sentences_; ++n) {
    if (times[n] == 0) continue;
    const Vec<const double> numbers = of(n);
    for (index k = 0; k < columns_; ++k) {
      sums[static_cast<std::size_t>(k)] += static_cast<double>(times[n]) * numbers[k];
    }
  }
  return sums;
}

std::vector<double> TranslationCounts::sums() const {
  const std::vector<index> once(static_cast<std::size_t>(sentences_), 1);
  return sums(once);
}

double corpus_score(const TranslationMetric& metric, const TranslationCounts& counts) {
  const std::vector<double> sums = counts.sums();
  return metric.score(sums);
}

std::vector<double> sentence_scores(const TranslationMetric& metric,
                                    const TranslationCounts& counts) {
  std::vector<double> scores;
  for (index n = 0; n < counts.sentences(); ++n) {
    scores.push_back(metric.sentence_score(counts.of(n)));
  }
  return scores;
}

PairedBootstrap paired_bootstrap(const Context& ctx, const TranslationMetric& metric,
                                 const TranslationCounts& baseline, const TranslationCounts& system,
                                 const BootstrapOptions& options) {
  check(baseline.sentences() == system.sentences(),
        Hint{"compare two translations of the same sentences"},
        "paired bootstrap: {} sentences of the baseline, {} of the system", baseline.sentences(),
        system.sentences());
  const std::vector<index> cells(static_cast<std::size_t>(baseline.sentences()), 1);
  const auto numbers = [&](Vec<const index> times, Vec<double> out) {
    const std::vector<double> first = baseline.sums(times), second = system.sums(times);
    out[0] = metric.score(first);
    out[1] = metric.score(second);
    out[2] = out[1] - out[0];
  };
  const index R = options.resamples;
  const std::vector<double> values = resampled_numbers(ctx, cells, 3, numbers, options);
  std::vector<double> whole(3);
  numbers(cells, whole);
  const Vec<const double> differences(values.data() + 2 * R, R);
  return {.baseline = spread_of(whole[0], {values.data(), R}),
          .system = spread_of(whole[1], {values.data() + R, R}),
          .difference = interval_of(whole[2], differences, options.confidence),
          .p_value = p_value(differences, whole[2])};
}

}  // namespace fovea

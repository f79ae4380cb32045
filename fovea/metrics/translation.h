// SPDX-License-Identifier: Apache-2.0
// Scores of translations that are functions of counts, summed over sentences: BLEU, chrF, TER. They
// are those of sacreBLEU (Post 2018, "A call for clarity in reporting BLEU scores").
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/fields.h"
#include "fovea/base/view.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/text/words.h"

namespace fovea {

/// The version whose numbers these are, as its signatures say it.
inline constexpr std::string_view kSacreBleuVersion = "2.6.0";

// How sacreBLEU cuts a sentence into the words that BLEU counts (Post 2018, "A call for clarity in
// reporting BLEU scores").

enum class BleuTokens {
  k13a,   ///< as mteval-v13a.pl, the script of WMT: ASCII punctuation stands alone
  kZh,    ///< the same, and each Chinese character stands alone
  kChar,  ///< characters
  kNone,  ///< words between white space
};
inline constexpr EnumName<BleuTokens> kBleuTokensNames[] = {{BleuTokens::k13a, "13a"},
                                                            {BleuTokens::kZh, "zh"},
                                                            {BleuTokens::kChar, "char"},
                                                            {BleuTokens::kNone, "none"}};
inline std::span<const EnumName<BleuTokens>> enum_names(BleuTokens) { return kBleuTokensNames; }

/// The tokens of valid UTF-8 with white space between them.
std::string bleu_tokens(std::string_view sentence, BleuTokens kind);

/// Immutable; any number of threads may use one at once.
class TranslationMetric {
 public:
  virtual ~TranslationMetric() = default;

  /// As sacreBLEU calls it: "BLEU", "chrF2", "chrF2++", "TER".
  virtual std::string_view name() const = 0;
  /// Whether a larger score is a better one.
  virtual bool larger_is_better() const { return true; }
  /// The settings as sacreBLEU prints them, so that a score can be reproduced:
  /// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0".
  std::string signature(index references) const;

  /// K: how many numbers count() writes.
  virtual index counts() const = 0;
  /// Writes the K numbers of one sentence, valid UTF-8 like its references; at least one of these.
  virtual void count(std::string_view hypothesis, std::span<const std::string_view> references,
                     Vec<double> numbers) const = 0;
  /// The score, mostly in [0, 100], of the sums over sentences, [K].
  virtual double score(Vec<const double> sums) const = 0;
  /// The score of a single sentence, of its numbers.
  virtual double sentence_score(Vec<const double> numbers) const { return score(numbers); }
  /// The numbers behind the score, as sacreBLEU prints them: precisions and lengths of BLEU;
  /// otherwise empty.
  virtual std::string details(Vec<const double>) const { return {}; }

 private:
  /// The text between the number of references and the version.
  virtual std::string settings() const = 0;
};

/// The settings of all metrics. TER always compares in lower case.
struct MetricOptions {
  BleuTokens tokens = BleuTokens::k13a;
  LetterCase letters = LetterCase::kKept;  ///< kLower: by python_lower, as sacreBLEU's lowercase
};

/// A way to make a metric, by the name that options use.
struct TranslationMetricKind {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<TranslationMetric> (*make)(const MetricOptions& options);
};

/// "bleu", "chrf", "chrf++", "ter".
std::span<const TranslationMetricKind> translation_metrics();

/// Hypotheses, and one or more references for each.
struct Translations {
  std::span<const std::string> hypotheses = {};               ///< [N]
  std::vector<std::span<const std::string>> references = {};  ///< each [N]
};

/// Whether references have capital letters and no hypothesis has one: then a metric that does not
/// compare lower case counts what is right as wrong.
bool lack_capitals(const Translations& translations);

namespace detail {
std::string in_case(std::string_view text, LetterCase letters);
std::string_view case_in_signature(LetterCase letters);
}  // namespace detail

/// The numbers that a metric counted in each sentence: all that its scores need.
class TranslationCounts {
 public:
  /// Throws Error(kShape) without sentences or references, or if their numbers differ;
  /// Error(kEncoding) for text that is not UTF-8.
  TranslationCounts(const Context& ctx, const TranslationMetric& metric,
                    const Translations& translations);

  index sentences() const { return sentences_; }
  /// [K]: of sentence n.
  Vec<const double> of(index n) const { return {numbers_.data() + n * columns_, columns_}; }
  /// [K]: the sums over sentences, in which sentence n occurs times[n] times.
  std::vector<double> sums(Vec<const index> times) const;
  std::vector<double> sums() const;

 private:
  index sentences_, columns_;
  std::vector<double> numbers_;  // [N, K]
};

/// The score of the whole corpus, and of each sentence, [N].
double corpus_score(const TranslationMetric& metric, const TranslationCounts& counts);
std::vector<double> sentence_scores(const TranslationMetric& metric,
                                    const TranslationCounts& counts);

/// A score, and its spread over resamples: sacreBLEU's mean and half of the width of the middle 95
/// %.
struct ResampledScore {
  double score = 0, mean = 0, half_width = 0;
};

/// Two systems on the same sentences (Koehn 2004, "Statistical significance tests for machine
/// translation evaluation"; sacreBLEU's --paired-bs).
struct PairedBootstrap {
  ResampledScore baseline, system;
  Interval difference;  ///< system - baseline
  /// How probable such a difference is by chance: (1 + resamples in which |difference| lies above
  /// its mean by more than |the real difference|) / (1 + resamples).
  double p_value = 1;
};

/// Both counts are those of `metric`. Resamples are drawn by our own random numbers, so means and
/// p-value differ from sacreBLEU's by chance, as with another seed. Throws Error(kShape) if the
/// numbers of sentences differ, and as bootstrap does.
PairedBootstrap paired_bootstrap(const Context& ctx, const TranslationMetric& metric,
                                 const TranslationCounts& baseline, const TranslationCounts& system,
                                 const BootstrapOptions& options = {});

}  // namespace fovea

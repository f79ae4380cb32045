// SPDX-License-Identifier: Apache-2.0
// How good translations are, against references, and against those of another system.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/metrics/translation.h"

namespace fovea {

/// The scores to compute.
struct TranslationScoreOptions {
  std::string metric = "bleu,chrf,ter";
  BleuTokens tokenize = BleuTokens::k13a;
  bool lowercase = false;
  index resamples = 1000;
  std::uint64_t seed = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("metric", metric, "scores to print, with commas: bleu, chrf, chrf++, ter");
    visit("tokenize", tokenize, "how BLEU cuts sentences into words; zh for Chinese");
    visit("lowercase", lowercase,
          "compare lower case; of a translator that was trained with --lower the default");
    visit("resamples", resamples, "bootstrap resamples of the comparison with --against",
          {.range = ValueRange::from(1)});
    visit("seed", seed, "seed of --resamples");
  }
};

/// One metric.
struct MetricScore {
  std::string name;       ///< "BLEU"
  std::string signature;  ///< sacreBLEU's
  double score = 0;
  std::string details;                         ///< of BLEU: precisions and lengths
  std::vector<double> sentences = {};          ///< the scores of the sentences
  std::optional<PairedBootstrap> paired = {};  ///< with a baseline
};

struct TranslationScore {
  index sentences = 0, references = 0, resamples = 0;
  std::uint64_t seed = 0;
  std::vector<MetricScore> metrics = {};
  bool lacks_capitals = false;  ///< lack_capitals(), where lower case was not compared
};

/// Scores the translations; with a baseline, [N], compares them with it. Throws kOptionValue for
/// what is no metric or is named twice, and as TranslationCounts and bootstrap do.
TranslationScore score_translations(const Context& ctx, const Translations& translations,
                                    const TranslationScoreOptions& options,
                                    const std::vector<std::string>* baseline = nullptr);

/// The lines of a file, line n of which belongs to line n of another. Throws as read_text_lines
/// does, and kInputFormat, which names both files, if these do not have as many lines.
std::vector<std::string> read_lines_beside(const std::string& file, const std::string& other,
                                           std::size_t lines);

/// Scores translations in files, a sentence a line. `baseline` may be empty. Throws also as
/// read_lines_beside() does.
struct TranslationFiles {
  std::string hypothesis;
  std::vector<std::string> references;
  std::string baseline;
};
TranslationScore score_translation_files(const Context& ctx, const TranslationFiles& files,
                                         const TranslationScoreOptions& options);

/// docs/commands/eval.md says what is in it.
enum class SentenceScores { kNo, kYes };
Json json_of_score(const TranslationScore& score, SentenceScores sentences);
/// Its members behind "task", for an object that has more.
void add_scores(Json::Object& object, const TranslationScore& score, SentenceScores sentences);

}  // namespace fovea

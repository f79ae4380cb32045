// SPDX-License-Identifier: Apache-2.0
// How good translations are, against references and against those of another system; and how well a
// translator predicts given ones.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/config/json.h"
#include "fovea/data/parallel/pair_reader.h"
#include "fovea/metrics/translation.h"
#include "fovea/task/translate/translator.h"

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

/// How probable the model finds one translation.
struct PairScore {
  double log_probability = 0;  ///< in nats, of its tokens and its end
  index tokens = 0;            ///< with the end; 0: the pair could not be read
};

struct TranslatorScore {
  double loss = 0;        ///< nats per token of the target
  double perplexity = 0;  ///< exp(loss)
  index tokens = 0;       ///< how many were predicted
  index unknown = 0;      ///< how many of these stand for unknown words
  index pairs = 0;
  index empty = 0;     ///< pairs with an empty side, which count for nothing
  index too_long = 0;  ///< pairs longer than the model reads, which count for nothing
  std::vector<PairScore> scores = {};  ///< [pairs read, those that count for nothing included]

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("loss", loss, "mean negative log-likelihood, in nats per token of the target");
    visit("perplexity", perplexity, "exp(loss)");
    visit("tokens", tokens, "how many were predicted");
    visit("unknown", unknown, "how many of these stand for unknown words");
    visit("pairs", pairs, "how many pairs count");
    visit("empty", empty, "pairs with an empty side, which count for nothing");
    visit("too_long", too_long, "pairs longer than the model reads, which count for nothing");
  }
};

/// The negative log-likelihood of the target of each pair of the batch, in nats, computed on
/// `tape`.
std::vector<double> pair_losses(Tape& tape, const Translator& model, const PairBatch& batch);

/// Forced decoding: the translations are given. Throws kInputTooSmall if no pair counts,
/// kModelDamaged if the loss is not finite, kOutOfMemory.
TranslatorScore evaluate_translator(const Context& context, const LoadedTranslator& loaded,
                                    const SentencePairs& pairs);

}  // namespace fovea

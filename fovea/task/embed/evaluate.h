// SPDX-License-Identifier: Apache-2.0
// How good the vectors of a sentence encoder are: whether texts that belong together are near each
// other, or cosines have the order of scores.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/config/json.h"
#include "fovea/data/text_groups.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/ranking.h"
#include "fovea/task/embed/settings.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

struct SentenceModel;

/// The "task" of an evaluation.
inline constexpr std::string_view kSimilarityTask = "similarity", kRetrievalTask = "retrieval";

/// The cosine of the two texts of each group: vectors [texts, C], of which the first `columns`
/// count (0: all).
std::vector<double> cosines_of(const TextGroups& groups, Rows<const float> vectors,
                               index columns = 0);

/// The rank, from 1, of the text that belongs to each anchor among all second and further texts of
/// all groups, each counted once, by their cosines. Those that are equal to the anchor, or belong
/// to an equal one, are left out; one that is as near as the text itself counts as nearer.
std::vector<index> ranks_of(const Context& context, const TextGroups& groups,
                            Rows<const float> vectors);

struct EmbedScore {
  index pairs = 0;
  index candidates = 0;  ///< among which each text is found
  double confidence = 0.95;
  std::optional<RankingIntervals> ranking = {};
  /// Of texts with scores. NaN if all scores, or all cosines, are equal.
  std::optional<Interval> spearman = {}, pearson = {};

  /// Calls f(name, interval) for each number.
  template <class F>
  void visit_numbers(F&& f) const {
    if (spearman) f(std::string_view("spearman"), *spearman);
    if (pearson) f(std::string_view("pearson"), *pearson);
    if (!ranking) return;
    RankingIntervals::visit_numbers(
        *ranking, [&](const NumberName& name, const Interval& n) { f(name.name, n); });
  }
};

/// One object: "task", "pairs", "candidates" (of a retrieval), "confidence", and each number as
/// {"value", "low", "high"}.
Json json_of(const EmbedScore& score);

/// The scores of the texts of all files. Appends what a user may want to know to `notes`. Throws as
/// read_groups() does, kModelDamaged.
EmbedScore evaluate_sentence_encoder(const Context& context, const SentenceModel& model,
                                     std::span<const std::string> files,
                                     const GroupTableOptions& table,
                                     const BootstrapOptions& bootstrap,
                                     std::vector<std::string>& notes);

}  // namespace fovea

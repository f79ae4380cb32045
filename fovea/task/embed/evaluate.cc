// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/embed/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/grad/ops.h"
#include "fovea/metrics/regression.h"
#include "fovea/task/embed/embedder.h"
#include "fovea/task/embed/read_groups.h"
#include "fovea/task/score_json.h"

namespace fovea {

namespace {

constexpr index kMostScores = index{1} << 20;  // at once

// The second and further texts, each once: the number of a text that has the tokens.
std::vector<std::int32_t> candidates_of(const TextGroups& groups) {
  std::vector<std::int32_t> found;
  std::vector<bool> known(groups.same.size());
  for (index i = 0; i < groups.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    for (index t = groups.groups[at] + 1; t < groups.groups[at + 1]; ++t) {
      const auto same = static_cast<std::size_t>(groups.same[static_cast<std::size_t>(t)]);
      if (!known[same]) found.push_back(static_cast<std::int32_t>(t));
      known[same] = true;
    }
  }
  return found;
}

// What belongs to each anchor, by the number of its tokens.
using Belonging = std::vector<std::vector<std::int32_t>>;
Belonging belonging_of(const TextGroups& groups) {
  Belonging all(groups.same.size());
  for (index i = 0; i < groups.size(); ++i) {
    const auto anchor = static_cast<std::size_t>(groups.groups[static_cast<std::size_t>(i)]);
    all[static_cast<std::size_t>(groups.same[anchor])].push_back(groups.same[anchor + 1]);
  }
  return all;
}

}  // namespace

std::vector<double> cosines_of(const TextGroups& groups, Rows<const float> vectors, index columns) {
  const index C = columns == 0 ? vectors.columns : columns;
  std::vector<double> cosines;
  for (index i = 0; i < groups.size(); ++i) {
    const index t = groups.groups[static_cast<std::size_t>(i)];
    cosines.push_back(cosine({vectors[t], C}, {vectors[t + 1], C}));
  }
  return cosines;
}

std::vector<index> ranks_of(const Context& context, const TextGroups& groups,
                            Rows<const float> vectors) {
  const std::vector<std::int32_t> candidates = candidates_of(groups);
  const Belonging belonging = belonging_of(groups);
  const auto m = std::ssize(candidates);
  std::vector<index> ranks(static_cast<std::size_t>(groups.size()));
  const index at_once = std::max<index>(1, kMostScores / std::max<index>(m, 1));
  const auto same_at = [&](index text) { return groups.same[static_cast<std::size_t>(text)]; };
  Tape unit_tape(context, TapeMode::kInference), tape(context, TapeMode::kInference);
  const Variable unit = unit_rows(unit_tape, unit_tape.constant(vectors));
  const Variable found = embedding(unit_tape, TableRows{unit, candidates});
  for (index first = 0; first < groups.size(); first += at_once) {
    const index count = std::min(at_once, groups.size() - first);
    std::vector<std::int32_t> anchors;
    for (index i = first; i < first + count; ++i) {
      anchors.push_back(static_cast<std::int32_t>(groups.groups[static_cast<std::size_t>(i)]));
    }
    tape.reset(TapeMode::kInference);
    const Variable asked =
        embedding(tape, TableRows{tape.constant(Rows<const float>(unit.value<float>())), anchors});
    const Rows<const float> cosines =
        linear(tape, asked, tape.constant(Rows<const float>(found.value<float>()))).value<float>();
    context.for_ranges(count, 4.0 * static_cast<double>(m), [&](index begin, index end) {
      for (index n = begin; n < end; ++n) {
        const index anchor = anchors[static_cast<std::size_t>(n)];
        const std::int32_t own = same_at(anchor + 1);
        const std::vector<std::int32_t>& mine =
            belonging[static_cast<std::size_t>(same_at(anchor))];
        const auto is_own = [&](index c) {
          return same_at(candidates[static_cast<std::size_t>(c)]) == own;
        };
        index place = 0;
        while (!is_own(place)) ++place;
        index rank = 1;
        for (index c = 0; c < m; ++c) {
          if (c == place || !(cosines[n][c] >= cosines[n][place])) continue;
          const std::int32_t other = same_at(candidates[static_cast<std::size_t>(c)]);
          const bool counts =
              other != same_at(anchor) && std::ranges::find(mine, other) == mine.end();
          rank += counts ? 1 : 0;
        }
        ranks[static_cast<std::size_t>(first + n)] = rank;
      }
    });
  }
  return ranks;
}

Json json_of(const EmbedScore& score) {
  Json::Object object;
  add(object, "task", std::string(score.ranking ? kRetrievalTask : kSimilarityTask));
  add(object, "pairs", score.pairs);
  if (score.ranking) add(object, "candidates", score.candidates);
  add(object, "confidence", score.confidence);
  score.visit_numbers([&](std::string_view name, const Interval& interval) {
    add(object, name, json_of_interval(interval));
  });
  return Json(std::move(object));
}

EmbedScore evaluate_sentence_encoder(const Context& context, const SentenceModel& model,
                                     std::span<const std::string> files,
                                     const GroupTableOptions& table,
                                     const BootstrapOptions& bootstrap,
                                     std::vector<std::string>& notes) {
  const GroupRows rows = read_groups(files, table_options(table), notes);
  const TextGroups groups =
      groups_of(rows, std::vector<bool>(rows.rows.size(), true), true,
                {*model.tokenizer, model.settings.prompt, model.settings.max_length});
  if (groups.truncated > 0) {
    notes.push_back(
        fmt::format("{} of {} texts were longer than the model's {} tokens, and were "
                    "truncated",
                    groups.truncated, groups.texts(), model.settings.max_length));
  }
  require_memory("the vectors",
                 4.0 * sizeof(float) * static_cast<double>(groups.texts()) *
                     static_cast<double>(model.width()),
                 "evaluate fewer texts");
  std::vector<std::string> texts;
  for (const LabelledText& row : rows.rows) {
    const TextPair pair = pair_of(row.text);
    texts.emplace_back(pair.first);
    texts.emplace_back(pair.second);
    texts.insert(texts.end(), row.more.begin(), row.more.end());
  }
  Embedder embedder(context, model, embed_rules(model, {}, {}));
  const Tensor vectors = embedder.embed_all(texts);
  EmbedScore score{.pairs = groups.size(), .confidence = bootstrap.confidence};
  if (groups.scored()) {
    const std::vector<double> truth(groups.scores.begin(), groups.scores.end());
    const std::vector<double> cosines = cosines_of(groups, vectors.rows<float>());
    const RegressionIntervals found =
        regression_intervals<double>(context, truth, cosines, bootstrap);
    score.spearman = found.spearman;
    score.pearson = found.pearson;
    return score;
  }
  score.candidates = std::ssize(candidates_of(groups));
  const std::vector<index> ranks = ranks_of(context, groups, vectors.rows<float>());
  score.ranking = ranking_intervals(context, ranks, bootstrap);
  return score;
}

}  // namespace fovea

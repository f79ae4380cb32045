// SPDX-License-Identifier: Apache-2.0
// A model whose logits are random numbers of what is written: small enough to try all that it can
// write.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/task/decode/beam_search.h"

namespace fovea {

class TableModel final : public NextTokenModel {
 public:
  TableModel(index vocabulary, double deviation, std::uint64_t seed = 1)
      : vocabulary_(vocabulary), deviation_(deviation), seed_(seed) {}

  Rows<const float> step(std::span<const index> parents, Vec<const std::int32_t> ids) override {
    std::vector<std::vector<index>> next;
    for (std::size_t i = 0; i < parents.size(); ++i) {
      const auto parent = static_cast<std::size_t>(parents[i]);
      // In the first step a hypothesis begins with the number of its sentence.
      next.push_back(begun_ ? written_[parent] : std::vector<index>{parents[i]});
      next.back().push_back(ids[static_cast<index>(i)]);
    }
    begun_ = true;
    written_ = std::move(next);
    logits_.clear();
    for (const auto& path : written_) {
      const auto row = logits_of(path);
      logits_.insert(logits_.end(), row.begin(), row.end());
    }
    rows_.push_back(static_cast<index>(parents.size()));
    return {logits_.data(), static_cast<index>(parents.size()), vocabulary_};
  }

  std::vector<float> logits_of(const std::vector<index>& path) const {
    std::uint64_t number = seed_;
    for (const index id : path) number = number * 31 + static_cast<std::uint64_t>(id) + 7;
    Random random(seed_, RandomUse::kTest, number);
    std::vector<float> row;
    for (index v = 0; v < vocabulary_; ++v) {
      row.push_back(static_cast<float>(deviation_ * random.normal()));
    }
    return row;
  }

  /// Of three tokens of the source: random weights of each written token and the end.
  std::vector<double> attention(index sentence, std::span<const token> written) override {
    return attention_of(sentence, written);
  }
  std::vector<double> attention_of(index sentence, std::span<const token> written) const {
    std::vector<double> sums(3);
    for (std::size_t n = 0; n <= written.size(); ++n) {
      const token id = n < written.size() ? written[n] : 0;
      Random random(seed_, RandomUse::kTest,
                    static_cast<std::uint64_t>(1000 + 100 * sentence + 10 * id) + n);
      for (double& x : sums) x += random.uniform(0, 0.7);
    }
    return sums;
  }

  /// How many hypotheses each step had.
  const std::vector<index>& rows() const { return rows_; }

 private:
  index vocabulary_;
  double deviation_;
  std::uint64_t seed_;
  bool begun_ = false;
  std::vector<std::vector<index>> written_;
  std::vector<float> logits_;
  std::vector<index> rows_;
};

/// Every hypothesis that a sentence can become, the best first.
inline std::vector<Hypothesis> all_hypotheses(const TableModel& model, index sentence,
                                              const SearchTask& task,
                                              const SearchOptions& options) {
  std::vector<Hypothesis> all;
  const index longest = task.longest[static_cast<std::size_t>(sentence)];
  const std::function<void(std::vector<index>, Hypothesis)> go_on = [&](std::vector<index> path,
                                                                        Hypothesis so_far) {
    const std::vector<float> logits = model.logits_of(path);
    double sum = 0;
    for (const float x : logits) sum += std::exp(double{x});
    for (std::size_t id = 0; id < logits.size(); ++id) {
      if (!task.forbidden.empty() && task.forbidden[id]) continue;
      Hypothesis next = so_far;
      const auto written = static_cast<index>(next.tokens.size()) + 1;
      const bool is_end = static_cast<token>(id) == task.end;
      const bool is_open = task.end == kNoToken || options.open_end;
      const bool is_free = options.free_end && !is_open && written == longest;
      if (!is_free) next.log_probability += double{logits[id]} - std::log(sum);
      if (!is_end) next.tokens.push_back(static_cast<token>(id));
      next.has_end = is_end;
      const bool is_last =
          std::ranges::find(task.more_ends, static_cast<token>(id)) != task.more_ends.end();
      if (is_end || is_last || (is_open && written == longest)) {
        next.score = next.log_probability / length_divisor(options, written) +
                     coverage_score(options, model.attention_of(sentence, next.tokens));
        all.push_back(next);
      } else if (written < longest) {
        std::vector<index> longer = path;
        longer.push_back(static_cast<index>(id));
        go_on(longer, next);
      }
    }
  };
  go_on({sentence, task.begin}, {});
  std::sort(all.begin(), all.end(),
            [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  return all;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/curve.h"

#include <algorithm>
#include <vector>

#include "fovea/report/curves.h"

namespace fovea {

namespace {

Plot losses_of(const History& history) {
  LossCurves curves;
  for (const UpdateRecord& record : history.updates()) {
    const double x = static_cast<double>(record.step);
    curves.last_batch.push_back({x, record.loss});
    curves.running_mean.push_back({x, record.running_loss});
  }
  for (const EvaluationRecord& record : history.evaluations()) {
    const double x = static_cast<double>(record.step);
    curves.interval_mean.push_back({x, record.train_loss});
    curves.validation.push_back({x, record.valid_loss});
  }
  return loss_plot(curves);
}

Plot heads_of(const History& history, HeadNumbers AttentionRecord::*numbers, HeadCurves curves) {
  for (const AttentionRecord& record : history.attention()) {
    const HeadNumbers& layers = record.*numbers;
    curves.heads.resize(std::max(curves.heads.size(), layers.size()));
    for (std::size_t l = 0; l < layers.size(); ++l) {
      curves.heads[l].resize(std::max(curves.heads[l].size(), layers[l].size()));
      for (std::size_t h = 0; h < layers[l].size(); ++h) {
        curves.heads[l][h].push_back({static_cast<double>(record.step), layers[l][h]});
      }
    }
  }
  return heads_plot(curves);
}

}  // namespace

std::string training_curves(const History& history) {
  std::vector<Plot> plots = {losses_of(history)};
  const auto add = [&](HeadNumbers AttentionRecord::*numbers, const HeadCurves& names) {
    const auto& records = history.attention();
    const bool any = std::any_of(records.begin(), records.end(),
                                 [&](const auto& record) { return !(record.*numbers).empty(); });
    if (any) plots.push_back(heads_of(history, numbers, names));
  };
  add(&AttentionRecord::entropy, {"entropy of the attention weights", "nats"});
  add(&AttentionRecord::max_logit, {"largest score", "score, after bias and mask"});
  add(&AttentionRecord::distance, {"mean distance from a query to its keys", "tokens"});
  return draw_page(plots);
}

}  // namespace fovea

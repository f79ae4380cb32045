// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/curve.h"

#include "fovea/report/plot.h"

namespace fovea {

std::string loss_curve(const History& history) {
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
  return draw_svg(loss_plot(curves));
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/scores.h"

#include <limits>

#include "fovea/metrics/sum.h"

namespace fovea::detail {

namespace {

double ratio(index part, index whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Scores scores_of(const Hits& hits) {
  return {ratio(hits.both, hits.predicted), ratio(hits.both, hits.truth),
          ratio(2 * hits.both, hits.truth + hits.predicted)};
}

double share(index part, index whole) {
  return whole == 0 ? std::numeric_limits<double>::quiet_NaN() : ratio(part, whole);
}

Hits sum_of(const std::vector<Hits>& classes) {
  Hits sum;
  for (const Hits& hits : classes) {
    sum.both += hits.both;
    sum.truth += hits.truth;
    sum.predicted += hits.predicted;
  }
  return sum;
}

Scores mean_of(const std::vector<Scores>& classes, const std::vector<double>& weights) {
  Sum precision, recall, f1, weight;
  for (std::size_t k = 0; k < classes.size(); ++k) {
    precision.add(weights[k] * classes[k].precision);
    recall.add(weights[k] * classes[k].recall);
    f1.add(weights[k] * classes[k].f1);
    weight.add(weights[k]);
  }
  const double whole = weight.value();
  if (whole == 0) return {};
  return {precision.value() / whole, recall.value() / whole, f1.value() / whole};
}

}  // namespace fovea::detail

// SPDX-License-Identifier: Apache-2.0
// A metric over the epochs of runs that differ in their seed: a picture for each experiment.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/report/plot.h"

namespace fovea {

class SeedCurves {
 public:
  /// `metric`: "accuracy on the test set".
  explicit SeedCurves(std::string metric) : metric_(std::move(metric)) {}

  /// The published values after each epoch.
  void publish(std::string_view experiment, std::vector<double> by_epoch);
  /// Adds the values of the run of a seed.
  void add(std::string_view experiment, std::string_view variant, std::vector<double> by_epoch);

  /// A curve for each variant, in the order they came: the mean over the seeds so far, with bars of
  /// a standard deviation to both sides from two seeds on.
  Plot plot(std::string_view experiment) const;

 private:
  struct Variant {
    std::string name;
    std::vector<std::vector<double>> seeds;  // of each seed by epoch
  };
  struct Experiment {
    std::vector<double> published;
    std::vector<Variant> variants;
  };

  std::string metric_;
  std::map<std::string, Experiment, std::less<>> experiments_;
};

}  // namespace fovea

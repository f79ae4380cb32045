// SPDX-License-Identifier: Apache-2.0
#include "experiments/seed_curves.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>

#include "fovea/metrics/sum.h"

namespace fovea {

namespace {

constexpr std::array kInks = {Ink::kBlue, Ink::kOrange, Ink::kShade3, Ink::kShade4};

PlotPoint after_epoch(std::size_t epochs, double value) {
  return {static_cast<double>(epochs), value};
}

}  // namespace

void SeedCurves::publish(std::string_view experiment, std::vector<double> by_epoch) {
  experiments_[std::string(experiment)].published = std::move(by_epoch);
}

void SeedCurves::add(std::string_view experiment, std::string_view variant,
                     std::vector<double> by_epoch) {
  std::vector<Variant>& variants = experiments_[std::string(experiment)].variants;
  auto found = std::find_if(variants.begin(), variants.end(),
                            [&](const Variant& v) { return v.name == variant; });
  if (found == variants.end()) {
    found = variants.insert(variants.end(), {.name = std::string(variant), .seeds = {}});
  }
  found->seeds.push_back(std::move(by_epoch));
}

Plot SeedCurves::plot(std::string_view experiment) const {
  Plot plot{.title = std::string(experiment),
            .x_label = "epoch",
            .y_label = metric_,
            .begins_at_zero = false,
            .cuts_peaks = false};
  const auto found = experiments_.find(experiment);
  if (found == experiments_.end()) return plot;
  std::size_t most = 0, fewest = std::numeric_limits<std::size_t>::max();
  for (const Variant& variant : found->second.variants) {
    most = std::max(most, variant.seeds.size());
    fewest = std::min(fewest, variant.seeds.size());
  }
  for (const Variant& variant : found->second.variants) {
    const std::size_t seeds = variant.seeds.size();
    Curve curve{.name = most == fewest ? variant.name : fmt::format("{} ({})", variant.name, seeds),
                .ink = kInks[plot.curves.size() % kInks.size()]};
    for (std::size_t epoch = 0; epoch < variant.seeds[0].size(); ++epoch) {
      std::vector<double> values;
      for (const std::vector<double>& seed : variant.seeds) values.push_back(seed[epoch]);
      curve.points.push_back(after_epoch(epoch + 1, mean(values)));
      if (values.size() > 1) curve.spread.push_back(sample_deviation(values));
    }
    plot.curves.push_back(std::move(curve));
  }
  const std::string seeds =
      most == fewest ? std::to_string(most) : fmt::format("{} to {}", fewest, most);
  plot.subtitle =
      most > 1 ? "mean of " + seeds + " seeds, and a standard deviation up and down" : "one seed";
  if (found->second.published.empty()) return plot;
  Curve published{.name = "published", .ink = Ink::kShade0, .stroke = Stroke::kDashed};
  for (std::size_t epoch = 0; epoch < found->second.published.size(); ++epoch) {
    published.points.push_back(after_epoch(epoch + 1, found->second.published[epoch]));
  }
  plot.curves.push_back(std::move(published));
  return plot;
}

}  // namespace fovea

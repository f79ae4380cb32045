// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/curves.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

namespace fovea {

namespace {

SeriesPoint point_of(std::span<const PlotPoint> group) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  SeriesPoint point{.first = group.front().x,
                    .last = group.back().x,
                    .low = kNone,
                    .mean = kNone,
                    .high = kNone,
                    .count = static_cast<index>(group.size())};
  if (group.size() == 1) {
    point.low = point.mean = point.high = group.front().y;
    return point;
  }
  double sum = 0, finite = 0;
  for (const PlotPoint& p : group) {
    if (!std::isfinite(p.y)) continue;
    point.low = std::fmin(point.low, p.y);
    point.high = std::fmax(point.high, p.y);
    sum += p.y;
    ++finite;
  }
  if (finite > 0) point.mean = sum / finite;
  return point;
}

}  // namespace

Series series_of(std::string name, std::span<const PlotPoint> measurements, index most) {
  const auto all = static_cast<index>(measurements.size());
  Series series{.name = std::move(name), .measurements = all};
  const index each = std::max<index>((all + most - 1) / most, 1);
  for (index begin = 0; begin < all; begin += each) {
    series.points.push_back(point_of(measurements.subspan(
        static_cast<std::size_t>(begin), static_cast<std::size_t>(std::min(each, all - begin)))));
  }
  return series;
}

Curve curve_of(const Series& series, Ink ink, Stroke stroke) {
  Curve curve{.name = series.name, .ink = ink, .stroke = stroke};
  const bool thinned = series.is_thinned();
  for (const SeriesPoint& p : series.points) {
    curve.points.push_back({thinned ? (p.first + p.last) / 2 : p.last, p.mean});
    if (!thinned) continue;
    curve.low.push_back(p.low);
    curve.high.push_back(p.high);
  }
  return curve;
}

namespace {

// The mean of curves at each point of the first, over those that are finite there. A curve may end
// earlier.
std::vector<PlotPoint> mean_of(const std::vector<const std::vector<PlotPoint>*>& curves) {
  std::vector<PlotPoint> means = *curves.front();
  for (std::size_t n = 0; n < means.size(); ++n) {
    double sum = 0, count = 0;
    for (const std::vector<PlotPoint>* curve : curves) {
      if (n < curve->size() && std::isfinite((*curve)[n].y)) sum += (*curve)[n].y, ++count;
    }
    means[n].y = sum / count;
  }
  return means;
}

Ink shade(std::size_t group, std::size_t groups) {
  const std::size_t step = groups > 1 ? group * (kShades - 1) / (groups - 1) : 0;
  return static_cast<Ink>(static_cast<std::size_t>(Ink::kShade0) + step);
}

}  // namespace

std::vector<PlotPoint> broken_after(const std::vector<PlotPoint>& running,
                                    const std::vector<PlotPoint>& intervals) {
  std::vector<PlotPoint> points;
  auto end = intervals.begin();
  for (const PlotPoint& p : running) {
    bool begins = false;
    for (; end != intervals.end() && end->x < p.x; ++end) begins = true;
    if (begins) points.push_back({p.x, std::numeric_limits<double>::quiet_NaN()});
    points.push_back(p);
  }
  return points;
}

Plot loss_plot(const LossCurves& losses) {
  Plot plot{
      .title = losses.title, .x_label = "updates", .y_label = fmt::format("loss, {}", losses.unit)};
  const auto add = [&](std::string name, const std::vector<PlotPoint>& points, Ink ink,
                       Stroke stroke) {
    if (!points.empty()) plot.curves.push_back({std::move(name), points, ink, stroke});
  };
  add("train: last batch", losses.last_batch, Ink::kBlue, Stroke::kFaint);
  add("train: running mean", broken_after(losses.running_mean, losses.interval_mean), Ink::kBlue,
      Stroke::kDashed);
  add("train: exact mean of interval", losses.interval_mean, Ink::kBlue, Stroke::kSolid);
  add("train: whole set", losses.training, Ink::kShade2, Stroke::kSolid);
  add("validation", losses.validation, Ink::kOrange, Stroke::kSolid);
  for (const PlotPoint& p : losses.validation) {
    if (p.x != losses.best || !std::isfinite(p.y)) continue;
    plot.ring = PlotRing{p, fmt::format("best {:.4f}", p.y)};
    plot.subtitle =
        fmt::format("validation loss of the best weights {:.4f}, at update {:.0f}", p.y, p.x);
  }
  return plot;
}

Plot metrics_plot(const MetricCurves& of) {
  Plot plot{.title = "validation", .x_label = "updates", .y_label = "metrics of the whole set"};
  plot.cuts_peaks = false;
  for (std::size_t n = 0; n < of.metrics.size(); ++n) {
    const auto& [name, points] = of.metrics[n];
    const Ink ink = n == 0 ? Ink::kOrange : shade(n - 1, of.metrics.size() - 1);
    plot.curves.push_back({name, points, ink, n == 0 ? Stroke::kSolid : Stroke::kDashed});
    for (const PlotPoint& p : points) {
      if (n > 0 || p.x != of.best) continue;
      plot.ring = PlotRing{p, fmt::format("best {:.4f}", p.y)};
      plot.subtitle = fmt::format("best {} {:.4f}, at update {:.0f}", name, p.y, p.x);
    }
  }
  return plot;
}

Plot heads_plot(HeadCurves of) {
  Plot plot{.title = of.title,
            .subtitle = "bold: mean of a layer; thin: each head",
            .x_label = "updates",
            .y_label = of.y_label};
  const std::size_t layers = of.heads.size(), groups = std::min<std::size_t>(layers, kShades);
  std::vector<Curve> means;
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t first = group * layers / groups, end = (group + 1) * layers / groups;
    std::vector<const std::vector<PlotPoint>*> members;
    for (std::size_t l = first; l < end; ++l) {
      for (const auto& points : of.heads[l]) members.push_back(&points);
    }
    if (members.empty()) continue;
    // Only the first says "layers", so that all fit into the legend.
    const std::string word = group > 0 ? "" : (layers > groups ? of.layers : of.layer) + " ";
    const std::string name = end - first == 1 ? fmt::format("{}{}", word, end)
                                              : fmt::format("{}{}-{}", word, first + 1, end);
    means.push_back({name, mean_of(members), shade(group, groups), Stroke::kSolid});
    for (std::size_t l = first; l < end; ++l) {
      for (std::size_t h = 0; h < of.heads[l].size(); ++h) {
        plot.curves.push_back({fmt::format("{} {}, {} {}", of.layer, l + 1, of.head, h + 1),
                               std::move(of.heads[l][h]), shade(group, groups), Stroke::kThin});
      }
    }
  }
  plot.curves.insert(plot.curves.end(), means.begin(), means.end());
  return plot;
}

}  // namespace fovea

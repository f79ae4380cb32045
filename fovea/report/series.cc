// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/series.h"

#include <algorithm>
#include <cmath>
#include <limits>
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

}  // namespace fovea

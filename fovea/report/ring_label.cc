// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/ring_label.h"

#include <algorithm>
#include <cmath>

namespace fovea {

namespace {

// Pixels from `low` to `high`.
struct Box {
  PlotPoint low, high;
};

// Whether the line from a to b runs through the box.
bool touches(PlotPoint a, PlotPoint b, const Box& box) {
  if (std::isnan(a.x) || std::isnan(b.x) || a.x > box.high.x || b.x < box.low.x) return false;
  const auto y_at = [&](double x) {
    return b.x > a.x ? a.y + (b.y - a.y) * (std::clamp(x, a.x, b.x) - a.x) / (b.x - a.x) : b.y;
  };
  const auto [top, bottom] = std::minmax({y_at(box.low.x), y_at(box.high.x)});
  return bottom >= box.low.y && top <= box.high.y;
}

}  // namespace

double ring_label_y(const std::vector<Curve>& curves,
                    const std::function<PlotPoint(const PlotPoint&)>& pixel, PlotPoint ring,
                    double half, double top, double bottom) {
  constexpr double kAscent = 11, kDescent = 4;
  double best = ring.y + 24;
  auto fewest = std::numeric_limits<std::ptrdiff_t>::max();
  for (const double y :
       {ring.y - 14, ring.y + 24, ring.y - 32, ring.y + 42, ring.y - 50, ring.y + 60}) {
    if (y < top + 10 || y > bottom - 6) continue;
    const Box box{{ring.x - half, y - kAscent}, {ring.x + half, y + kDescent}};
    const auto through = std::count_if(curves.begin(), curves.end(), [&](const Curve& curve) {
      const auto& points = curve.points;
      return std::adjacent_find(points.begin(), points.end(),
                                [&](const PlotPoint& a, const PlotPoint& b) {
                                  return touches(pixel(a), pixel(b), box);
                                }) != points.end();
    });
    if (through >= fewest) continue;
    fewest = through;
    best = y;
  }
  return best;
}

}  // namespace fovea

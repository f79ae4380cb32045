// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/ring_label.h"

#include <algorithm>
#include <cmath>

namespace fovea {

namespace {

// The height of a label above and below its baseline, and the distance that curves keep from it.
constexpr double kAscent = 11, kDescent = 4, kAir = 4;
constexpr double kRadius = 6.5;  // of the ring

// From where to where a curve reaches in each column of pixels.
class Skyline {
 public:
  Skyline(const Curve& curve, const std::function<PlotPoint(const PlotPoint&)>& pixel,
          const PixelBox& area)
      : left_(std::floor(area.low.x)),
        columns_(static_cast<std::size_t>(std::max(area.high.x - left_, 0.0)) + 2) {
    PlotPoint before = kNowhere;
    for (const PlotPoint& point : curve.points) {
      const PlotPoint at = pixel(point);
      std::isnan(before.x) ? add_line(at, at) : add_line(before, at);
      before = at;
    }
  }

  bool touches(const PixelBox& box) const {
    const std::size_t last = column(box.high.x);
    for (std::size_t c = column(box.low.x); c <= last; ++c) {
      if (columns_[c].low <= box.high.y && columns_[c].high >= box.low.y) return true;
    }
    return false;
  }

 private:
  struct Reach {
    double low = std::numeric_limits<double>::infinity(), high = -low;
  };

  std::size_t column(double x) const {
    return static_cast<std::size_t>(
        std::clamp(std::floor(x - left_), 0.0, static_cast<double>(columns_.size() - 1)));
  }

  void add_line(PlotPoint a, PlotPoint b) {
    if (std::isnan(a.x) || std::isnan(b.x)) return;
    const std::size_t last = column(b.x);
    for (std::size_t c = column(a.x); c <= last; ++c) {
      const auto y_at = [&](double x) {
        return b.x > a.x ? a.y + (b.y - a.y) * (std::clamp(x, a.x, b.x) - a.x) / (b.x - a.x) : b.y;
      };
      const double x = left_ + static_cast<double>(c);
      for (const double y : {a.x == b.x ? a.y : y_at(x), y_at(x + 1)}) {
        columns_[c].low = std::min(columns_[c].low, y);
        columns_[c].high = std::max(columns_[c].high, y);
      }
    }
  }

  double left_;
  std::vector<Reach> columns_;
};

// The places to try, the nearest ones first: over and under the ring, beside it, then ever farther
// off, in the middle, to the left and to the right.
std::vector<PlotPoint> places_around(PlotPoint ring, double half, const PixelBox& area) {
  constexpr double kStep = 18;
  const double low = area.low.y + kAscent - 1, high = area.high.y - kDescent - 2;
  const double aside = half + kRadius + 2 * kAir;
  const auto inside = [&](double x) {
    return std::clamp(x, area.low.x + half, std::max(area.low.x + half, area.high.x - half));
  };
  std::vector<PlotPoint> places;
  const auto add = [&](double x, double y) {
    if (y >= low && y <= high) places.push_back({inside(x), y});
  };
  add(ring.x, ring.y - 14);
  add(ring.x, ring.y + 24);
  for (const double side : {-aside, aside}) {
    // Pushed back inside it would cover the ring.
    if (inside(ring.x + side) == ring.x + side) add(ring.x + side, ring.y + 4);
  }
  for (double off = 0; off <= area.high.y - area.low.y; off += kStep) {
    for (const double y : {ring.y - 14 - off, ring.y + 24 + off}) {
      for (const double side : {0.0, -aside, aside, -2 * aside, 2 * aside}) add(ring.x + side, y);
    }
  }
  return places;
}

}  // namespace

PlotPoint ring_label_place(const std::vector<Curve>& curves,
                           const std::function<PlotPoint(const PlotPoint&)>& pixel, PlotPoint ring,
                           double half, const PixelBox& area) {
  std::vector<Skyline> skylines;
  for (const Curve& curve : curves) skylines.emplace_back(curve, pixel, area);
  PlotPoint best{
      std::clamp(ring.x, area.low.x + half, std::max(area.low.x + half, area.high.x - half)),
      ring.y + 24};
  auto fewest = std::numeric_limits<std::ptrdiff_t>::max();
  for (const PlotPoint& place : places_around(ring, half, area)) {
    const PixelBox box{{place.x - half - kAir, place.y - kAscent - kAir},
                       {place.x + half + kAir, place.y + kDescent + kAir}};
    const auto through = std::count_if(skylines.begin(), skylines.end(),
                                       [&](const Skyline& one) { return one.touches(box); });
    if (through < fewest) {
      fewest = through;
      best = place;
    }
    if (fewest == 0) break;
  }
  return best;
}

}  // namespace fovea

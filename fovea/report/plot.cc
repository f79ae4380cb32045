// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fovea/base/check.h"
#include "fovea/report/numbers.h"
#include "fovea/report/svg.h"

namespace fovea {

namespace {

constexpr Phrase kNothing = {"nothing measured yet", "尚无测量值"};
// A measurement: its curve, value and place.
constexpr Phrase kAt = {"{0}: {1:.6g} at {3:.10g} {2}", "{0}：{1:.6g}（{2} {3:.10g}）"};
constexpr Phrase kUpTo = {"up to", "最高"};

// The picture, and the rectangle in it that the axes enclose.
struct Area {
  double width, height;
  double left, right, top, bottom;

  double center_x() const { return (left + right) / 2; }
  double center_y() const { return (top + bottom) / 2; }
};

Area area_of(PlotPlace place) {
  switch (place) {
    case PlotPlace::kWide:
      return {980, 316, 62, 964, 14, 264};
    case PlotPlace::kHalf:
      return {480, 226, 58, 460, 14, 176};
    default:
      return {800, 460, 68, 776, 104, 408};
  }
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  bool empty() const { return !(low <= high); }
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// Beyond this value the width of a range overflows.
constexpr double kHuge = 1e300;

// From values to pixels.
struct Frame {
  Area area;
  Range x = {}, y = {};

  bool shows(PlotPoint p) const {
    return std::abs(p.x) < kHuge && std::abs(p.y) < kHuge;  // false for NaN
  }
  PlotPoint pixel(PlotPoint p) const {
    return {area.left + (p.x - x.low) / (x.high - x.low) * (area.right - area.left),
            area.bottom - (p.y - y.low) / (y.high - y.low) * (area.bottom - area.top)};
  }
};

// A range that is not empty, with a margin above and below the curves.
Range widened(Range range) {
  if (range.empty()) return {.low = 1, .high = 2};
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  const double width = range.high - range.low;
  const bool flat = width <= std::max(1e-9 * size, 1 / kHuge);
  const double air = 0.05 * (!flat ? width : size > 1 / kHuge ? size : 1);
  return {range.low - air, range.high + air};
}

// The loss of the first updates is many times that of all others: an axis that shows them would
// press the rest of the curves flat. So the last three quarters of each curve get at least half of
// the height; higher values are cut off and marked. With few points everything is shown, and so is
// what is hardly higher: nothing is gained by cutting it.
double highest_shown(const Plot& plot, const Frame& all) {
  constexpr int kFew = 10;
  constexpr double kHardlyHigher = 1.25;
  double high = all.y.low;
  int points = 0;
  for (const Curve& curve : plot.curves) {
    if (curve.stroke == Stroke::kFaint || curve.points.empty()) continue;
    const double first = curve.points.front().x, last = curve.points.back().x;
    for (const PlotPoint& p : curve.points) {
      if (!all.shows(p) || p.x < first + 0.25 * (last - first)) continue;
      high = std::max(high, p.y);
      ++points;
    }
  }
  if (points < kFew || !(high > all.y.low)) return all.y.high;
  const double limit = 2 * (high - all.y.low);
  return all.y.high - all.y.low <= kHardlyHigher * limit ? all.y.high : all.y.low + limit;
}

// The spread at a point of the curve.
double spread_at(const Curve& curve, const PlotPoint& point) {
  if (curve.spread.empty()) return 0;
  const double spread = curve.spread[static_cast<std::size_t>(&point - curve.points.data())];
  return spread < kHuge ? spread : 0;  // also NaN
}

Frame frame_of(const Plot& plot) {
  Frame frame{.area = area_of(plot.place)};
  Range faint;
  int clear = 0;
  for (const Curve& curve : plot.curves) {
    for (const PlotPoint& p : curve.points) {
      if (!frame.shows(p)) continue;
      frame.x.include(p.x);
      const bool is_faint = curve.stroke == Stroke::kFaint;
      Range& range = is_faint ? faint : frame.y;
      range.include(p.y);
      if (const double spread = spread_at(curve, p); spread > 0) {
        range.include(p.y - spread);
        range.include(p.y + spread);
      }
      clear += is_faint ? 0 : 1;
    }
  }
  if (clear < 3) frame.y.high = std::max(frame.y.high, faint.high);
  frame.y.low = std::min(frame.y.low, faint.low);
  if (plot.cuts_peaks) frame.y.high = highest_shown(plot, frame);
  frame.y = widened(frame.y);
  if (frame.x.empty()) frame.x = {.low = 0, .high = 1};
  // Runs begin at 0: show it unless that squeezes the curves into a corner.
  const bool in_corner = frame.x.low >= 0.5 * frame.x.high;
  if (plot.begins_at_zero && frame.x.low > 0 && !in_corner) frame.x.low = 0;
  if (frame.x.high - frame.x.low < 1e-9 * std::max(1.0, std::abs(frame.x.high))) {
    frame.x = {.low = frame.x.low - 1, .high = frame.x.high + 1};
  }
  return frame;
}

// Thins the points, in pixels, of an unbroken stretch: of those in the same tenth of a pixel
// column, keeps the lowest and the highest, in their order. Thin curves, of which there may be
// hundreds, are kept by four columns.
std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& points, Stroke stroke) {
  const bool thin = stroke == Stroke::kThin;
  if (points.size() < (thin ? 400 : 2000)) return points;
  const double columns = thin ? 0.25 : 10;  // of a pixel
  std::vector<PlotPoint> kept;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin, low = begin, high = begin;
    const double column = std::floor(points[begin].x * columns);
    for (; end < points.size() && std::floor(points[end].x * columns) == column; ++end) {
      if (points[end].y < points[low].y) low = end;
      if (points[end].y > points[high].y) high = end;
    }
    kept.push_back(points[std::min(low, high)]);
    if (low != high) kept.push_back(points[std::max(low, high)]);
    begin = end;
  }
  return kept;
}

std::string path_of(const Curve& curve, const Frame& frame) {
  std::string path;
  std::vector<PlotPoint> stretch;
  const auto flush = [&] {
    std::string_view command = "M";
    for (const PlotPoint& p : thinned(stretch, curve.stroke)) {
      path += fmt::format("{}{} {}", command, coordinate(p.x), coordinate(p.y));
      command = "L";
    }
    if (stretch.size() == 1) path += "h0";  // a round cap makes a lone point visible
    stretch.clear();
  };
  for (const PlotPoint& p : curve.points) {
    if (frame.shows(p)) {
      stretch.push_back(frame.pixel(p));
    } else {
      flush();
    }
  }
  flush();
  return path;
}

std::string bars(const Curve& curve, const Frame& frame) {
  constexpr double kHalf = 5;  // of the ends
  std::string svg;
  for (const PlotPoint& p : curve.points) {
    const double spread = spread_at(curve, p);
    if (!frame.shows(p) || !(spread > 0)) continue;
    const PlotPoint low = frame.pixel({p.x, p.y - spread}), high = frame.pixel({p.x, p.y + spread});
    svg += fmt::format(
        "<path class=\"curve bar {0}\" d=\"M{1} {2}L{3} {2}M{4} {2}L{4} {5}M{1} {5}L{3} {5}\"/>\n",
        class_of(curve.ink), coordinate(low.x - kHalf), coordinate(low.y),
        coordinate(low.x + kHalf), coordinate(low.x), coordinate(high.y));
  }
  return svg;
}

// Draws no dots on a dense curve: they would hide it.
std::string dots(const Curve& curve, const Frame& frame, const Plot& plot) {
  constexpr std::size_t kMostDots = 60;
  std::string svg;
  if (curve.stroke != Stroke::kSolid || curve.points.size() > kMostDots) return svg;
  for (const PlotPoint& p : curve.points) {
    if (!frame.shows(p)) continue;
    const PlotPoint at = frame.pixel(p);
    svg += fmt::format(
        "<circle cx=\"{}\" cy=\"{}\" r=\"2.8\" class=\"dot {}\"><title>{}</title></circle>\n",
        coordinate(at.x), coordinate(at.y), class_of(curve.ink),
        xml_text(
            fmt::format(fmt::runtime(kAt.in(plot.language)), curve.name, p.y, plot.x_label, p.x)));
  }
  return svg;
}

// Between the lowest and the highest of what each point stands for.
std::string band(const Curve& curve, const Frame& frame) {
  std::string there, back;
  for (std::size_t n = 0; n < std::min(curve.low.size(), curve.high.size()); ++n) {
    const double x = curve.points[n].x;
    if (!frame.shows({x, curve.low[n]}) || !frame.shows({x, curve.high[n]})) continue;
    const PlotPoint low = frame.pixel({x, curve.low[n]}), high = frame.pixel({x, curve.high[n]});
    // Coordinates far outside are drawn at the edge.
    const auto y = [&](double value) {
      return coordinate(std::clamp(value, frame.area.top - 9, frame.area.bottom + 9));
    };
    there += fmt::format("{}{} {}", there.empty() ? "M" : "L", coordinate(high.x), y(high.y));
    back.insert(0, fmt::format("L{} {}", coordinate(low.x), y(low.y)));
  }
  if (there.empty()) return {};
  return fmt::format("<path class=\"band {}\" d=\"{}{}z\"/>\n", class_of(curve.ink), there, back);
}

std::string curves(const Plot& plot, const Frame& frame, std::string_view id) {
  std::string svg = fmt::format("<g clip-path=\"url(#{})\">\n", id);
  bool empty = true;
  for (const Curve& curve : plot.curves) svg += band(curve, frame);
  for (const Curve& curve : plot.curves) {
    const std::string path = path_of(curve, frame);
    if (path.empty()) continue;
    empty = false;
    svg += fmt::format("<path class=\"curve {} {}\" d=\"{}\"><title>{}</title></path>\n",
                       class_of(curve.stroke), class_of(curve.ink), path, xml_text(curve.name));
    svg += bars(curve, frame) + dots(curve, frame, plot);
  }
  if (empty) {
    svg += svg_text({frame.area.center_x(), frame.area.center_y(), kNothing.in(plot.language),
                     "halo", Anchor::kMiddle});
  }
  return svg + "</g>\n";
}

std::string axes(const Plot& plot, const Frame& frame) {
  const Area& at = frame.area;
  const bool small = plot.place == PlotPlace::kHalf;
  std::string svg;
  for (const Tick& tick : axis_ticks(frame.y.low, frame.y.high, small ? 5 : 8)) {
    const double y = frame.pixel({frame.x.low, tick.value}).y;
    svg += svg_line({at.left, y, at.right, y, "grid"});
    svg += svg_text({at.left - 9, y + 4, tick.label, "text", Anchor::kEnd});
  }
  // Updates are whole numbers: there are no more ticks than updates.
  const double updates = frame.x.high - frame.x.low;
  const int most = static_cast<int>(std::min(updates, small ? 6.0 : 10.0)) + 1;
  for (const Tick& tick : axis_ticks(frame.x.low, frame.x.high, most)) {
    const double x = frame.pixel({tick.value, frame.y.low}).x;
    svg += svg_line({x, at.bottom, x, at.bottom + 5, "axis"});
    svg += svg_text({x, at.bottom + 20, tick.label, "text", Anchor::kMiddle});
  }
  svg += svg_line({at.left, at.bottom, at.right, at.bottom, "axis"});
  svg += svg_text({at.center_x(), at.bottom + 42, plot.x_label, "text", Anchor::kMiddle});
  if (plot.y_label.empty()) return svg;
  svg += fmt::format("<g transform=\"rotate(-90 18 {0})\">\n{1}</g>\n", coordinate(at.center_y()),
                     svg_text({18, at.center_y(), plot.y_label, "text", Anchor::kMiddle}));
  return svg;
}

std::string marks(const Plot& plot, const Frame& frame) {
  std::string svg;
  for (const PlotMark& mark : plot.marks) {
    if (!(mark.x >= frame.x.low && mark.x <= frame.x.high)) continue;
    const double x = frame.pixel({mark.x, frame.y.low}).x;
    const std::string line = svg_line({x, frame.area.top, x, frame.area.bottom, "resumed"});
    svg += fmt::format("<g><title>{}</title>\n{}</g>\n", xml_text(mark.label), line);
  }
  return svg;
}

std::string legend(const Plot& plot, const Area& area) {
  constexpr double kSample = 30, kY = 82;
  std::string svg;
  double x = area.left;
  for (const Curve& curve : plot.curves) {
    if (curve.stroke == Stroke::kThin) continue;
    svg += fmt::format("<path class=\"curve {} {}\" d=\"M{} {}h{}\"/>\n", class_of(curve.stroke),
                       class_of(curve.ink), coordinate(x), coordinate(kY), kSample);
    svg += svg_text({x + kSample + 7, kY + 4, curve.name, "name"});
    x += kSample + 7 + text_width(curve.name) + 22;
  }
  return svg;
}

std::string ring(const Plot& plot, const Frame& frame) {
  constexpr double kNear = 30;  // a label farther off has a line to its ring
  if (!plot.ring || !frame.shows(plot.ring->point)) return {};
  const PlotPoint at = frame.pixel(plot.ring->point);
  const double half = text_width(plot.ring->label) / 2;
  const auto pixel = [&](const PlotPoint& p) { return frame.shows(p) ? frame.pixel(p) : kNowhere; };
  const Area& area = frame.area;
  const PlotPoint label = ring_label_place(plot.curves, pixel, at, half,
                                           {{area.left, area.top}, {area.right, area.bottom}});
  std::string svg;
  const PlotPoint end{std::clamp(at.x, label.x - half, label.x + half),
                      label.y < at.y ? label.y + 4 : label.y - 11};
  const double far = std::hypot(end.x - at.x, end.y - at.y);
  if (far > kNear) {
    const double share = 6.5 / far;
    svg += svg_line(
        {at.x + share * (end.x - at.x), at.y + share * (end.y - at.y), end.x, end.y, "leader"});
  }
  svg += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"6.5\" class=\"ring\"/>\n", coordinate(at.x),
                     coordinate(at.y));
  return svg + svg_text({label.x, label.y, plot.ring->label, "halo", Anchor::kMiddle});
}

// Marks where the curves leave the plot at the top, with their highest value, which no curve
// crosses.
std::string mark_above(const Plot& plot, const Frame& frame) {
  PlotPoint highest{frame.x.low, frame.y.high};
  const auto see = [&](PlotPoint p) {
    if (frame.shows(p) && p.y > highest.y) highest = p;
  };
  for (const Curve& curve : plot.curves) {
    for (const PlotPoint& p : curve.points) see(p);
    for (std::size_t n = 0; n < curve.high.size(); ++n) see({curve.points[n].x, curve.high[n]});
  }
  if (!(highest.y > frame.y.high)) return {};
  const Area& at = frame.area;
  const std::string label = fmt::format("{} {}", kUpTo.in(plot.language), short_number(highest.y));
  const double x = std::clamp(frame.pixel(highest).x, at.left + 5, at.right - 5);
  const auto pixel = [&](const PlotPoint& p) { return frame.shows(p) ? frame.pixel(p) : kNowhere; };
  const PlotPoint place =
      ring_label_place(plot.curves, pixel, {x, at.top + 7}, text_width(label) / 2,
                       {{at.left, at.top}, {at.right, at.bottom}});
  return fmt::format("<path class=\"mark\" d=\"M{} {}l5 9h-10z\"/>\n", coordinate(x),
                     coordinate(at.top + 2)) +
         svg_text({place.x, place.y, label, "halo", Anchor::kMiddle});
}

std::string inside_axes(const Plot& plot, const Frame& frame, std::string_view id) {
  return marks(plot, frame) + curves(plot, frame, id) + mark_above(plot, frame) + ring(plot, frame);
}

std::string body_of(const Plot& plot) {
  const Frame frame = frame_of(plot);
  return svg_text({frame.area.left, 34, plot.title, "title"}) +
         svg_text({frame.area.left, 54, plot.subtitle}) + axes(plot, frame) +
         legend(plot, frame.area) + inside_axes(plot, frame, "area");
}

std::string clip_path(const Area& area, std::string_view id) {
  return fmt::format(
      "<clipPath id=\"{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n", id,
      area.left - 4, area.top, area.right - area.left + 8, area.bottom - area.top + 4);
}

}  // namespace

PlotRange plot_range(const Plot& plot) {
  const Frame frame = frame_of(plot);
  return {frame.x.low, frame.x.high, frame.y.low, frame.y.high};
}

std::string draw_svg(const Plot& plot) { return draw_page({&plot, 1}); }

std::string draw_page(std::span<const Plot> plots) {
  check(!plots.empty(), "a page needs a plot");
  const Area area = area_of(PlotPlace::kFile);
  const SvgPage page{.width = area.width,
                     .height = area.height * static_cast<double>(plots.size()),
                     .title = plots.front().title,
                     .description = plots.front().subtitle,
                     .rules = plot_rules(),
                     .dark_rules = plot_dark_rules()};
  std::string svg = svg_head(page) + clip_path(area, "area") + svg_ground(page);
  for (std::size_t n = 0; n < plots.size(); ++n) {
    const std::string body = body_of(plots[n]);
    svg += n == 0
               ? body
               : fmt::format("<g transform=\"translate(0 {})\">\n<title>{}</title>\n{}</g>\n",
                             area.height * static_cast<double>(n), xml_text(plots[n].title), body);
  }
  return svg + "</svg>\n";
}

std::string draw_inline(const Plot& plot, std::string_view id) {
  const Frame frame = frame_of(plot);
  const std::string clip = fmt::format("{}-area", id);
  return svg_inline_head(
             {.width = frame.area.width, .height = frame.area.height, .title = plot.title}) +
         clip_path(frame.area, clip) + axes(plot, frame) + inside_axes(plot, frame, clip) +
         "</svg>\n";
}

std::string draw_sample(const Curve& curve) {
  return fmt::format(
      "<svg class=\"sample\" viewBox=\"0 0 30 8\" width=\"30\" height=\"8\" "
      "aria-hidden=\"true\"><path class=\"curve {} {}\" d=\"M1 4h28\"/></svg>",
      class_of(curve.stroke), class_of(curve.ink));
}

namespace {

// Colours differ in lightness as well as in hue, so that they can be told apart in grey print and
// with common colour blindness.
constexpr std::string_view kRules = R"(.curve{fill:none;stroke-linejoin:round;stroke-linecap:round}
.faint{stroke-width:1;stroke-opacity:.38}
.thin{stroke-width:1;stroke-opacity:.45}
.bar{stroke-width:1.2;stroke-opacity:.7}
.dashed{stroke-width:1.8;stroke-dasharray:5 4;stroke-linecap:butt}
.dotted{stroke-width:2.2;stroke-dasharray:1 4}
.solid{stroke-width:2.6}
.band{stroke-width:0;fill-opacity:.16}
.resumed{stroke:#8c959f;stroke-dasharray:2 3}
.blue{stroke:#1f6fc4}
.orange{stroke:#d9570a}
.i0{stroke:#5e2a84}
.i1{stroke:#3b5fb0}
.i2{stroke:#17808c}
.i3{stroke:#2a9d4f}
.i4{stroke:#8f9a10}
.i5{stroke:#d9570a}
.r0{stroke:#1f6fc4}
.r1{stroke:#d9570a}
.r2{stroke:#8250df}
.r3{stroke:#1a7f37}
.r4{stroke:#bf3989}
.r5{stroke:#0f7b8a}
.r6{stroke:#8a5a00}
.r7{stroke:#57606a}
.band.blue,.band.r0{fill:#1f6fc4}
.band.orange,.band.r1{fill:#d9570a}
.band.r2{fill:#8250df}
.band.r3{fill:#1a7f37}
.band.r4{fill:#bf3989}
.band.r5{fill:#0f7b8a}
.band.r6{fill:#8a5a00}
.band.r7{fill:#57606a}
.dot{fill:#fff;stroke-width:1.8}
.ring{fill:none;stroke:#1f2328;stroke-width:1.6}
.leader{stroke:#1f2328;stroke-width:1;stroke-opacity:.6}
.mark{fill:#1f2328}
)";
constexpr std::string_view kDarkRules = R"(.faint{stroke-opacity:.5}
.blue{stroke:#58a6ff}
.orange{stroke:#ff9248}
.i0{stroke:#b98ae0}
.i1{stroke:#7f9ff0}
.i2{stroke:#4fc3cf}
.i3{stroke:#5fd08f}
.i4{stroke:#c8d84a}
.i5{stroke:#ff9248}
.r0{stroke:#58a6ff}
.r1{stroke:#ff9248}
.r2{stroke:#bc8cff}
.r3{stroke:#4ac26b}
.r4{stroke:#f778ba}
.r5{stroke:#39c5cf}
.r6{stroke:#d4a72c}
.r7{stroke:#9198a1}
.band{fill-opacity:.22}
.band.blue,.band.r0{fill:#58a6ff}
.band.orange,.band.r1{fill:#ff9248}
.band.r2{fill:#bc8cff}
.band.r3{fill:#4ac26b}
.band.r4{fill:#f778ba}
.band.r5{fill:#39c5cf}
.band.r6{fill:#d4a72c}
.band.r7{fill:#9198a1}
.resumed{stroke:#6e7681}
.dot{fill:#0d1117}
.ring{stroke:#f0f6fc}
.leader{stroke:#f0f6fc}
.mark{fill:#f0f6fc}
)";

}  // namespace

std::string_view class_of(Ink ink) {
  constexpr std::string_view kNames[] = {"blue", "orange", "i0", "i1", "i2", "i3", "i4", "i5",
                                         "r0",   "r1",     "r2", "r3", "r4", "r5", "r6", "r7"};
  return kNames[static_cast<std::size_t>(ink)];
}

std::string_view class_of(Stroke stroke) {
  constexpr std::string_view kNames[] = {"faint", "thin", "dashed", "dotted", "solid"};
  return kNames[static_cast<std::size_t>(stroke)];
}

Ink ink_of_run(std::size_t n) {
  return static_cast<Ink>(static_cast<std::size_t>(Ink::kRun0) + n % kRunInks);
}

Stroke stroke_of_run(std::size_t n) {
  constexpr Stroke kStrokes[] = {Stroke::kSolid, Stroke::kDashed, Stroke::kDotted};
  return kStrokes[std::min<std::size_t>(n / kRunInks, 2)];
}

std::string_view plot_rules() { return kRules; }
std::string_view plot_dark_rules() { return kDarkRules; }

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

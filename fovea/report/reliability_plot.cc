// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/reliability_plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "fovea/base/check.h"
#include "fovea/report/axis.h"
#include "fovea/report/svg.h"

namespace fovea {

namespace {

constexpr double kWidth = 520, kHeight = 600;
constexpr double kLeft = 68, kRight = 496, kTop = 104, kBottom = 440;  // the accuracies
constexpr double kCountsTop = 462, kCountsBottom = 536;

constexpr std::string_view kRules = R"(.accuracy{fill:#1f6fc4;fill-opacity:.8}
.confidence{fill:#d9570a;fill-opacity:.8}
.count{fill:#8c959f;fill-opacity:.7}
.perfect{stroke:#1f2328;stroke-width:1.4;stroke-dasharray:5 4}
)";
constexpr std::string_view kDarkRules = R"(.accuracy{fill:#58a6ff}
.confidence{fill:#ff9248}
.count{fill:#6e7681}
.perfect{stroke:#f0f6fc}
)";

constexpr Phrase kCount = {"count", "数量"}, kMean = {"mean {}", "平均{}"};
constexpr Phrase kPerfect = {"perfect", "完美校准"};
constexpr Phrase kBar = {"{:.4g} to {:.4g}: {} predictions, confidence {:.4f}, accuracy {:.4f}",
                         "{:.4g} 到 {:.4g}：{} 个预测，置信度 {:.4f}，准确率 {:.4f}"};
constexpr Phrase kNothing = {"nothing measured yet", "尚无测量值"};

double x_of(double confidence) { return kLeft + confidence * (kRight - kLeft); }
double y_of(double accuracy) { return kBottom - accuracy * (kBottom - kTop); }

bool is_share(double x) { return x >= 0 && x <= 1; }  // false for NaN

void check_bars(const ReliabilityPlot& plot) {
  for (const ReliabilityBar& bar : plot.bars) {
    check(is_share(bar.low) && is_share(bar.high) && bar.low < bar.high &&
              is_share(bar.confidence) && is_share(bar.accuracy) && bar.count >= 0,
          "draw_reliability: the bar from {} to {} has confidence {}, accuracy {}, count {}; "
          "shares must be in [0, 1], the count must not be negative",
          bar.low, bar.high, bar.confidence, bar.accuracy, bar.count);
  }
}

// A rectangle of a height over `bottom`, from one share of the bin's width to another; a bin has a
// pixel of air at each side.
struct Bar {
  double from, to, bottom, height;
  std::string_view style;
};
std::string rectangle(const ReliabilityBar& bin, const Bar& bar) {
  const double left = x_of(bin.low) + 1, width = std::max(x_of(bin.high) - left - 1, 0.5);
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"/>\n",
                     coordinate(left + bar.from * width), coordinate(bar.bottom - bar.height),
                     coordinate((bar.to - bar.from) * width), coordinate(bar.height), bar.style);
}

std::string axes(const ReliabilityPlot& plot, index largest) {
  std::string svg;
  for (const Tick& tick : axis_ticks(0, 1, 6)) {
    const double y = y_of(tick.value), x = x_of(tick.value);
    svg += svg_line({kLeft, y, kRight, y, "grid"});
    svg += svg_text({kLeft - 9, y + 4, tick.label, "text", Anchor::kEnd});
    svg += svg_line({x, kCountsBottom, x, kCountsBottom + 5, "axis"});
    svg += svg_text({x, kCountsBottom + 20, tick.label, "text", Anchor::kMiddle});
  }
  svg += svg_line({kLeft, kCountsTop, kRight, kCountsTop, "grid"});
  svg += svg_text({kLeft - 9, kCountsTop + 4, fmt::format("{}", largest), "text", Anchor::kEnd});
  svg += svg_text({kLeft - 9, kCountsBottom + 4, "0", "text", Anchor::kEnd});
  svg +=
      svg_text({(kLeft + kRight) / 2, kCountsBottom + 42, plot.x_label, "text", Anchor::kMiddle});
  const auto upright = [&](double y, std::string_view text) {
    svg += fmt::format("<g transform=\"rotate(-90 18 {})\">\n{}</g>\n", coordinate(y),
                       svg_text({18, y, text, "text", Anchor::kMiddle}));
  };
  upright((kTop + kBottom) / 2, plot.y_label);
  upright((kCountsTop + kCountsBottom) / 2, kCount.in(plot.language));
  return svg;
}

std::string legend(const ReliabilityPlot& plot) {
  constexpr double kY = 82, kSize = 12;
  std::string svg;
  double x = kLeft;
  const auto entry = [&](std::string_view style, std::string_view name) {
    svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"/>\n",
                       coordinate(x), coordinate(kY - kSize / 2), kSize, kSize, style);
    svg += svg_text({x + kSize + 7, kY + 4, name, "name"});
    x += kSize + 7 + text_width(name) + 22;
  };
  entry("confidence", fmt::format(fmt::runtime(kMean.in(plot.language)), plot.x_label));
  entry("accuracy", plot.y_label);
  svg += svg_line({x, kY, x + 30, kY, "perfect"});
  return svg + svg_text({x + 37, kY + 4, kPerfect.in(plot.language), "name"});
}

std::string bars(const ReliabilityPlot& plot, index largest) {
  std::string svg;
  for (const ReliabilityBar& bar : plot.bars) {
    if (bar.count == 0) continue;
    const double share = static_cast<double>(bar.count) / static_cast<double>(largest);
    svg += fmt::format("<g><title>{}</title>\n",
                       fmt::format(fmt::runtime(kBar.in(plot.language)), bar.low, bar.high,
                                   bar.count, bar.confidence, bar.accuracy));
    svg += rectangle(bar, {0, 0.5, kBottom, kBottom - y_of(bar.confidence), "confidence"});
    svg += rectangle(bar, {0.5, 1, kBottom, kBottom - y_of(bar.accuracy), "accuracy"});
    svg += rectangle(bar, {0, 1, kCountsBottom, share * (kCountsBottom - kCountsTop), "count"});
    svg += "</g>\n";
  }
  return svg;
}

index largest_of(const ReliabilityPlot& plot) {
  index largest = 0;
  for (const ReliabilityBar& bar : plot.bars) largest = std::max(largest, bar.count);
  return largest;
}

std::string body_of(const ReliabilityPlot& plot) {
  const index largest = largest_of(plot);
  std::string svg = axes(plot, largest) + legend(plot) + bars(plot, largest);
  svg += svg_line({x_of(0), y_of(0), x_of(1), y_of(1), "perfect"});
  svg += svg_line({kLeft, kBottom, kRight, kBottom, "axis"});
  svg += svg_line({kLeft, kCountsBottom, kRight, kCountsBottom, "axis"});
  if (largest == 0) {
    svg += svg_text({(kLeft + kRight) / 2, (kTop + kBottom) / 2, kNothing.in(plot.language), "halo",
                     Anchor::kMiddle});
  }
  return svg + "</svg>\n";
}

}  // namespace

std::string draw_reliability(const ReliabilityPlot& plot) {
  check_bars(plot);
  const SvgPage page{.width = kWidth,
                     .height = kHeight,
                     .title = plot.title,
                     .description = plot.subtitle,
                     .rules = kRules,
                     .dark_rules = kDarkRules};
  return svg_head(page) + svg_ground(page) + svg_text({kLeft, 34, plot.title, "title"}) +
         svg_text({kLeft, 54, plot.subtitle}) + body_of(plot);
}

std::string draw_inline(const ReliabilityPlot& plot) {
  check_bars(plot);
  constexpr double kTitles = 64;
  return svg_inline_head({.width = kWidth,
                          .height = kHeight,
                          .title = plot.title,
                          .description = plot.subtitle,
                          .top = kTitles}) +
         body_of(plot);
}

std::string_view reliability_rules() { return kRules; }
std::string_view reliability_dark_rules() { return kDarkRules; }

}  // namespace fovea

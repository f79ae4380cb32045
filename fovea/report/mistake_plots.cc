// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/mistake_plots.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "fovea/base/check.h"
#include "fovea/report/numbers.h"
#include "fovea/report/svg.h"
#include "fovea/report/terminal.h"

namespace fovea {

namespace {

constexpr std::string_view kConfusionRules = R"(.right{fill:#1f6fc4}
.wrong{fill:#d9570a}
.frame{fill:none;stroke:#8c959f}
.cell{fill:#1f2328;pointer-events:none}
.strong{fill:#fff;pointer-events:none}
.head{font-weight:600;fill:#1f2328}
)";
constexpr std::string_view kConfusionDarkRules = R"(.right{fill:#58a6ff}
.wrong{fill:#ff9248}
.frame{stroke:#6e7681}
.cell{fill:#f0f6fc}
.strong{fill:#0d1117}
.head{fill:#f0f6fc}
)";

constexpr Phrase kRecall = {"recall", "召回率"}, kCount = {"count", "数量"};
constexpr Phrase kPredicted = {"predicted", "预测"}, kTrue = {"true", "真实"};

constexpr double kTop = 92, kMargin = 28;
constexpr index kLongestName = 24;  // columns
constexpr Phrase kTakenFor = {"{} predicted as {}: {} of {} ({:.1f} %)",
                              "{} 被预测为 {}：{} / {}（{:.1f} %）"};
constexpr index kMostWithNumbers = 60;  // classes
constexpr double kStrong = 0.55;        // from this share on, numbers are light

// Where everything is; lengths in pixels.
struct Layout {
  index K = 0;
  std::vector<std::string> names;  // cut
  double cell = 0, left = 0, side = 0;
  double font = 12;      // of names
  bool slanted = false;  // names below the columns
  double below = 0;      // height of the names below

  double x(index column) const { return left + cell * static_cast<double>(column); }
  double y(index row) const { return kTop + cell * static_cast<double>(row); }
  double width() const { return left + side + 122; }
  double height() const { return kTop + side + below + 44; }
};

Layout layout_of(const ConfusionPlot& plot) {
  Layout at;
  at.K = static_cast<index>(plot.labels.size());
  double widest = 0;
  for (const std::string& label : plot.labels) {
    at.names.push_back(fit_columns(label, kLongestName));
    widest = std::max(widest, text_width(at.names.back()));
  }
  at.cell = std::clamp(1300.0 / static_cast<double>(at.K), 10.0, 52.0);
  if (at.K <= kMostWithNumbers) at.cell = std::max(at.cell, 26.0);
  at.font = std::min(12.0, at.cell - 1);
  widest *= at.font / 12;
  at.side = at.cell * static_cast<double>(at.K);
  at.slanted = widest > at.cell - 4;
  at.below = at.slanted ? 14 + 0.75 * widest : 22;
  at.left = std::max(68.0, 44 + widest);
  return at;
}

void check_plot(const ConfusionPlot& plot) {
  const auto K = static_cast<index>(plot.labels.size());
  check(K >= 1 && K <= kMostConfusionClasses,
        "draw_confusion: there are {} classes; it draws 1 to {}", K, kMostConfusionClasses);
  check(static_cast<index>(plot.counts.size()) == K * K,
        "draw_confusion: there are {} counts for {} classes; there must be {}", plot.counts.size(),
        K, K * K);
  for (const index count : plot.counts) {
    check(count >= 0, "draw_confusion: a count is {}; it must not be negative", count);
  }
}

std::string sized_text(const SvgText& text, double size) {
  std::string svg = svg_text(text);
  svg.insert(std::string_view("<text").size(),
             fmt::format(" style=\"font-size:{}px\"", coordinate(size)));
  return svg;
}

// At most five characters: 1234, 12.3k, 123k, 1.2M.
std::string short_count(index count) {
  constexpr std::string_view kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  if (count < 10000) return fmt::format("{}", count);
  double value = static_cast<double>(count);
  std::size_t unit = 0;
  for (; value >= 999.5; value /= 1000) ++unit;
  return fmt::format("{:.{}f}{}", value, value < 99.95 ? 1 : 0, kUnits[unit]);
}

// The whole count if it is readable so.
std::string number(const Layout& at, double x, double y, index count, bool strong) {
  constexpr double kReadable = 9;
  const auto size_of = [&](const std::string& text) {
    return std::clamp((at.cell - 4) / (0.6 * static_cast<double>(text.size())), 6.0, 13.0);
  };
  std::string text = fmt::format("{}", count);
  if (size_of(text) < kReadable) text = short_count(count);
  const double size = size_of(text);
  return sized_text({x + at.cell / 2, y + at.cell / 2 + 0.36 * size, text,
                     strong ? "strong" : "cell", Anchor::kMiddle},
                    size);
}

std::string row_of(const ConfusionPlot& plot, const Layout& at, index t) {
  const index* counts = plot.counts.data() + t * at.K;
  index support = 0;
  for (index p = 0; p < at.K; ++p) support += counts[p];
  std::string svg;
  for (index p = 0; p < at.K; ++p) {
    if (counts[p] == 0) continue;
    const double share = static_cast<double>(counts[p]) / static_cast<double>(support);
    // A single mistake among thousands is visible, too.
    const double shade = std::max(share, 0.05);
    svg += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\" fill-opacity=\"{:.2f}\">"
        "<title>{}</title></rect>\n",
        coordinate(at.x(p)), coordinate(at.y(t)), coordinate(at.cell), coordinate(at.cell),
        p == t ? "right" : "wrong", shade,
        xml_text(fmt::format(
            fmt::runtime(kTakenFor.in(plot.language)), plot.labels[static_cast<std::size_t>(t)],
            plot.labels[static_cast<std::size_t>(p)], counts[p], support, 100 * share)));
    if (at.K <= kMostWithNumbers) {
      svg += number(at, at.x(p), at.y(t), counts[p], share >= kStrong);
    }
  }
  const double y = at.y(t) + at.cell / 2 + 0.36 * at.font, x = at.left + at.side;
  const std::string recall =
      support == 0
          ? "-"
          : fmt::format("{:.3f}", static_cast<double>(counts[t]) / static_cast<double>(support));
  svg += sized_text({at.left - 8, y, at.names[static_cast<std::size_t>(t)], "name", Anchor::kEnd},
                    at.font);
  svg += sized_text({x + 50, y, recall, "text", Anchor::kEnd}, at.font);
  svg += sized_text({x + 104, y, fmt::format("{}", support), "text", Anchor::kEnd}, at.font);
  return svg;
}

std::string column_names(const Layout& at) {
  std::string svg;
  const double y = kTop + at.side;
  for (index p = 0; p < at.K; ++p) {
    const double middle = at.x(p) + at.cell / 2;
    const std::string& name = at.names[static_cast<std::size_t>(p)];
    if (at.slanted) {
      const double x = middle + 0.3 * at.font;
      svg += fmt::format(
          "<g transform=\"rotate(-45 {0} {1})\">\n{2}</g>\n", coordinate(x), coordinate(y + 10),
          sized_text({x, y + 10 + 0.3 * at.font, name, "name", Anchor::kEnd}, at.font));
    } else {
      svg += sized_text({middle, y + 17, name, "name", Anchor::kMiddle}, at.font);
    }
  }
  return svg;
}

std::string grid(const Layout& at) {
  std::string svg;
  for (index k = 1; k < at.K; ++k) {
    svg += svg_line({at.left, at.y(k), at.left + at.side, at.y(k), "grid"});
    svg += svg_line({at.x(k), kTop, at.x(k), kTop + at.side, "grid"});
  }
  return svg;
}

std::string frame(const Layout& at, PageLanguage language) {
  const double right = at.left + at.side, middle = kTop + at.side / 2;
  std::string svg =
      fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"frame\"/>\n",
                  coordinate(at.left), coordinate(kTop), coordinate(at.side), coordinate(at.side));
  svg += svg_text({right + 50, kTop - 8, kRecall.in(language), "text", Anchor::kEnd});
  svg += svg_text({right + 104, kTop - 8, kCount.in(language), "text", Anchor::kEnd});
  svg += svg_text({at.left + at.side / 2, kTop + at.side + at.below + 20, kPredicted.in(language),
                   "head", Anchor::kMiddle});
  svg += fmt::format("<g transform=\"rotate(-90 18 {0})\">\n{1}</g>\n", coordinate(middle),
                     svg_text({18, middle, kTrue.in(language), "head", Anchor::kMiddle}));
  return svg;
}

std::string matrix(const ConfusionPlot& plot, const Layout& at) {
  std::string svg = grid(at);
  for (index t = 0; t < at.K; ++t) svg += row_of(plot, at, t);
  return svg + frame(at, plot.language) + column_names(at) + "</svg>\n";
}

}  // namespace

std::string draw_confusion(const ConfusionPlot& plot) {
  check_plot(plot);
  const Layout at = layout_of(plot);
  const double titles = kMargin + std::max(1.5 * text_width(plot.title), text_width(plot.subtitle));
  const SvgPage page{.width = std::ceil(std::max(at.width(), titles + kMargin)),
                     .height = std::ceil(at.height()),
                     .title = plot.title,
                     .description = plot.subtitle,
                     .rules = kConfusionRules,
                     .dark_rules = kConfusionDarkRules};
  return svg_head(page) + svg_ground(page) + svg_text({kMargin, 34, plot.title, "title"}) +
         svg_text({kMargin, 54, plot.subtitle}) + matrix(plot, at);
}

std::string draw_inline(const ConfusionPlot& plot) {
  check_plot(plot);
  const Layout at = layout_of(plot);
  return svg_inline_head({.width = std::ceil(at.width()),
                          .height = std::ceil(at.height()),
                          .title = plot.title,
                          .description = plot.subtitle,
                          .top = kTop - 26}) +
         matrix(plot, at);
}

std::string_view confusion_rules() { return kConfusionRules; }
std::string_view confusion_dark_rules() { return kConfusionDarkRules; }

namespace {

constexpr double kWidth = 520, kHeight = 600;
constexpr double kLeft = 68, kRight = 496, kBarsTop = 104, kBarsBottom = 440;  // the accuracies
constexpr double kCountsTop = 462, kCountsBottom = 536;

constexpr std::string_view kReliabilityRules = R"(.accuracy{fill:#1f6fc4;fill-opacity:.8}
.confidence{fill:#d9570a;fill-opacity:.8}
.count{fill:#8c959f;fill-opacity:.7}
.perfect{stroke:#1f2328;stroke-width:1.4;stroke-dasharray:5 4}
)";
constexpr std::string_view kReliabilityDarkRules = R"(.accuracy{fill:#58a6ff}
.confidence{fill:#ff9248}
.count{fill:#6e7681}
.perfect{stroke:#f0f6fc}
)";

constexpr Phrase kMean = {"mean {}", "平均{}"};
constexpr Phrase kPerfect = {"perfect", "完美校准"};
constexpr Phrase kBar = {"{:.4g} to {:.4g}: {} predictions, confidence {:.4f}, accuracy {:.4f}",
                         "{:.4g} 到 {:.4g}：{} 个预测，置信度 {:.4f}，准确率 {:.4f}"};
constexpr Phrase kNothing = {"nothing measured yet", "尚无测量值"};

double x_of(double confidence) { return kLeft + confidence * (kRight - kLeft); }
double y_of(double accuracy) { return kBarsBottom - accuracy * (kBarsBottom - kBarsTop); }

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
  upright((kBarsTop + kBarsBottom) / 2, plot.y_label);
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
    svg += rectangle(bar, {0, 0.5, kBarsBottom, kBarsBottom - y_of(bar.confidence), "confidence"});
    svg += rectangle(bar, {0.5, 1, kBarsBottom, kBarsBottom - y_of(bar.accuracy), "accuracy"});
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
  svg += svg_line({kLeft, kBarsBottom, kRight, kBarsBottom, "axis"});
  svg += svg_line({kLeft, kCountsBottom, kRight, kCountsBottom, "axis"});
  if (largest == 0) {
    svg += svg_text({(kLeft + kRight) / 2, (kBarsTop + kBarsBottom) / 2, kNothing.in(plot.language),
                     "halo", Anchor::kMiddle});
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
                     .rules = kReliabilityRules,
                     .dark_rules = kReliabilityDarkRules};
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

std::string_view reliability_rules() { return kReliabilityRules; }
std::string_view reliability_dark_rules() { return kReliabilityDarkRules; }

}  // namespace fovea

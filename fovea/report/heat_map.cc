// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/heat_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "fovea/base/check.h"
#include "fovea/report/svg.h"
#include "fovea/report/terminal.h"

namespace fovea {

namespace {

constexpr std::string_view kRules = R"(.heat{fill:#1f6fc4}
.frame{fill:none;stroke:#8c959f}
.label{font-size:11px}
)";
constexpr std::string_view kDarkRules = R"(.heat{fill:#58a6ff}
.frame{stroke:#6e7681}
)";

constexpr double kTop = 76, kMargin = 28;
constexpr double kFont = 11;         // pixels of a name
constexpr index kLongestName = 18;   // columns of a terminal
constexpr double kFaintest = 0.004;  // a lighter cell cannot be told from the ground

// Where everything is; lengths in pixels.
struct Layout {
  double cell_width, cell_height, left, below;
  double width, height;  // of all cells

  double x(std::size_t column) const { return left + cell_width * static_cast<double>(column); }
  double y(std::size_t row) const { return kTop + cell_height * static_cast<double>(row); }
};

// A name of a column stands upright, a character below the other, if it is one character or all of
// it is as wide as Chinese ones, which are not read lying. Otherwise it is turned.
bool is_upright(const std::string& name, const std::vector<std::string>& glyphs) {
  return glyphs.size() == 1 || display_width(name) == 2 * static_cast<index>(glyphs.size());
}

double widest(const std::vector<std::string>& names) {
  double width = 0;
  for (const std::string& name : names) {
    width = std::max(width, text_width(fit_columns(name, kLongestName)));
  }
  return width * kFont / 12;
}

Layout layout_of(const HeatMap& map) {
  const auto rows = static_cast<double>(map.rows.size());
  const auto columns = static_cast<double>(map.columns.size());
  Layout at{};
  at.cell_width = std::clamp(1120 / columns, 13.0, 40.0);
  at.cell_height = std::clamp(640 / rows, 13.0, 26.0);
  at.left = kMargin + 10 + widest(map.rows);
  at.below = 14 + widest(map.columns);
  at.width = at.cell_width * columns;
  at.height = at.cell_height * rows;
  return at;
}

void check_map(const HeatMap& map) {
  const auto names = [](const std::vector<std::string>& of, std::string_view what) {
    const auto count = static_cast<index>(of.size());
    check(count >= 1 && count <= kMostHeatMapNames,
          "draw_heat_map: there are {} {}; it draws 1 to {}", count, what, kMostHeatMapNames);
  };
  names(map.rows, "rows");
  names(map.columns, "columns");
  check(map.values.size() == map.rows.size() * map.columns.size(),
        "draw_heat_map: there are {} values for {} rows and {} columns; there must be {}",
        map.values.size(), map.rows.size(), map.columns.size(),
        map.rows.size() * map.columns.size());
  for (const double value : map.values) {
    check(std::isfinite(value) && value >= 0,
          "draw_heat_map: a value is {}; it must be finite and not negative", value);
  }
}

std::string cells_of(const HeatMap& map, const Layout& at, std::size_t row, double largest) {
  const std::size_t columns = map.columns.size();
  std::string svg;
  for (std::size_t c = 0; c < columns; ++c) {
    const double value = map.values[row * columns + c];
    const double shade = largest > 0 ? value / largest : 0;
    svg += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"heat\" fill-opacity=\"{:.3f}\">"
        "<title>{}, {}: {:.4g}</title></rect>\n",
        coordinate(at.x(c)), coordinate(at.y(row)), coordinate(at.cell_width),
        coordinate(at.cell_height), shade < kFaintest ? 0 : shade, xml_text(map.rows[row]),
        xml_text(map.columns[c]), value);
  }
  return svg;
}

// Around `x`, from `y` downwards.
std::string column_name(const std::string& name, double x, double y) {
  const std::vector<std::string> glyphs = glyphs_of(name);
  std::string svg;
  if (!is_upright(name, glyphs)) {
    x += 0.36 * kFont;
    return fmt::format("<g transform=\"rotate(-90 {} {})\">\n{}</g>\n", coordinate(x),
                       coordinate(y), svg_text({x, y, name, "name label", Anchor::kEnd}));
  }
  for (const std::string& glyph : glyphs) {
    y += kFont + 1;
    svg += svg_text({x, y - 2, glyph, "name label", Anchor::kMiddle});
  }
  return svg;
}

std::string names_of(const HeatMap& map, const Layout& at) {
  std::string svg;
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const std::string name = fit_columns(map.rows[r], kLongestName);
    svg += svg_text({at.left - 6, at.y(r) + at.cell_height / 2 + 0.36 * kFont, name, "name label",
                     Anchor::kEnd});
  }
  for (std::size_t c = 0; c < map.columns.size(); ++c) {
    svg += column_name(fit_columns(map.columns[c], kLongestName), at.x(c) + at.cell_width / 2,
                       kTop + at.height + 6);
  }
  return svg;
}

}  // namespace

std::string draw_heat_map(const HeatMap& map) {
  check_map(map);
  const Layout at = layout_of(map);
  const double titles = std::max(1.5 * text_width(map.title), text_width(map.subtitle));
  const SvgPage page{.width = std::ceil(std::max(at.left + at.width, kMargin + titles) + kMargin),
                     .height = std::ceil(kTop + at.height + at.below + 20),
                     .title = map.title,
                     .description = map.subtitle,
                     .rules = kRules,
                     .dark_rules = kDarkRules};
  std::string svg = svg_head(page) + svg_ground(page);
  svg += svg_text({kMargin, 34, map.title, "title"}) + svg_text({kMargin, 54, map.subtitle});
  const double largest = *std::max_element(map.values.begin(), map.values.end());
  for (std::size_t row = 0; row < map.rows.size(); ++row) svg += cells_of(map, at, row, largest);
  svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"frame\"/>\n",
                     coordinate(at.left), coordinate(kTop), coordinate(at.width),
                     coordinate(at.height));
  return svg + names_of(map, at) + "</svg>\n";
}

}  // namespace fovea

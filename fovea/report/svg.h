// SPDX-License-Identifier: Apache-2.0
// The few SVG elements that plots use, and the style that they share.
#pragma once

#include <string>
#include <string_view>

namespace fovea {

/// Text for XML 1.0: & < > " are escaped; bytes that are not UTF-8 and characters that XML forbids
/// become U+FFFD.
std::string xml_text(std::string_view text);

/// A coordinate, rounded to a tenth of a pixel.
std::string coordinate(double value);

/// About the pixels that text takes in the font of plots; Chinese characters are twice as wide as
/// letters.
double text_width(std::string_view text);

/// A file. Classes of every plot: ground, title, name, halo, grid, axis.
struct SvgPage {
  double width, height;
  std::string_view title = {}, description = {};
  std::string_view rules = {};       ///< more CSS
  std::string_view dark_rules = {};  ///< likewise, on a dark background
  double top = 0;                    ///< inside a page: what is above is cut off, such as titles
};

/// The begin of the file, up to its style; "</svg>\n" ends it.
std::string svg_head(const SvgPage& page);
std::string svg_ground(const SvgPage& page);

/// The begin of a picture inside an HTML page: its size, title and name, and no style, which the
/// page has once for all (scoped_rules). "</svg>\n" ends it.
std::string svg_inline_head(const SvgPage& page);
/// The CSS of pictures, those of every plot and `rules`, for what is inside of `prefix` alone. Each
/// rule stands on a line of its own.
std::string scoped_rules(std::string_view rules, std::string_view prefix);
std::string scoped_dark_rules(std::string_view dark_rules, std::string_view prefix);

enum class Anchor { kStart, kMiddle, kEnd };

struct SvgText {
  double x, y;
  std::string_view text;
  std::string_view style = "text";  ///< class
  Anchor anchor = Anchor::kStart;
};

std::string svg_text(const SvgText& text);

struct SvgLine {
  double x1, y1, x2, y2;
  std::string_view style;  ///< class
};

std::string svg_line(const SvgLine& line);

}  // namespace fovea

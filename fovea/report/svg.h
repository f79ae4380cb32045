// SPDX-License-Identifier: Apache-2.0
// The few SVG elements that plots use.
#pragma once

#include <string>
#include <string_view>

namespace fovea {

/// Text for XML 1.0: & < > " are escaped; bytes that are not UTF-8 and characters that XML forbids
/// become U+FFFD.
std::string xml_text(std::string_view text);

/// A coordinate, rounded to a tenth of a pixel.
std::string coordinate(double value);

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

// SPDX-License-Identifier: Apache-2.0
// The few elements of SVG that plots are made of.
#pragma once

#include <string>
#include <string_view>

namespace fovea {

/// Text as XML 1.0 can hold it: & < > " escaped, what is no UTF-8 or no XML character as U+FFFD.
std::string xml_text(std::string_view text);

/// A coordinate, to a tenth of a pixel and without needless digits.
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

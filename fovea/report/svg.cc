// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/svg.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <cmath>

namespace fovea {

namespace {

// The characters of XML 1.0 (fifth edition, production 2); c is a Unicode scalar value.
bool is_xml_character(utf8proc_int32_t c) {
  return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c != 0xFFFE && c != 0xFFFF);
}

std::string_view anchor_name(Anchor anchor) {
  switch (anchor) {
    case Anchor::kMiddle:
      return "middle";
    case Anchor::kEnd:
      return "end";
    default:
      return "start";
  }
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    utf8proc_int32_t c = 0;
    const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                    static_cast<utf8proc_ssize_t>(text.size()), &c);
    const auto bytes = n > 0 ? static_cast<std::size_t>(n) : 1;
    if (n <= 0 || !is_xml_character(c)) {
      out += "\uFFFD";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::string coordinate(double value) {
  // Adding 0 turns a negative zero into a positive one.
  return fmt::format("{:g}", std::round(value * 10) / 10 + 0.0);
}

std::string svg_text(const SvgText& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                     coordinate(text.x), coordinate(text.y), text.style, anchor_name(text.anchor),
                     xml_text(text.text));
}

std::string svg_line(const SvgLine& line) {
  return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n",
                     coordinate(line.x1), coordinate(line.y1), coordinate(line.x2),
                     coordinate(line.y2), line.style);
}

}  // namespace fovea

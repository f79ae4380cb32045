// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/svg.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>

#include "fovea/report/terminal.h"

namespace fovea {

namespace {

// They are CSS rules, not attributes, so that a dark page can replace them.
constexpr std::string_view kRules = R"(.ground{fill:#fff}
text{font:12px system-ui,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif;fill:#57606a}
.title{font-size:17px;font-weight:600;fill:#1f2328}
.name{fill:#1f2328}
.halo{fill:#1f2328;stroke:#fff;stroke-width:4px;stroke-linejoin:round;paint-order:stroke}
.grid{stroke:#e7eaee}
.axis{stroke:#8c959f}
)";
constexpr std::string_view kDarkRules = R"(.ground{fill:#0d1117}
text{fill:#9198a1}
.title,.name{fill:#f0f6fc}
.halo{fill:#f0f6fc;stroke:#0d1117}
.grid{stroke:#21262d}
.axis{stroke:#6e7681}
)";

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

// Puts the prefix before each selector; a rule is a line.
std::string scoped(std::string_view rules, std::string_view prefix) {
  std::string out;
  while (!rules.empty()) {
    const std::size_t end = std::min(rules.find('\n'), rules.size() - 1) + 1;
    const std::string_view rule = rules.substr(0, end), names = rule.substr(0, rule.find('{'));
    for (std::size_t begin = 0; begin <= names.size();) {
      const std::size_t comma = std::min(names.find(',', begin), names.size());
      out +=
          fmt::format("{}{} {}", begin > 0 ? "," : "", prefix, names.substr(begin, comma - begin));
      begin = comma + 1;
    }
    out += rule.substr(names.size());
    rules.remove_prefix(end);
  }
  return out;
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

double text_width(std::string_view text) { return 6.6 * static_cast<double>(display_width(text)); }

std::string svg_head(const SvgPage& page) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n<title>{2}</title>\n<desc>{3}</desc>\n<style>\n{4}{5}"
      "@media (prefers-color-scheme:dark){{\n{6}{7}}}\n</style>\n",
      page.width, page.height, xml_text(page.title), xml_text(page.description), kRules, page.rules,
      kDarkRules, page.dark_rules);
}

std::string svg_inline_head(const SvgPage& page) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {0} {1} {2}\" width=\"{1}\" "
      "height=\"{2}\" role=\"img\" aria-label=\"{3}\">\n",
      page.top, page.width, page.height - page.top, xml_text(page.title));
}

std::string scoped_rules(std::string_view rules, std::string_view prefix) {
  return scoped(kRules, prefix) + scoped(rules, prefix);
}
std::string scoped_dark_rules(std::string_view dark_rules, std::string_view prefix) {
  return scoped(kDarkRules, prefix) + scoped(dark_rules, prefix);
}

std::string svg_ground(const SvgPage& page) {
  return fmt::format("<rect class=\"ground\" width=\"{}\" height=\"{}\"/>\n", page.width,
                     page.height);
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

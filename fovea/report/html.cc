// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/html.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdint>

#include "fovea/base/words.h"

namespace fovea {

namespace {

constexpr Phrase kScheme = {"Light or dark", "浅色或深色"};
constexpr Phrase kNoScript = {
    "This page needs JavaScript to draw. It is all in this file: nothing is loaded.",
    "本页需要 JavaScript 才能绘图。脚本全部在本文件之内，不会加载任何外部内容。"};

// Calls f(character) for each character of the text, in order; what is not UTF-8 is U+FFFD.
template <class F>
void for_each_character(std::string_view text, F&& f) {
  while (!text.empty()) {
    utf8proc_int32_t c = 0;
    const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                    static_cast<utf8proc_ssize_t>(text.size()), &c);
    const auto bytes = n > 0 ? static_cast<std::size_t>(n) : 1;
    if (n > 0) {
      f(c, text.substr(0, bytes));
    } else {
      f(utf8proc_int32_t{0xFFFD}, std::string_view("\uFFFD"));
    }
    text.remove_prefix(bytes);
  }
}

// The control characters (but for white space) and noncharacters of the HTML standard.
bool is_forbidden(utf8proc_int32_t c) {
  const bool white = c == '\t' || c == '\n' || c == '\r';
  return (c < 0x20 && !white) || (c >= 0x7F && c < 0xA0) || (c >= 0xFDD0 && c <= 0xFDEF) ||
         (c & 0xFFFE) == 0xFFFE;
}

std::string_view entity(utf8proc_int32_t c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&apos;";
    default:
      return {};
  }
}

std::string policy_of(const HtmlPage& page) {
  std::string scripts;
  const auto allow = [&](std::string_view script) {
    scripts += fmt::format(" 'sha256-{}'", base64(page_file_sha256(script)));
  };
  allow("page.js");
  for (const std::string_view script : page.scripts) allow(script);
  return fmt::format(
      "default-src 'none'; script-src{}; style-src 'unsafe-inline'; img-src data:; "
      "base-uri 'none'; form-action 'none'",
      scripts);
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for_each_character(text, [&](utf8proc_int32_t c, std::string_view bytes) {
    const std::string_view escaped = entity(c);
    out += is_forbidden(c) ? "\uFFFD" : escaped.empty() ? bytes : escaped;
  });
  return out;
}

std::string bdi(std::string_view text) { return fmt::format("<bdi>{}</bdi>", html_text(text)); }

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for_each_character(text, [&](utf8proc_int32_t c, std::string_view bytes) {
    if (c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c == 0x7F ||
        c == 0x2028 || c == 0x2029) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += bytes;
    }
  });
  return out + '"';
}

std::string draw_html(const HtmlPage& page) {
  const std::string title = html_text(page.title);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n{}\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n{}{}</style>\n</head>\n",
      Phrase{"en", "zh-CN"}.in(page.language), kGeneratorMark, policy_of(page), title,
      page_file("page.css"), page.style);
  const std::string_view scheme = kScheme.in(page.language);
  html += fmt::format(
      "<body>\n<header>\n<h1><bdi>{}</bdi></h1>\n<button type=\"button\" id=\"scheme\" "
      "aria-label=\"{}\" title=\"{}\"><span aria-hidden=\"true\"></span></button>\n</header>\n"
      "{}<main>\n{}</main>\n",
      title, scheme, scheme,
      page.scripts.empty() ? ""
                           : fmt::format("<noscript><p class=\"note\">{}</p></noscript>\n",
                                         kNoScript.in(page.language)),
      page.body);
  for (const PageData& data : page.data) {
    html += fmt::format("<script type=\"application/json\" id=\"{}\">", data.id);
    html += data.json;
    html += "</script>\n";
  }
  html += fmt::format("<script>{}</script>\n", page_file("page.js"));
  for (const std::string_view script : page.scripts) {
    html += fmt::format("<script>{}</script>\n", page_file(script));
  }
  return html + "</body>\n</html>\n";
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

#include <cstdlib>

namespace fovea {

namespace {

struct Glyph {
  std::size_t bytes;
  index columns;
};

Glyph first_glyph(std::string_view text) {
  utf8proc_int32_t c = 0;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                      static_cast<utf8proc_ssize_t>(text.size()), &c);
  if (bytes <= 0) return {1, 1};
  return {static_cast<std::size_t>(bytes), utf8proc_charwidth(c)};
}

std::string_view value_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? std::string_view() : value;
}

bool speaks_utf8(const Environment& environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view locale = value_of(environment, name);
    if (locale.empty()) continue;
    return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
  }
  return false;
}

}  // namespace

Terminal inspect_terminal(int descriptor, const Environment& environment) {
  const std::string_view term = value_of(environment, "TERM");
  const std::string_view force = value_of(environment, "CLICOLOR_FORCE");
  Terminal terminal;
  terminal.interactive = ::isatty(descriptor) == 1 && !term.empty() && term != "dumb";
  terminal.color = terminal.interactive || (!force.empty() && force != "0");
  if (!value_of(environment, "NO_COLOR").empty()) terminal.color = false;
  terminal.unicode = speaks_utf8(environment);
  return terminal;
}

Terminal inspect_terminal(int descriptor) {
  return inspect_terminal(descriptor, [](const char* name) { return std::getenv(name); });
}

int terminal_columns(int descriptor) {
  winsize size{};
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

index display_width(std::string_view text) {
  index columns = 0;
  while (!text.empty()) {
    const Glyph glyph = first_glyph(text);
    columns += glyph.columns;
    text.remove_prefix(glyph.bytes);
  }
  return columns;
}

std::vector<std::string> glyphs_of(std::string_view text) {
  std::vector<std::string> glyphs;
  while (!text.empty()) {
    const Glyph glyph = first_glyph(text);
    if (glyph.columns > 0 || glyphs.empty()) glyphs.emplace_back();
    glyphs.back() += text.substr(0, glyph.bytes);
    text.remove_prefix(glyph.bytes);
  }
  return glyphs;
}

std::string fit_columns(std::string_view text, index columns) {
  if (display_width(text) <= columns) return std::string(text);
  constexpr std::string_view kDots = "...";
  if (columns < 3)
    return std::string(kDots.substr(0, columns > 0 ? static_cast<std::size_t>(columns) : 0));
  std::string_view rest = text;
  index used = 3;
  for (;;) {
    const Glyph glyph = first_glyph(rest);
    if (used + glyph.columns > columns) break;
    used += glyph.columns;
    rest.remove_prefix(glyph.bytes);
  }
  return std::string(text.substr(0, text.size() - rest.size())) + std::string(kDots);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/attention_settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fovea/base/option.h"
#include "fovea/base/printable.h"

namespace fovea {

namespace {

template <class Number>
bool parse(std::string_view text, Number& value) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end;
}

}  // namespace

std::optional<double> parse_scale(std::string_view text) {
  if (text == "auto") return std::nullopt;
  double scale = 0;
  if (!parse(text, scale) || !std::isfinite(scale)) {
    fail_option("scale", printable(text), "a finite number, or auto");
  }
  return scale;
}

Reach parse_window(std::string_view text) {
  Reach reach;
  if (text.empty()) return reach;
  const std::size_t comma = std::min(text.find(','), text.size());
  const bool whole = parse(text.substr(0, comma), reach.left) && comma < text.size() &&
                     parse(text.substr(comma + 1), reach.right);
  if (!whole || reach.left < kOpen || reach.right < kOpen) {
    fail_option("window", printable(text), "L,R: two whole numbers, each at least 0, or -1 (open)");
  }
  return reach;
}

std::vector<std::string> parse_observe(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    names.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return names;
}

void check_settings(const AttentionSettings& settings) {
  require_option(settings.dilation >= 1, "dilation", settings.dilation, "at least 1");
  require_option(settings.strided >= 1, "strided", settings.strided, "at least 1");
  require_option(settings.dropout >= 0 && settings.dropout < 1, "dropout", settings.dropout,
                 "at least 0 and less than 1");
}

}  // namespace fovea

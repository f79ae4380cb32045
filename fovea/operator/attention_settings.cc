// SPDX-License-Identifier: Apache-2.0
#include "fovea/operator/attention_settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fovea/base/option.h"
#include "fovea/base/words.h"

namespace fovea {

namespace {

template <class Number>
bool parse(std::string_view text, Number& value) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end;
}

// The parts of a text; none for an empty text.
std::vector<std::string_view> split(std::string_view text, char between) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(between), text.size());
    parts.push_back(text.substr(0, end));
    if (end + 1 == text.size()) parts.emplace_back();  // an empty part after the last separator
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace

AttentionVariant variant_of(const AttentionSettings& settings) {
  return {.score = settings.score,
          .scale = parse_scale(settings.scale),
          .log_n_scale = settings.log_n_scale,
          .softcap = settings.softcap,
          .t5_causal = settings.t5_causal,
          .t5_max_distance = settings.t5_max_distance,
          .order = settings.order,
          .norm = settings.norm,
          .rotary = settings.rotary};
}

std::optional<double> parse_scale(std::string_view text) {
  if (text == "auto") return std::nullopt;
  double scale = 0;
  if (!parse(text, scale) || !std::isfinite(scale)) {
    fail_option("scale", printable(text), "a finite number, or auto", ErrorCode::kOptionValue,
                Hint{"auto is 1 / sqrt(D); write a number as 0.125 or 1e-2"});
  }
  return scale;
}

Reach parse_window(std::string_view text) {
  if (text.empty()) return {};
  const std::vector<index> sides = parse_numbers(text, ',');
  if (sides.size() != 2 || sides[0] < kOpen || sides[1] < kOpen) {
    fail_option("window", printable(text), "L,R: two whole numbers, each at least 0, or -1 (open)",
                ErrorCode::kOptionValue,
                Hint{"8,0 sees 8 keys before the query and none behind it; 8,-1 all behind it"});
  }
  return {sides[0], sides[1]};
}

std::vector<ObserveWish> parse_observe(std::string_view text) {
  std::vector<ObserveWish> wishes;
  for (const std::string_view item : split(text, ',')) {
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::string name(item.substr(0, equals));
    if (find_named(wishes, name) != nullptr) {
      fail_option("observe", printable(text), "names, each once", ErrorCode::kOptionValue,
                  Hint{fmt::format("name {} once", name)});
    }
    wishes.push_back({name, std::string(item.substr(std::min(equals + 1, item.size())))});
  }
  return wishes;
}

void check_settings(const AttentionSettings& settings) {
  require_option(settings.log_n_scale == 0 || settings.log_n_scale > 1, "log_n_scale",
                 settings.log_n_scale, "above 1, or 0 (none)");
  require_option(settings.softcap >= 0, "softcap", settings.softcap, "above 0, or 0 (none)");
  require_option(settings.dilation >= 1, "dilation", settings.dilation, "at least 1");
  require_option(settings.strided >= 1, "strided", settings.strided, "at least 1");
  require_option(settings.dropout >= 0 && settings.dropout < 1, "dropout", settings.dropout,
                 "at least 0 and less than 1");
  if (!settings.t5_bidirectional || !settings.t5_causal) return;
  throw Error(ErrorCode::kUsage, "--t5-bidirectional and --t5-causal exclude each other",
              "leave one out: the first is for keys on both sides, the second for those before the "
              "query");
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/class_weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "fovea/base/check.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

[[noreturn]] void fail_weights(const std::string& option, const std::string& what) {
  throw Error(
      ErrorCode::kOptionValue, fmt::format("--class-weights {}: {}", escape_text(option), what),
      "write none, balanced, or such as good=1,bad=2.5; a label with a comma in double quotes");
}

std::vector<double> balanced(const LabelCounts& found) {
  std::vector<double> weights;
  const auto texts = static_cast<double>(found.texts);
  for (const index count : found.counts) {
    const auto n = static_cast<double>(std::max<index>(count, 1));
    // A label that all texts have keeps a weight.
    weights.push_back(found.multi_label ? std::max(texts - n, 1.0) / n
                                        : texts / (static_cast<double>(found.counts.size()) * n));
  }
  return weights;
}

// Takes "LABEL=" off `rest`. A label with a comma stands in quotes, each quote in it twice.
std::string take_label(std::string_view& rest, const std::string& option) {
  std::string label;
  std::size_t equals = std::string_view::npos;
  if (rest.starts_with('"')) {
    std::size_t at = 1;
    for (; at < rest.size(); ++at) {
      const bool quote = rest[at] == '"';
      if (quote && rest.substr(at + 1, 1) != "\"") break;
      label += rest[at];
      if (quote) ++at;
    }
    if (rest.substr(std::min(at, rest.size())).starts_with("\"=")) equals = at + 1;
  } else {
    const std::string_view part = rest.substr(0, rest.find(','));
    equals = part.rfind('=');
    label = part.substr(0, equals);
  }
  if (equals == std::string_view::npos) {
    fail_weights(option, fmt::format("expected LABEL=NUMBER, got {}",
                                     escape_text(rest.substr(0, rest.find(',')))));
  }
  rest.remove_prefix(equals + 1);
  return label;
}

void set_weight(std::vector<double>& weights, std::string_view& rest, const std::string& option,
                const LabelSet& labels) {
  const std::string label = take_label(rest, option);
  const std::string_view digits = rest.substr(0, rest.find(','));
  rest.remove_prefix(digits.size());
  double weight = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), weight);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(weight) ||
      weight <= 0) {
    fail_weights(option, fmt::format("expected a number above 0, got '{}'", escape_text(digits)));
  }
  const std::int32_t id = labels.find(label);
  if (id < 0) fail_weights(option, fmt::format("no text has the label {}", escape_text(label)));
  double& known = weights[static_cast<std::size_t>(id)];
  if (!std::isnan(known)) {
    fail_weights(option, fmt::format("the label {} has two weights", escape_text(label)));
  }
  known = weight;
}

}  // namespace

std::vector<double> class_weights(const std::string& option, const LabelSet& labels,
                                  const LabelCounts& found) {
  if (option == "none") return {};
  if (option == "balanced") return balanced(found);
  constexpr double kNotSaid = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> weights(static_cast<std::size_t>(labels.size()), kNotSaid);
  for (std::string_view rest = option;; rest.remove_prefix(1)) {
    set_weight(weights, rest, option, labels);
    if (rest.empty()) break;
  }
  std::replace_if(
      weights.begin(), weights.end(), [](double w) { return std::isnan(w); }, 1.0);
  return weights;
}

}  // namespace fovea

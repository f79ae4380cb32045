// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/class_weights.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "fovea/base/check.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

[[noreturn]] void fail_weights(const std::string& option, const std::string& what) {
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--class-weights {}: {}", escape_text(option), what),
              "write none, balanced, or such as good=1,bad=2.5");
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

void set_weight(std::vector<double>& weights, std::string_view part, const std::string& option,
                const LabelSet& labels) {
  const std::size_t equals = part.rfind('=');
  if (equals == std::string_view::npos) {
    fail_weights(option, fmt::format("expected LABEL=NUMBER, got {}", escape_text(part)));
  }
  const std::string label(part.substr(0, equals));
  const std::string_view digits = part.substr(equals + 1);
  double weight = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), weight);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(weight) ||
      weight <= 0) {
    fail_weights(option, fmt::format("expected a number above 0, got '{}'", escape_text(digits)));
  }
  const std::int32_t id = labels.find(label);
  if (id < 0) fail_weights(option, fmt::format("no text has the label {}", escape_text(label)));
  weights[static_cast<std::size_t>(id)] = weight;
}

}  // namespace

std::vector<double> class_weights(const std::string& option, const LabelSet& labels,
                                  const LabelCounts& found) {
  if (option == "none") return {};
  if (option == "balanced") return balanced(found);
  std::vector<double> weights(static_cast<std::size_t>(labels.size()), 1.0);
  std::string_view rest = option;
  while (true) {
    const std::size_t comma = rest.find(',');
    set_weight(weights, rest.substr(0, comma), option, labels);
    if (comma == std::string_view::npos) return weights;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/text_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fovea/base/option.h"
#include "fovea/report/terminal.h"
#include "fovea/report/token_text.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr index kMostHeadLines = 16;

std::string head_line(const ExplainedLayer& layer, std::string_view name, index head,
                      const std::string& strongest) {
  const auto at = static_cast<std::size_t>(head - 1);
  const auto number = [&](const std::vector<double>& values) {
    return values.empty() ? std::string("-") : fmt::format("{:.2f}", values[at]);
  };
  return fmt::format("{} {:>4} {:>8} {:>9} {:>8.3f}  {}\n", name, head, number(layer.entropy),
                     number(layer.distance), layer.largest[at], strongest);
}

// With places for what is explained, the source, and what becomes 0.
std::string_view sentence_of(SaliencyMethod method) {
  if (method == SaliencyMethod::kRollout) return "Rollout of {0} ({1}).";
  if (method == SaliencyMethod::kGradient) {
    return "Length of the gradient of {0} ({1}): how fast it changes with {2}.";
  }
  return "Gradient x input of {0} ({1}): to first order, what it would lose if {2} became {3}.";
}

}  // namespace

TokenWindow window_of(const std::string& text, std::string_view option, index first, index tokens) {
  TokenWindow window;
  const char* const end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, window.begin);
  window.end = window.begin;
  bool valid = error == std::errc();
  if (valid && rest != end) {
    valid = *rest == '-';
    if (valid) {
      const auto second = std::from_chars(rest + 1, end, window.end);
      valid = second.ec == std::errc() && second.ptr == end;
    }
  }
  if (!valid || window.begin < first || window.end < window.begin || window.end >= first + tokens) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--{} {}: expected A-B within {}-{}", option, excerpt(text), first,
                            first + tokens - 1),
                fmt::format("the {} has that many", option == "steps" ? "sample" : "text"));
  }
  return {window.begin - first, window.end - first + 1};
}

std::string wrapped(std::string_view text, index columns) {
  std::string lines;
  index used = 0;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    const index width = display_width(word);
    if (used > 0 && used + 1 + width > columns) {
      lines += '\n';
      used = 0;
    }
    if (used > 0) lines += ' ';
    lines += word;
    used += width + (used > 0 ? 1 : 0);
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return lines + '\n';
}

std::string sized(std::string_view text, index columns) {
  const std::string fitted = fit_columns(text, columns);
  return fitted + std::string(static_cast<std::size_t>(columns - display_width(fitted)), ' ');
}

double largest_of(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

std::vector<float> mean_weights(const ExplainedLayer& layer, index head, index sequence) {
  std::vector<double> sums(static_cast<std::size_t>(layer.queries * layer.keys));
  index count = 0;
  for (index s = 0; s < layer.sequences; ++s) {
    if (sequence >= 0 && s != sequence) continue;
    for (index h = 1; h <= layer.heads; ++h) {
      if (head > 0 && h != head) continue;
      const std::span<const float> weights = layer.head(h, s).weights;
      for (std::size_t cell = 0; cell < sums.size(); ++cell) sums[cell] += double{weights[cell]};
      ++count;
    }
  }
  std::vector<float> mean(sums.size());
  for (std::size_t cell = 0; cell < sums.size(); ++cell) {
    mean[cell] = static_cast<float>(sums[cell] / static_cast<double>(count));
  }
  return mean;
}

std::string heads_shown(const ExplainedLayer& layer, index head) {
  if (head > 0) return fmt::format("head {}", head);
  return layer.heads == 1 ? "its only head" : fmt::format("mean of {} heads", layer.heads);
}

std::string prediction_lines(const Explanation& explanation, index columns) {
  if (explanation.translation) {
    const auto& [text, is_given, tokens, probabilities, total] = *explanation.translation;
    return wrapped(fmt::format("{}: {}", is_given ? "given translation" : "translation",
                               escape_text(text)),
                   columns) +
           fmt::format("log-probability: {:.4f}\n", total);
  }
  if (explanation.prediction.empty()) return fmt::format("number: {}\n", explanation.number);
  constexpr std::size_t kMost = 5;
  const bool next = explanation.predicts_next;
  std::string line = next ? "next token:" : "label:";
  const std::size_t count = std::min(explanation.prediction.size(), kMost);
  for (std::size_t n = 0; n < count; ++n) {
    const auto& [label, probability] = explanation.prediction[n];
    const std::string name =
        fit_columns(next ? shown_token(label) : escape_text(label), kLongestToken);
    line += fmt::format("{} {} {:.4f}", n > 0 ? "," : "", name, probability);
  }
  if (count < explanation.prediction.size()) {
    line += fmt::format(", and {} more", explanation.prediction.size() - count);
  }
  return wrapped(line, columns);
}

std::string head_table(const Explanation& explanation, index layer, index columns,
                       const StrongestText& strongest) {
  constexpr index kNumbers = 35;  // columns of all but the names
  struct Line {
    const ExplainedLayer* layer;
    index head;
    std::string strongest;
  };
  index count = 0;
  for (const ExplainedLayer& one : explanation.layers) count += one.heads;
  const bool all = count <= kMostHeadLines && layer == 0;
  const std::size_t layers = explanation.layers.size();
  const auto chosen = static_cast<std::size_t>(explanation.shown_layer(layer) - 1);
  std::vector<Line> lines;
  index widest = 5, longest = 10;
  for (std::size_t n = 0; n < layers; ++n) {
    const ExplainedLayer& one = explanation.layers[n];
    if (!all && n != chosen) continue;
    widest = std::max(widest, display_width(one.name));
    for (index head = 1; head <= one.heads; ++head) {
      lines.push_back({&one, head, strongest(one, head)});
      longest = std::max(longest, display_width(lines.back().strongest));
    }
  }
  widest = std::min(widest, std::max<index>(8, columns - kNumbers - longest));
  std::string text = fmt::format("{} {:>4} {:>8} {:>9} {:>8}  {}\n", sized("layer", widest), "head",
                                 "entropy", "distance", "largest", "from -> to");
  for (const Line& line : lines) {
    text += head_line(*line.layer, sized(line.layer->name, widest), line.head, line.strongest);
  }
  if (!all && layers > 1) {
    text += fmt::format("(layer {} of {}; --layer N shows another)\n", chosen + 1, layers);
  }
  return text;
}

std::string side_name_of(SaliencyMethod method) {
  if (method == SaliencyMethod::kRollout) return "rollout";
  return method == SaliencyMethod::kGradient ? "length of gradient" : "gradient x input";
}

std::string saliency_lines(const Explanation& explanation, index columns) {
  const Saliency& saliency = explanation.saliency;
  if (saliency.values.empty()) return "";
  const bool numbers = explanation.numbers.has_value();
  // A model sees numbers less their mean in training.
  if (saliency.exact) return wrapped(exact_sum_note(saliency).english, columns);
  return wrapped(
      fmt::format(fmt::runtime(sentence_of(saliency.method)),
                  filled(saliency.of, QuoteLength::kShort).english, source_of(saliency.method),
                  numbers ? "the numbers" : "the token's embedding",
                  numbers ? "the means of the training" : "0"),
      columns);
}

std::string warning_of_weights(const Explanation& explanation, index columns) {
  return explanation.has_weights() ? wrapped(kWeightsAreNoExplanation, columns) : "";
}

std::string shown_token(std::string_view token) {
  std::string text;
  for (const char c : escape_text(token)) {
    if (c == ' ') {
      text += "\u2423";
    } else {
      text += c;
    }
  }
  // Joiners and marks alone, and wide spaces, leave nothing to see.
  return display_width(text) == 0 || is_all_spaces(text) ? visible(token) : text;
}

}  // namespace fovea

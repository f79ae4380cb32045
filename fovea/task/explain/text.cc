// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "fovea/base/option.h"
#include "fovea/report/head_statistics.h"
#include "fovea/report/terminal_map.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr index kMostHeadLines = 16;
constexpr index kPairName = 10;  // columns of a token's name

struct Window {
  index begin = 0, end = 0;  // from 0
};

// "A-B" or "A", from 1.
Window window_of(const std::string& text, index tokens) {
  Window window;
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
  if (!valid || window.begin < 1 || window.end < window.begin || window.end > tokens) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--tokens {}: expected A-B within 1-{}", excerpt(text), tokens),
                "the text has that many tokens");
  }
  --window.begin;
  return window;
}

// Words in lines of at most so many columns.
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

// The mean of the heads, or one of them: [T, T].
std::vector<float> map_of(const ExplainedLayer& layer, index head) {
  const std::size_t count = layer.weights.size() / static_cast<std::size_t>(layer.heads);
  const float* const weights = layer.weights.data();
  if (head > 0) {
    const float* const one = weights + static_cast<std::size_t>(head - 1) * count;
    return {one, one + count};
  }
  std::vector<float> mean(count);
  for (std::size_t n = 0; n < count; ++n) {
    double sum = 0;
    for (index h = 0; h < layer.heads; ++h) {
      sum += double{weights[static_cast<std::size_t>(h) * count + n]};
    }
    mean[n] = static_cast<float>(sum / static_cast<double>(layer.heads));
  }
  return mean;
}

double largest_of(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

std::string side_name_of(SaliencyMethod method) {
  if (method == SaliencyMethod::kRollout) return "rollout";
  return method == SaliencyMethod::kGradient ? "length of gradient" : "gradient x input";
}

// With places for what is explained, and the source.
std::string_view sentence_of(SaliencyMethod method) {
  if (method == SaliencyMethod::kRollout) return "Rollout of {} ({}).";
  if (method == SaliencyMethod::kGradient) {
    return "Length of the gradient of {} ({}): how fast it changes with the token's embedding.";
  }
  return "Gradient x input of {} ({}): to first order, what it would lose if the token's embedding "
         "became 0.";
}

class ExplanationText {
 public:
  ExplanationText(const Explanation& explanation, const ExplainView& view, const Terminal& terminal,
                  index columns)
      : explanation_(explanation),
        view_(view),
        terminal_(terminal),
        columns_(columns),
        tokens_(static_cast<index>(explanation.tokens.size())) {
    for (const std::string& token : explanation.tokens) names_.push_back(shown_token(token));
  }

  std::string text() {
    choose_window();
    std::string text = prediction() + counts();
    const auto add = [&](const std::string& part) { text += '\n' + part; };
    if (!explanation_.layers.empty()) {
      add(heads());
      add(layer_map());
    }
    if (!explanation_.pooling.empty()) add(pooling());
    if (explanation_.layers.empty() && has_saliency()) add(saliency_list());
    if (window_.end - window_.begin < tokens_) {
      text += wrapped(fmt::format("Shown: tokens {} to {} of {}. --tokens A-B shows others, --page "
                                  "FILE all of them.",
                                  window_.begin + 1, window_.end, tokens_),
                      columns_);
    }
    add(saliency_words());
    for (const Words& note : explanation_.notes) text += wrapped(note.english, columns_);
    return text + wrapped(kWeightsAreNoExplanation, columns_);
  }

 private:
  bool has_saliency() const { return !explanation_.saliency.values.empty(); }

  void choose_window() {
    const index fit = most_map_columns(columns_, tokens_, has_saliency());
    window_ = {0, tokens_};
    if (!view_.tokens.empty()) {
      window_ = window_of(view_.tokens, tokens_);
    } else if (explanation_.kind == "language model") {
      window_.begin = std::max<index>(0, tokens_ - fit);
    }
    window_.end = std::min(window_.end, window_.begin + fit);
  }

  std::string prediction() const {
    if (explanation_.prediction.empty()) return fmt::format("number: {}\n", explanation_.number);
    constexpr std::size_t kMost = 5;
    const bool next = explanation_.kind == "language model";
    std::string line = next ? "next token:" : "label:";
    const std::size_t count = std::min(explanation_.prediction.size(), kMost);
    for (std::size_t n = 0; n < count; ++n) {
      const auto& [label, probability] = explanation_.prediction[n];
      const std::string name = next ? shown_token(label) : escape_text(label);
      line += fmt::format("{} {} {:.4f}", n > 0 ? "," : "", name, probability);
    }
    if (count < explanation_.prediction.size()) {
      line += fmt::format(", and {} more", explanation_.prediction.size() - count);
    }
    return wrapped(line, columns_);
  }

  std::string counts() const {
    if (explanation_.cut == 0) return fmt::format("tokens: {}\n", tokens_);
    return fmt::format("tokens: {} ({} more were cut)\n", tokens_, explanation_.cut);
  }

  // "5 film -> 4 fine"
  std::string pair_of(index at) const {
    const auto name = [&](index token) {
      return fmt::format("{} {}", token + 1,
                         fit_columns(names_[static_cast<std::size_t>(token)], kPairName));
    };
    return fmt::format("{} -> {}", name(at / tokens_), name(at % tokens_));
  }

  std::string head_line(const ExplainedLayer& layer, std::string_view name, index head) const {
    const auto at = static_cast<std::size_t>(head - 1);
    const auto number = [&](const std::vector<double>& values) {
      return values.empty() ? std::string("-") : fmt::format("{:.2f}", values[at]);
    };
    const index largest = strongest_cell(layer.head(head, tokens_));
    return fmt::format("{} {:>4} {:>8} {:>9} {:>8.3f}  {}\n", name, head, number(layer.entropy),
                       number(layer.distance), layer.largest[at], pair_of(largest));
  }

  // Every head; of many, those of the layer that is shown.
  std::string heads() const {
    index count = 0, widest = 5;
    for (const ExplainedLayer& layer : explanation_.layers) {
      count += layer.heads;
      widest = std::max(widest, display_width(layer.name));
    }
    const bool all = count <= kMostHeadLines && view_.layer == 0;
    std::string text = fmt::format("{} {:>4} {:>8} {:>9} {:>8}  {}\n", sized("layer", widest),
                                   "head", "entropy", "distance", "largest", "from -> to");
    for (std::size_t n = 0; n < explanation_.layers.size(); ++n) {
      const ExplainedLayer& layer = explanation_.layers[n];
      if (!all && &layer != &chosen_layer()) continue;
      for (index head = 1; head <= layer.heads; ++head) {
        text += head_line(layer, sized(layer.name, widest), head);
      }
    }
    if (!all && explanation_.layers.size() > 1) {
      text += fmt::format("(layer {} of {}; --layer N shows another)\n", chosen_number() + 1,
                          explanation_.layers.size());
    }
    return text;
  }

  std::size_t chosen_number() const {
    return view_.layer > 0 ? static_cast<std::size_t>(view_.layer - 1)
                           : explanation_.layers.size() - 1;
  }
  const ExplainedLayer& chosen_layer() const { return explanation_.layers[chosen_number()]; }

  std::vector<std::string> names_shown() const {
    return {names_.begin() + window_.begin, names_.begin() + window_.end};
  }

  void add_side(TerminalMap& map) const {
    if (!has_saliency()) return;
    const Saliency& saliency = explanation_.saliency;
    map.side.assign(saliency.values.begin() + window_.begin, saliency.values.begin() + window_.end);
    map.largest_side = largest_of(saliency.values);
    map.side_name = side_name_of(saliency.method);
  }

  std::string layer_map() const {
    const ExplainedLayer& layer = chosen_layer();
    const std::vector<float> weights = map_of(layer, view_.head);
    TerminalMap map{.rows = names_shown(),
                    .columns = names_shown(),
                    .largest = largest_of(weights),
                    .first_row = window_.begin + 1,
                    .first_column = window_.begin + 1};
    for (index i = window_.begin; i < window_.end; ++i) {
      const auto row = weights.begin() + i * tokens_;
      map.values.insert(map.values.end(), row + window_.begin, row + window_.end);
    }
    add_side(map);
    const std::string which = view_.head > 0     ? fmt::format("head {}", view_.head)
                              : layer.heads == 1 ? std::string("its only head")
                                                 : fmt::format("mean of {} heads", layer.heads);
    return wrapped(fmt::format("{}, {}: a row is a token that looks, a column one that it looks "
                               "at; a blank cell is masked or exactly 0",
                               layer.name, which),
                   columns_) +
           draw_terminal_map(map, terminal_);
  }

  std::string pooling() const {
    TerminalMap map{
        .rows = {"pooled"}, .columns = names_shown(), .largest = largest_of(explanation_.pooling)};
    map.values.assign(explanation_.pooling.begin() + window_.begin,
                      explanation_.pooling.begin() + window_.end);
    return "attention as pooling: the weight of each token in the pooled text\n" +
           draw_terminal_map(map, terminal_);
  }

  std::string saliency_list() const {
    TerminalMap map{.rows = names_shown(), .first_row = window_.begin + 1};
    add_side(map);
    return draw_terminal_map(map, terminal_);
  }

  std::string saliency_words() const {
    const Saliency& saliency = explanation_.saliency;
    if (!has_saliency()) return "";
    return wrapped(fmt::format(fmt::runtime(sentence_of(saliency.method)), saliency.of.english,
                               source_of(saliency.method)),
                   columns_);
  }

  const Explanation& explanation_;
  const ExplainView& view_;
  const Terminal& terminal_;
  index columns_, tokens_;
  std::vector<std::string> names_;
  Window window_;
};

}  // namespace

void check_view(const ExplainView& view, const Explanation& explanation) {
  const auto layers = static_cast<index>(explanation.layers.size());
  require_option(view.layer >= 0 && view.layer <= layers, "layer", view.layer, "0 to {}", layers);
  const std::size_t number = static_cast<std::size_t>(view.layer > 0 ? view.layer : layers);
  const index heads = number > 0 ? explanation.layers[number - 1].heads : 0;
  require_option(view.head >= 0 && view.head <= heads, "head", view.head, "0 to {}", heads);
  if (!view.tokens.empty()) {
    window_of(view.tokens, static_cast<index>(explanation.tokens.size()));
  }
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
  return text;
}

std::string explanation_text(const Explanation& explanation, const ExplainView& view,
                             const Terminal& terminal, index columns) {
  return ExplanationText(explanation, view, terminal, std::max<index>(60, columns)).text();
}

}  // namespace fovea

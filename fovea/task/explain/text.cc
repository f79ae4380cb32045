// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "fovea/base/option.h"
#include "fovea/report/terminal_map.h"
#include "fovea/task/explain/text_parts.h"

namespace fovea {

namespace {

constexpr index kPairName = 10;  // columns of a token's name

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
    std::string text = prediction_lines(explanation_, columns_) + counts();
    const auto add = [&](const std::string& part) { text += '\n' + part; };
    if (!explanation_.layers.empty()) {
      add(head_table(explanation_, view_.layer, columns_,
                     [&](const ExplainedLayer& layer, index head) {
                       return pair_of(strongest_weight(layer, head, tokens_));
                     }));
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
    add(saliency_lines(explanation_, columns_));
    for (const Words& note : explanation_.notes) text += wrapped(note.english, columns_);
    return text + wrapped(kWeightsAreNoExplanation, columns_);
  }

 private:
  bool has_saliency() const { return !explanation_.saliency.values.empty(); }

  void choose_window() {
    const index fit = most_map_columns(columns_, tokens_, has_saliency());
    window_ = {0, tokens_};
    if (!view_.tokens.empty()) {
      window_ = window_of(view_.tokens, "tokens", 1, tokens_);
    } else if (explanation_.kind == "language model") {
      window_.begin = std::max<index>(0, tokens_ - fit);
    }
    window_.end = std::min(window_.end, window_.begin + fit);
  }

  std::string counts() const {
    if (explanation_.cut == 0) return fmt::format("tokens: {}\n", tokens_);
    return fmt::format("tokens: {} ({} more were cut)\n", tokens_, explanation_.cut);
  }

  // "5 film -> 4 fine"
  std::string pair_of(const StrongestWeight& at) const {
    const auto name = [&](index token) {
      return fmt::format("{} {}", token + 1,
                         fit_columns(names_[static_cast<std::size_t>(token)], kPairName));
    };
    return fmt::format("{} -> {}", name(at.query), name(at.key));
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
    const std::vector<float> weights = mean_weights(layer, tokens_, view_.head);
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
    return wrapped(fmt::format("{}, {}: a row is a token that looks, a column one that it looks "
                               "at; a blank cell is masked or exactly 0",
                               layer.name, heads_shown(layer, view_.head)),
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

  const Explanation& explanation_;
  const ExplainView& view_;
  const Terminal& terminal_;
  index columns_, tokens_;
  std::vector<std::string> names_;
  TokenWindow window_;
};

}  // namespace

void check_view(const ExplainView& view, const Explanation& explanation) {
  const auto layers = static_cast<index>(explanation.layers.size());
  require_option(view.layer >= 0 && view.layer <= layers, "layer", view.layer, "0 to {}", layers);
  const std::size_t number = static_cast<std::size_t>(view.layer > 0 ? view.layer : layers);
  const index heads = number > 0 ? explanation.layers[number - 1].heads : 0;
  require_option(view.head >= 0 && view.head <= heads, "head", view.head, "0 to {}", heads);
  if (!view.tokens.empty()) {
    window_of(view.tokens, "tokens", 1, static_cast<index>(explanation.tokens.size()));
  }
}

std::string explanation_text(const Explanation& explanation, const ExplainView& view,
                             const Terminal& terminal, index columns) {
  return ExplanationText(explanation, view, terminal, std::max<index>(60, columns)).text();
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/option.h"
#include "fovea/explain/text_parts.h"
#include "fovea/report/terminal_plot.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr index kPairName = 10;  // columns of a token's name

std::string without_blanks_at_end(std::string text) {
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

class ExplanationText {
 public:
  ExplanationText(const Explanation& explanation, const ExplainView& view, const Terminal& terminal,
                  index columns)
      : explanation_(explanation),
        view_(view),
        terminal_(terminal),
        columns_(columns),
        tokens_(static_cast<index>(explanation.tokens.size())),
        names_(names_of(explanation.tokens)) {}

  std::string text() {
    choose_window();
    std::string text = explanation_.tags.empty()
                           ? prediction_lines(explanation_, columns_) + counts()
                           : counts() + tags();
    const auto add = [&](const std::string& part) { text += '\n' + part; };
    if (!explanation_.layers.empty()) {
      add(head_table(explanation_, view_.layer, columns_,
                     [&](const ExplainedLayer& layer, index head) {
                       return pair_of(layer, strongest_weight(layer, head));
                     }));
      add(layer_map());
    }
    if (!explanation_.pooling.empty()) add(pooling());
    const bool is_beside = !explanation_.layers.empty() && place() == AttentionPlace::kText;
    if (!is_beside && has_saliency()) add(saliency_list());
    text += what_is_shown();
    add(saliency_lines(explanation_, columns_));
    for (const Words& note : explanation_.notes) text += wrapped(note.english, columns_);
    return text + wrapped(kWeightsAreNoExplanation, columns_);
  }

 private:
  static std::vector<std::string> names_of(const std::vector<std::string>& tokens) {
    std::vector<std::string> names;
    for (const std::string& token : tokens) names.push_back(shown_token(token));
    return names;
  }

  bool has_saliency() const { return !explanation_.saliency.values.empty(); }
  AttentionPlace place() const {
    return explanation_.layers.empty() ? AttentionPlace::kText : chosen_layer().place;
  }

  // Chooses the keys that fit; the tokens of the text are cut, too, if they are these.
  void choose_window() {
    const LayerTokens keys = explanation_.layers.empty() ? LayerTokens{explanation_.tokens}
                                                         : keys_of(explanation_, chosen_layer());
    const auto count = static_cast<index>(keys.tokens.size());
    const bool has_side = place() != AttentionPlace::kText || has_saliency();
    const index fit = most_map_columns(columns_, std::max(count, tokens_), has_side);
    keys_ = {0, count};
    if (!view_.tokens.empty()) {
      keys_ = window_of(view_.tokens, "tokens", keys.first, count);
    } else if (explanation_.kind == ExplainedKind::kLanguageModel) {
      keys_.begin = std::max<index>(0, count - fit);
    }
    keys_.end = std::min(keys_.end, keys_.begin + fit);
    first_key_ = keys.first;
    is_cut_ = keys_.end - keys_.begin < count;
    window_ = place() == AttentionPlace::kDecoder ? TokenWindow{0, tokens_} : keys_;
  }

  std::string what_is_shown() const {
    if (!is_cut_) return "";
    const std::string_view whose = !explanation_.translation             ? ""
                                   : place() == AttentionPlace::kDecoder ? " of the translation"
                                                                         : " of the source";
    const auto count = place() == AttentionPlace::kDecoder ? explanation_.translation->tokens.size()
                                                           : explanation_.tokens.size();
    return wrapped(fmt::format("Shown: tokens {} to {} of {}{}. --tokens A-B shows others, --page "
                               "FILE all of them.",
                               keys_.begin + first_key_, keys_.end + first_key_ - 1, count, whose),
                   columns_);
  }

  // A line for each token, as many columns of tags beside it as fit, and below them the others.
  std::string tags() const {
    constexpr index kName = 20, kTag = 18, kOfColumn = kTag + 9;
    const auto all = static_cast<index>(explanation_.tags.size());
    const index fit = std::max<index>(1, (columns_ - kName - 6) / kOfColumn);
    std::string text;
    for (index begin = 0; begin < all; begin += fit) {
      const auto shown = std::span(explanation_.tags)
                             .subspan(static_cast<std::size_t>(begin),
                                      static_cast<std::size_t>(std::min(fit, all - begin)));
      text += tag_lines(shown, {std::min(kName, widest_name()), std::min(kTag, widest_tag())});
    }
    return text;
  }

  struct TagWidths {
    index name, tag;
  };

  std::string tag_lines(std::span<const ExplainedTags> columns, TagWidths widths) const {
    std::string text = '\n' + sized("", 6 + widths.name);
    for (const ExplainedTags& tags : columns) {
      text += "  " + sized(tags.column.empty() ? "tag" : "column " + escape_text(tags.column),
                           widths.tag + 7);
    }
    text = without_blanks_at_end(std::move(text)) + '\n';
    for (index token = window_.begin; token < window_.end; ++token) {
      const auto t = static_cast<std::size_t>(token);
      text += fmt::format("{:>5} {}", token + 1, sized(names_[t], widths.name));
      for (const ExplainedTags& tags : columns) {
        text += fmt::format("  {} {:.4f}", sized(escape_text(tags.tags[t]), widths.tag),
                            tags.probabilities[t]);
      }
      text += '\n';
    }
    return text;
  }

  index widest_tag() const {
    index widest = 3;
    for (const ExplainedTags& tags : explanation_.tags) {
      for (const std::string& tag : tags.tags) {
        widest = std::max(widest, display_width(escape_text(tag)));
      }
    }
    return widest;
  }

  index widest_name() const {
    index widest = 5;
    for (const std::string& name : names_) widest = std::max(widest, display_width(name));
    return widest;
  }

  std::string counts() const {
    if (explanation_.translation) {
      return fmt::format("tokens: {} of the source, {} of the translation, with their ends\n",
                         tokens_, explanation_.translation->tokens.size());
    }
    if (explanation_.cut == 0) return fmt::format("tokens: {}\n", tokens_);
    return fmt::format("tokens: {} ({} more were cut)\n", tokens_, explanation_.cut);
  }

  // "5 film -> 4 fine"
  std::string pair_of(const ExplainedLayer& layer, const StrongestWeight& at) const {
    const auto name = [](const LayerTokens& side, index token) {
      return fmt::format(
          "{} {}", token + side.first,
          fit_columns(shown_token(side.tokens[static_cast<std::size_t>(token)]), kPairName));
    };
    return fmt::format("{} -> {}", name(queries_of(explanation_, layer), at.query),
                       name(keys_of(explanation_, layer), at.key));
  }

  const ExplainedLayer& chosen_layer() const {
    return explanation_.layers[static_cast<std::size_t>(explanation_.shown_layer(view_.layer) - 1)];
  }

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

  // The map of a layer. Each row of a decoder has the probability of its token beside it.
  std::string layer_map() const {
    const ExplainedLayer& layer = chosen_layer();
    const bool in_text = layer.place == AttentionPlace::kText;
    const std::vector<float> weights = mean_weights(layer, view_.head);
    const TokenWindow queries = in_text ? window_ : TokenWindow{0, layer.queries};
    const std::vector<std::string> rows = names_of(queries_of(explanation_, layer).tokens),
                                   columns = names_of(keys_of(explanation_, layer).tokens);
    TerminalMap map{.rows = {rows.begin() + queries.begin, rows.begin() + queries.end},
                    .columns = {columns.begin() + keys_.begin, columns.begin() + keys_.end},
                    .largest = largest_of(weights),
                    .first_row = queries.begin + 1,
                    .first_column = keys_.begin + first_key_};
    for (index i = queries.begin; i < queries.end; ++i) {
      const auto row = weights.begin() + i * layer.keys;
      map.values.insert(map.values.end(), row + keys_.begin, row + keys_.end);
    }
    in_text ? add_side(map) : add_probabilities(map);
    return wrapped(fmt::format("{}, {}: {}; a blank cell is masked or exactly 0", layer.name,
                               heads_shown(layer, view_.head), axes_of(layer.place)),
                   columns_) +
           draw_terminal_map(map, terminal_);
  }

  static std::string_view axes_of(AttentionPlace place) {
    switch (place) {
      case AttentionPlace::kDecoder:
        return "a row is a token of the translation while it is written, a column one before it";
      case AttentionPlace::kCross:
        return "a row is a token of the translation while it is written, a column one of the "
               "source";
      case AttentionPlace::kText:
        break;
    }
    return "a row is a token that looks, a column one that it looks at";
  }

  void add_probabilities(TerminalMap& map) const {
    const std::vector<double>& all = explanation_.translation->probabilities;
    map.side = {all.begin(), all.end()};
    map.largest_side = 1;
    map.side_name = "probability";
    map.side_sign = SideSign::kNegative;
  }

  std::string pooling() const {
    TerminalMap map{
        .rows = {"pooled"}, .columns = names_shown(), .largest = largest_of(explanation_.pooling)};
    map.values.assign(explanation_.pooling.begin() + window_.begin,
                      explanation_.pooling.begin() + window_.end);
    const std::string_view what =
        explanation_.pools_maxima
            ? "pooling: the share of the filters whose maximum is at each token"
            : "attention as pooling: the weight of each token in the pooled "
              "text";
    return fmt::format("{}\n{}", what, draw_terminal_map(map, terminal_));
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
  std::vector<std::string> names_;  // of the tokens of the text
  TokenWindow window_;              // of these
  TokenWindow keys_;                // of the layer that is shown
  index first_key_ = 1;             // the number of its first
  bool is_cut_ = false;             // whether there are others
};

}  // namespace

void check_view(const ExplainView& view, const Explanation& explanation) {
  const auto layers = static_cast<index>(explanation.layers.size());
  require_option(view.layer >= 0 && view.layer <= layers, "layer", view.layer, "0 to {}", layers);
  index heads = 0;
  LayerTokens columns{explanation.tokens};
  if (layers > 0) {
    const auto number = static_cast<std::size_t>(explanation.shown_layer(view.layer) - 1);
    heads = explanation.layers[number].heads;
    columns = keys_of(explanation, explanation.layers[number]);
  }
  require_option(view.head >= 0 && view.head <= heads, "head", view.head, "0 to {}", heads);
  if (!view.tokens.empty()) {
    window_of(view.tokens, "tokens", columns.first, static_cast<index>(columns.tokens.size()));
  }
}

std::string explanation_text(const Explanation& explanation, const ExplainView& view,
                             const Terminal& terminal, index columns) {
  return ExplanationText(explanation, view, terminal, std::max<index>(60, columns)).text();
}

}  // namespace fovea

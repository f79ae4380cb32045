// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/explain/shown.h"
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
    return text + warning_of_weights(explanation_, columns_);
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
    } else if (explanation_.predicts_next) {
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
        const std::string number =
            tags.tags[t].empty() ? "" : fmt::format("{:.4f}", tags.probabilities[t]);
        text += fmt::format("  {} {:6}", sized(escape_text(tags.tags[t]), widths.tag), number);
      }
      text = without_blanks_at_end(std::move(text)) + '\n';
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
      return fmt::format("tokens: {} of the source, {} of the translation, ends included\n",
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

// The numbers before the rows name them.
std::vector<std::string> no_names(index count) {
  return std::vector<std::string>(static_cast<std::size_t>(count));
}

std::vector<std::string> numbered(index first, index count) {
  std::vector<std::string> names;
  for (index n = first; n < first + count; ++n) names.push_back(fmt::format("{}", n));
  return names;
}

// The layers that a view shows: one, or the last over time and the last across.
std::vector<const ExplainedLayer*> layers_shown(const Explanation& explanation,
                                                const ExplainView& view) {
  const std::vector<ExplainedLayer>& layers = explanation.layers;
  if (view.layer > 0) return {&layers[static_cast<std::size_t>(view.layer - 1)]};
  std::vector<const ExplainedLayer*> shown;
  for (const bool across : {false, true}) {
    const auto last = std::find_if(layers.rbegin(), layers.rend(),
                                   [&](const ExplainedLayer& one) { return one.across == across; });
    if (last != layers.rend()) shown.push_back(&*last);
  }
  return shown;
}

class SampleText {
 public:
  SampleText(const Explanation& explanation, const ExplainView& view, const SampleView& sample,
             const Terminal& terminal, index columns)
      : explanation_(explanation),
        view_(view),
        sample_(sample),
        terminal_(terminal),
        columns_(columns),
        first_(explanation.numbers->first_step),
        steps_(static_cast<index>(explanation.tokens.size())),
        joints_(explanation.numbers->joints) {}

  std::string text() {
    const index fit = fitting(first_ + steps_);
    window_ = {0, steps_};
    if (!sample_.steps.empty()) window_ = window_of(sample_.steps, "steps", first_, steps_);
    window_.end = std::min(window_.end, window_.begin + fit);
    std::string text = prediction_lines(explanation_, columns_) + counts();
    const auto add = [&](const std::string& part) { text += '\n' + part; };
    if (!explanation_.layers.empty()) {
      add(head_table(explanation_, view_.layer, columns_,
                     [&](const ExplainedLayer& layer, index head) {
                       return place_of(layer, strongest_weight(layer, head));
                     }));
    }
    for (const ExplainedLayer* layer : layers_shown(explanation_, view_)) {
      add(layer->across ? map_of_joints(*layer) : map_of_time(*layer));
    }
    if (!explanation_.pooling.empty()) add(pooling());
    if (has_saliency() &&
        (joints_ > 0 || (explanation_.layers.empty() && explanation_.pooling.empty()))) {
      add(saliency());
    }
    text += what_is_left_out();
    add(saliency_lines(explanation_, columns_));
    for (const Words& note : explanation_.notes) text += wrapped(note.english, columns_);
    return text + warning_of_weights(explanation_, columns_);
  }

 private:
  bool has_saliency() const { return !explanation_.saliency.values.empty(); }
  index fitting(index rows) const {
    return most_map_columns(columns_, rows, has_saliency(), /*name_columns=*/1);
  }
  index joints_shown() const { return std::min(joints_, fitting(first_ + steps_)); }

  std::string counts() const {
    std::string line = fmt::format("sample {}: {} time step{}", explanation_.numbers->sample,
                                   steps_, steps_ == 1 ? "" : "s");
    if (joints_ > 0) line += fmt::format(" of {} joint{}", joints_, joints_ == 1 ? "" : "s");
    if (explanation_.cut > 0) line += fmt::format(" ({} more were cut)", explanation_.cut);
    return line + "\n";
  }

  // "5 -> 9, joint 3", or over joints "3 -> 4, time 5".
  std::string place_of(const ExplainedLayer& layer, const StrongestWeight& at) const {
    if (layer.across) {
      return fmt::format("{} -> {}, time {}", at.query, at.key, first_ + at.sequence);
    }
    const std::string times = fmt::format("{} -> {}", first_ + at.query, first_ + at.key);
    return joints_ == 0 ? times : times + fmt::format(", joint {}", at.sequence);
  }

  // The sum over what a row of the map stands for: `row_of(t, j)` is the row, or -1 for none.
  template <class RowOf>
  std::vector<float> summed_saliency(index rows, RowOf row_of) const {
    std::vector<double> sums(static_cast<std::size_t>(rows));
    const index J = std::max<index>(joints_, 1);
    for (index n = 0; n < static_cast<index>(explanation_.saliency.values.size()); ++n) {
      const index row = row_of(n / J, n % J);
      if (row < 0) continue;
      sums[static_cast<std::size_t>(row)] +=
          double{explanation_.saliency.values[static_cast<std::size_t>(n)]};
    }
    return {sums.begin(), sums.end()};
  }

  void add_side(TerminalMap& map, const std::vector<float>& values, index begin, index end) const {
    map.side.assign(values.begin() + begin, values.begin() + end);
    map.largest_side = largest_of(values);
    map.side_name = side_name_of(explanation_.saliency.method);
  }

  void add_side_of_time(TerminalMap& map, index joint) const {
    if (!has_saliency()) return;
    add_side(
        map,
        summed_saliency(steps_, [&](index t, index j) { return joint < 0 || j == joint ? t : -1; }),
        window_.begin, window_.end);
  }

  std::string map_of_time(const ExplainedLayer& layer) const {
    const index count = window_.end - window_.begin;
    const std::vector<float> weights = mean_weights(layer, view_.head, sample_.joint);
    TerminalMap map{.rows = no_names(count),
                    .columns = numbered(first_ + window_.begin, count),
                    .largest = largest_of(weights),
                    .first_row = first_ + window_.begin};
    for (index t = window_.begin; t < window_.end; ++t) {
      const auto row = weights.begin() + t * steps_;
      map.values.insert(map.values.end(), row + window_.begin, row + window_.end);
    }
    add_side_of_time(map, sample_.joint);
    const std::string which = joints_ == 0         ? ""
                              : sample_.joint >= 0 ? fmt::format(", joint {}", sample_.joint)
                                                   : fmt::format(", mean of {} joints", joints_);
    return wrapped(fmt::format("{}, {}{}: a row is a time step that looks, a column one that it "
                               "looks at; a blank cell is masked or exactly 0",
                               layer.name, heads_shown(layer, view_.head), which),
                   columns_) +
           draw_terminal_map(map, terminal_);
  }

  std::string map_of_joints(const ExplainedLayer& layer) const {
    const index time = sample_.time < 0 ? -1 : sample_.time - first_, shown = joints_shown();
    const std::vector<float> weights = mean_weights(layer, view_.head, time);
    TerminalMap map{.rows = no_names(shown),
                    .columns = numbered(0, shown),
                    .largest = largest_of(weights),
                    .first_row = 0};
    for (index j = 0; j < shown; ++j) {
      const auto row = weights.begin() + j * joints_;
      map.values.insert(map.values.end(), row, row + shown);
    }
    if (has_saliency()) {
      add_side(map,
               summed_saliency(joints_,
                               [&](index t, index j) { return time < 0 || t == time ? j : -1; }),
               0, shown);
    }
    const std::string which = time >= 0 ? fmt::format("time step {}", sample_.time)
                                        : fmt::format("mean of {} time steps", steps_);
    return wrapped(fmt::format("{}, {}, {}: a row is a joint that looks, a column one that it "
                               "looks at; a blank cell is masked or exactly 0",
                               layer.name, heads_shown(layer, view_.head), which),
                   columns_) +
           draw_terminal_map(map, terminal_);
  }

  // [T, joints] as a map: a row is a time step, a column a joint.
  TerminalMap map_of_values(const std::vector<float>& values, std::string_view only_column) const {
    const index J = std::max<index>(joints_, 1), shown = joints_ > 0 ? joints_shown() : 1;
    TerminalMap map{.rows = no_names(window_.end - window_.begin),
                    .columns = joints_ > 0 ? numbered(0, shown)
                                           : std::vector<std::string>{std::string(only_column)},
                    .largest = largest_of(values),
                    .first_row = first_ + window_.begin};
    for (index t = window_.begin; t < window_.end; ++t) {
      const auto row = values.begin() + t * J;
      map.values.insert(map.values.end(), row, row + shown);
    }
    return map;
  }

  std::string pooling() const {
    TerminalMap map = map_of_values(explanation_.pooling, "weight");
    add_side_of_time(map, -1);
    const std::string_view what =
        explanation_.pools_maxima
            ? "pooling: the share of the filters whose maximum is at each time step (a row)"
        : joints_ > 0
            ? "attention as pooling: the weight in the pooled sample of each time step (a "
              "row) and joint (a column); all of them sum to 1"
            : "attention as pooling: the weight of each time step in the pooled sample; "
              "they sum to 1";
    return wrapped(what, columns_) + draw_terminal_map(map, terminal_);
  }

  std::string saliency() const {
    const std::string name = side_name_of(explanation_.saliency.method);
    if (joints_ == 0) {
      TerminalMap map{.rows = no_names(window_.end - window_.begin),
                      .first_row = first_ + window_.begin};
      add_side_of_time(map, -1);
      return draw_terminal_map(map, terminal_);
    }
    TerminalMap map = map_of_values(explanation_.saliency.values, "");
    add_side_of_time(map, -1);
    map.side_name = "sum of joints";
    const bool has_signs = explanation_.saliency.method == SaliencyMethod::kGradientInput;
    const std::string_view below = !has_signs        ? ""
                                   : terminal_.color ? "; below 0 is red"
                                                     : "; below 0 is --";
    return wrapped(fmt::format("{} of each time step (a row) and joint (a column){}", name, below),
                   columns_) +
           draw_terminal_map(map, terminal_);
  }

  std::string what_is_left_out() const {
    std::string left_out;
    if (window_.end - window_.begin < steps_) {
      left_out = wrapped(fmt::format("Shown: time steps {} to {} of {} to {}. --steps A-B shows "
                                     "others, --page FILE all of them.",
                                     first_ + window_.begin, first_ + window_.end - 1, first_,
                                     first_ + steps_ - 1),
                         columns_);
    }
    if (joints_shown() < joints_) {
      left_out += wrapped(fmt::format("Shown: joints 0 to {} of {}. --page FILE shows all of them.",
                                      joints_shown() - 1, joints_),
                          columns_);
    }
    return left_out;
  }

  const Explanation& explanation_;
  const ExplainView& view_;
  const SampleView& sample_;
  const Terminal& terminal_;
  index columns_, first_, steps_, joints_;
  TokenWindow window_;
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

void check_view(const ExplainView& view, const SampleView& sample, const Explanation& explanation) {
  check(explanation.numbers.has_value(), "check_view: the explanation is of a text");
  const auto [number, first, joints] = *explanation.numbers;
  const auto layers = static_cast<index>(explanation.layers.size());
  const auto steps = static_cast<index>(explanation.tokens.size());
  require_option(view.layer >= 0 && view.layer <= layers, "layer", view.layer, "0 to {}", layers);
  index heads = 0;
  for (const ExplainedLayer* layer : layers_shown(explanation, view)) {
    heads = heads == 0 ? layer->heads : std::min(heads, layer->heads);
  }
  require_option(view.head >= 0 && view.head <= heads, "head", view.head, "0 to {}", heads);
  if (joints == 0) {
    require_option(sample.joint == -1 && sample.time == -1, sample.joint == -1 ? "time" : "joint",
                   sample.joint == -1 ? sample.time : sample.joint, "-1: the model has no joints");
  }
  require_option(sample.joint >= -1 && sample.joint < std::max<index>(joints, 1), "joint",
                 sample.joint, "-1 to {}", joints - 1);
  require_option(sample.time == -1 || (sample.time >= first && sample.time < first + steps), "time",
                 sample.time, "-1, or {} to {}", first, first + steps - 1);
  if (!sample.steps.empty()) window_of(sample.steps, "steps", first, steps);
}

std::string sample_text(const Explanation& explanation, const ExplainView& view,
                        const SampleView& sample, const Terminal& terminal, index columns) {
  check_view(view, sample, explanation);
  return SampleText(explanation, view, sample, terminal, std::max<index>(60, columns)).text();
}

}  // namespace fovea

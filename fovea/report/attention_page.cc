// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/attention_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "fovea/base/check.h"
#include "fovea/report/attention_data.h"
#include "fovea/report/attention_words.h"
#include "fovea/report/html.h"
#include "fovea/report/numbers.h"
#include "fovea/report/token_text.h"

namespace fovea {

namespace {

namespace words = attention_words;

void check_numbers(std::span<const float> numbers, std::size_t count, std::string_view what) {
  check(numbers.size() == count, "draw_attention_page: {} has {} numbers; there must be {}", what,
        numbers.size(), count);
  for (const float number : numbers) {
    check(std::isfinite(number), "draw_attention_page: {} holds {}; it must be finite", what,
          number);
  }
}

void check_map(const AttentionPage& page, const AttentionMap& map) {
  const std::size_t texts = page.texts.size();
  check(map.query_text < texts && map.key_text < texts,
        "draw_attention_page: {} is about texts {} and {}; there are {}", map.name, map.query_text,
        map.key_text, texts);
  check(map.heads >= 1, "draw_attention_page: {} has {} heads", map.name, map.heads);
  const auto heads = static_cast<std::size_t>(map.heads);
  check_numbers(
      map.weights,
      heads * page.texts[map.query_text].tokens.size() * page.texts[map.key_text].tokens.size(),
      map.name);
  for (const auto* given : {&map.entropy, &map.distance, &map.largest}) {
    if (!given->empty()) check_numbers(*given, heads, map.name);
  }
}

void check_labels(const AttentionPage& page, const TokenLabels& labels) {
  check(labels.text < page.texts.size(),
        "draw_attention_page: labels are about text {}; there are {}", labels.text,
        page.texts.size());
  const std::size_t tokens = page.texts[labels.text].tokens.size();
  const bool fits = labels.labels.empty() || labels.labels.size() == tokens;
  check(fits && labels.probabilities.size() == tokens,
        "draw_attention_page: {} labels with {} probabilities; there must be {}",
        labels.labels.size(), labels.probabilities.size(), tokens);
  for (const double p : labels.probabilities) {
    check(std::isfinite(p), "draw_attention_page: a label has the probability {}", p);
  }
}

void check_page(const AttentionPage& page) {
  const bool has_maps = !page.maps.empty();
  check(has_maps || !page.saliency.empty(), "draw_attention_page: there is nothing to show");
  if (has_maps) {
    check(!page.maps.front().is_of_layer_before, "draw_attention_page: there is no layer before {}",
          page.maps.front().name);
    check(page.first_map < page.maps.size(),
          "draw_attention_page: there is no map {} of {} to show first", page.first_map,
          page.maps.size());
  }
  for (const PageText& text : page.texts) {
    const auto size = static_cast<index>(text.tokens.size());
    check(size >= 1 && size <= kMostCodedKeys,
          "draw_attention_page: {} has {} tokens; a page shows 1 to {}", text.name, size,
          kMostCodedKeys);
    check(text.positions.empty() || text.positions.size() == text.tokens.size(),
          "draw_attention_page: {} has {} positions for {} tokens", text.name,
          text.positions.size(), size);
  }
  for (const AttentionMap& map : page.maps) check_map(page, map);
  for (const TokenLabels& labels : page.labels) check_labels(page, labels);
  for (const TokenValues& saliency : page.saliency) {
    check(saliency.text < page.texts.size(),
          "draw_attention_page: {} is about text {}; there are {}", saliency.name, saliency.text,
          page.texts.size());
    check_numbers(saliency.values, page.texts[saliency.text].tokens.size(), saliency.name);
  }
  for (const PairValues& table : page.tables) {
    check(std::max(table.row_text, table.column_text) < page.texts.size(),
          "draw_attention_page: {} is about texts {} and {}; there are {}", table.name,
          table.row_text, table.column_text, page.texts.size());
    check_numbers(
        table.values,
        page.texts[table.row_text].tokens.size() * page.texts[table.column_text].tokens.size(),
        table.name);
  }
}

// [f(item), ...]
template <class Items, class F>
std::string json_list(const Items& items, F&& f) {
  std::string json = "[";
  for (auto item = std::begin(items); item != std::end(items); ++item) {
    if (item != std::begin(items)) json += ',';
    json += f(*item);
  }
  return json + ']';
}

// Everything but the weights.
std::string json_of(const AttentionPage& page, const WeightDigits& digits) {
  const std::string texts = json_list(page.texts, [](const PageText& text) {
    return fmt::format("{{\"tokens\":{},\"positions\":{}}}",
                       json_list(text.tokens, [](const auto& t) { return json_text(visible(t)); }),
                       json_list(text.positions, [](index p) { return std::to_string(p); }));
  });
  const std::string maps = json_list(page.maps, [](const AttentionMap& map) {
    return fmt::format(
        "{{\"name\":{},\"part\":{},\"ofLayerBefore\":{},\"rowsAre\":{},\"columnsAre\":{},"
        "\"heads\":{},\"queryText\":{},\"keyText\":{}}}",
        json_text(map.name), json_text(map.part), map.is_of_layer_before, json_text(map.rows_are),
        json_text(map.columns_are), map.heads, map.query_text, map.key_text);
  });
  std::string script_words;
  for (const auto& [name, phrase] : words::kScriptWords) {
    script_words += fmt::format("{}\"{}\":{}", script_words.empty() ? "" : ",", name,
                                json_text(phrase.in(page.language)));
  }
  return fmt::format(
      "{{\"decimals\":{},\"negative\":{},\"strongest\":{},\"firstMap\":{},\n\"texts\":{},\n"
      "\"maps\":{},\n\"words\":{{{}}}}}",
      digits.decimals, digits.negative, digits.strongest, page.first_map, texts, maps,
      script_words);
}

// The page but for its weights.
HtmlPage frame_of(const AttentionPage& page, const std::string& style, const std::string& body) {
  return {.language = page.language,
          .title = page.title,
          .style = style,
          .body = body,
          .scripts = page.maps.empty()
                         ? std::vector<std::string_view>{}
                         : std::vector<std::string_view>{"weights.js", "lines.js", "attention.js"}};
}

}  // namespace

std::string draw_attention_page(const AttentionPage& page, const PageLimits& limits) {
  check_page(page);
  if (page.maps.empty()) {  // nothing that a script would read
    return draw_html(
        frame_of(page, std::string(page_file("attention.css")), attention_body(page, {}, limits)));
  }
  const CodedMasks masks = code_masks(page);
  const std::string style(page_file("attention.css"));
  std::string body = attention_body(page, {}, limits);
  constexpr std::size_t kPerHead = 40;  // quotes, commas and the number of a mask
  const std::size_t frame = draw_html(frame_of(page, style, body)).size() +
                            json_of(page, {}).size() + masks.data.json.size() +
                            kPerHead * (masks.of_heads.size() + 100);
  const auto left = [&](std::size_t bytes) { return bytes > frame ? bytes - frame : 0; };
  WeightDigits digits = choose_digits(page, {left(limits.fine), left(limits.most)});
  while (true) {
    body = attention_body(page, digits, limits);
    HtmlPage html = frame_of(page, style, body);
    html.data = code_maps(page, digits, masks);
    html.data.push_back(masks.data);
    html.data.push_back({"page", json_of(page, digits)});
    std::string text = draw_html(html);
    if (text.size() <= limits.most || !keep_fewer(page, digits)) return text;
  }
}

namespace {

namespace words = attention_words;

constexpr std::size_t kMostLabels = 10;  // of a prediction

// The text of one language, escaped.
class Words {
 public:
  explicit Words(PageLanguage language) : language_(language) {}
  std::string operator()(const Phrase& phrase) const { return html_text(phrase.in(language_)); }
  template <class... Args>
  std::string format(const Phrase& phrase, const Args&... args) const {
    return html_text(fmt::format(fmt::runtime(phrase.in(language_)), args...));
  }

 private:
  PageLanguage language_;
};

std::string facts_of(const AttentionPage& page) {
  if (page.facts.empty()) return "";
  std::string html = "<dl class=\"facts\">\n";
  for (const auto& [name, value] : page.facts) {
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", html_text(name), bdi(value));
  }
  return html + "</dl>\n";
}

std::string prediction_of(const AttentionPage& page, const Words& say) {
  if (page.prediction.empty()) return "";
  std::string html =
      fmt::format("<section class=\"panel\">\n<h2>{}</h2>\n<table class=\"numbers prediction\">\n",
                  say(words::kPrediction));
  const std::size_t shown = std::min(page.prediction.size(), kMostLabels);
  for (const auto& [label, probability] : std::span(page.prediction).first(shown)) {
    html += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{:.4f}</td><td class=\"bar\" aria-hidden=\"true\">"
        "<span style=\"width:{:.1f}%\"></span></td></tr>\n",
        bdi(short_token(label)), probability, 100 * std::clamp(probability, 0.0, 1.0));
  }
  html += "</table>\n";
  const std::size_t more = page.prediction.size() - shown;
  if (more > 0) html += fmt::format("<p class=\"quiet\">{}</p>\n", say.format(words::kMore, more));
  return html + "</section>\n";
}

// A strip of tokens, each over a line of its own.
struct StripToken {
  std::string_view token, line;
  double share = 0;  // of the strongest colour
  bool below = false;
};

std::string strip_token(const StripToken& t) {
  return fmt::format("<span class=\"{}\" style=\"--share:{:.3f}\">{}<small>{}</small></span>\n",
                     t.below ? "token below" : "token", t.share, bdi(short_token(t.token)), t.line);
}

std::string labels_of(const AttentionPage& page, const Words& say) {
  if (page.labels.empty()) return "";
  std::string html = fmt::format("<section class=\"panel\">\n<h2>{}</h2>\n", say(words::kLabels));
  for (const TokenLabels& labels : page.labels) {
    if (!labels.name.empty()) html += fmt::format("<h3>{}</h3>\n", html_text(labels.name));
    html += "<div class=\"strip\">\n";
    const std::vector<std::string>& tokens = page.texts[labels.text].tokens;
    for (std::size_t token = 0; token < tokens.size(); ++token) {
      const double p = labels.probabilities[token];
      std::string line = fmt::format("{:.4f}", p);
      if (!labels.labels.empty()) {
        const std::string& label = labels.labels[token];
        line = label.empty() ? "" : bdi(short_token(label)) + " " + line;
      }
      html += strip_token({tokens[token], line, std::clamp(p, 0.0, 1.0)});
    }
    html += "</div>\n";
  }
  return html + "</section>\n";
}

std::string select_of(std::string_view id, const std::string& label) {
  return fmt::format("<label>{}<select id=\"{}\"></select></label>\n", label, id);
}

// The elements that the scripts fill.
std::string view_of(const AttentionPage& page, const Words& say) {
  const std::string layer = page.maps_are.empty() ? say(words::kLayer) : html_text(page.maps_are);
  const bool has_parts = std::any_of(page.maps.begin(), page.maps.end(),
                                     [](const AttentionMap& map) { return !map.part.empty(); });
  return fmt::format(
      "<section class=\"panel\" id=\"view\">\n<h2>{}</h2>\n<div class=\"controls screen-only\">\n"
      "{}{}{}{}<label>{}<input type=\"range\" id=\"cell\" min=\"2\" max=\"40\"/></label>\n</div>\n"
      "<dl class=\"facts print-only\" id=\"choices\"></dl>\n<p class=\"reading\" "
      "id=\"reading\"></p>\n"
      "<p class=\"visually-hidden\" id=\"live\" aria-live=\"polite\"></p>\n"
      "<div class=\"views\">\n<figure>\n<div class=\"scroll map\" id=\"map\" tabindex=\"0\" "
      "role=\"application\" aria-label=\"{}\"></div>\n<figcaption><div class=\"legend\" "
      "id=\"legend\"></div><span class=\"screen-only\">{}</span></figcaption>\n</figure>\n"
      "<div class=\"aside\">\n<figure>\n<div class=\"scroll lines\" id=\"lines\" tabindex=\"0\" "
      "role=\"region\" aria-label=\"{}\"></div>\n<figcaption id=\"lines-caption\"></figcaption>\n"
      "</figure>\n<div><h3>{}</h3>\n<table class=\"numbers\" id=\"row\"></table></div>\n</div>\n"
      "</div>\n"
      "</section>\n",
      say(words::kWeights), select_of("layer", layer),
      has_parts ? select_of("part", say(words::kPart)) : "", select_of("head", say(words::kHead)),
      select_of("shading", say(words::kShading)), say(words::kCell), say(words::kMap),
      say(words::kKeys), say(words::kLines), say(words::kStrongest));
}

// A cell whose colour is its share of the largest.
std::string shaded_cell(float value, float largest, std::string_view number) {
  return fmt::format("<td{} style=\"--share:{:.3f}\">{}</td>", value < 0 ? " class=\"below\"" : "",
                     largest > 0 ? std::abs(value) / largest : 0, number);
}

float largest_of(const std::vector<float>& values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

std::string pairs_of(const AttentionPage& page, const PairValues& table, const Words& say) {
  const std::vector<std::string>& rows = page.texts[table.row_text].tokens;
  const std::vector<std::string>& columns = page.texts[table.column_text].tokens;
  std::string html = fmt::format(
      "<h3>{0}</h3>\n<p class=\"quiet\">{1} {2}</p>\n<div class=\"scroll\" tabindex=\"0\" "
      "role=\"region\" aria-label=\"{0}\"><table class=\"numbers heads pairs\" "
      "style=\"--columns:{3}\">\n<thead><tr><td></td>",
      html_text(table.name), say.format(words::kPairs, table.rows_are, table.columns_are),
      say.format(words::kSource, table.source), columns.size());
  for (const std::string& column : columns) {
    html += fmt::format("<th scope=\"col\">{}</th>", bdi(short_token(column)));
  }
  html += "</tr></thead>\n<tbody>\n";
  const float largest = largest_of(table.values);
  const int places = places_for(double{largest}, 9);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    html += fmt::format("<tr><th scope=\"row\">{}</th>", bdi(short_token(rows[row])));
    for (std::size_t column = 0; column < columns.size(); ++column) {
      const float value = table.values[row * columns.size() + column];
      html += shaded_cell(value, largest, with_places(value, places));
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string saliency_of(const AttentionPage& page, const Words& say) {
  if (page.saliency.empty()) return "";
  const Phrase& heading = page.maps.empty()
                              ? (page.is_of_numbers ? words::kCountsOfNumbers : words::kCounts)
                          : page.is_of_numbers ? words::kSaliencyOfNumbers
                                               : words::kSaliency;
  std::string html = fmt::format("<section class=\"panel\">\n<h2>{}</h2>\n", say(heading));
  for (const TokenValues& saliency : page.saliency) {
    html += fmt::format("<h3>{}</h3>\n<p class=\"quiet\">{}</p>\n<div class=\"strip\">\n",
                        html_text(saliency.name), say.format(words::kSource, saliency.source));
    const float largest = largest_of(saliency.values);
    const std::vector<std::string>& tokens = page.texts[saliency.text].tokens;
    for (std::size_t token = 0; token < tokens.size(); ++token) {
      const float value = saliency.values[token];
      const std::string line = three_digits(value);
      const double share = largest > 0 ? std::abs(value) / largest : 0;
      html += strip_token({tokens[token], line, share, value < 0});
    }
    html += "</div>\n";
  }
  for (const PairValues& table : page.tables) html += pairs_of(page, table, say);
  return html + "</section>\n";
}

struct Statistic {
  Phrase name, meaning;
  std::vector<float> HeadMeans::*values;
};

// A layer and what its heads look like. Without distances those are empty.
struct LayerMeans {
  const AttentionMap* map;
  HeadMeans means;
};

std::string table_of(const std::vector<LayerMeans>& layers, const Statistic& statistic,
                     const Words& say) {
  index heads = 0;
  float largest = 0;
  for (const LayerMeans& layer : layers) {
    heads = std::max(heads, layer.map->heads);
    largest = std::max(largest, largest_of(layer.means.*statistic.values));
  }
  std::string html = fmt::format(
      "<div><h3>{0}</h3>\n<p class=\"quiet\">{1}</p>\n<div class=\"scroll\" tabindex=\"0\" "
      "role=\"region\" aria-label=\"{0}\"><table class=\"numbers heads\">\n<thead><tr><td></td>",
      say(statistic.name), say(statistic.meaning));
  for (index head = 1; head <= heads; ++head) {
    html += fmt::format("<th scope=\"col\">{}</th>", head);
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const LayerMeans& layer : layers) {
    const std::vector<float>& values = layer.means.*statistic.values;
    html += fmt::format("<tr><th scope=\"row\">{}</th>", bdi(layer.map->name));
    for (const float value : values) {
      html += shaded_cell(value, largest, three_digits(value));
    }
    for (index head = 0; values.empty() && head < layer.map->heads; ++head) {
      html += "<td>\u2013</td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div></div>\n";
}

std::string statistics_of(const AttentionPage& page, const Words& say) {
  std::vector<LayerMeans> layers;
  bool has_distances = false;
  for (const AttentionMap& map : page.maps) {
    if (map.is_of_layer_before) continue;
    layers.push_back({&map, head_means(page, map)});
    if (!map.has_distances) layers.back().means.distance.clear();
    has_distances = has_distances || map.has_distances;
  }
  std::string html =
      fmt::format("<section class=\"panel\">\n<h2>{}</h2>\n<div class=\"statistics\">\n",
                  say(words::kStatistics));
  if (page.rows_sum_to_one) {
    html += table_of(layers, {words::kEntropy, words::kEntropyMeans, &HeadMeans::entropy}, say);
    if (has_distances) {
      const Phrase& name = page.is_of_numbers ? words::kDistanceInTime : words::kDistance;
      html += table_of(layers, {name, words::kDistanceMeans, &HeadMeans::distance}, say);
    }
  }
  html += table_of(layers, {words::kLargest, words::kLargestMeans, &HeadMeans::largest}, say);
  return html + "</div>\n</section>\n";
}

std::string tiles_of(const AttentionPage& page, const Words& say) {
  if (page.tiles.empty()) return "";
  constexpr int kTile = 14;
  const auto rows = static_cast<int>(page.tiles.size());
  const auto columns = static_cast<int>(page.tiles.front().size());
  std::string html = fmt::format(
      "<section class=\"panel\">\n<h2>{0}</h2>\n<div class=\"scroll\" tabindex=\"0\" "
      "role=\"region\" aria-label=\"{0}\"><svg class=\"tiles\" role=\"img\" aria-label=\"{1}\" "
      "width=\"{2}\" height=\"{3}\" viewBox=\"0 0 {2} {3}\">\n<defs><pattern id=\"stripes\" "
      "width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
      "<rect width=\"2\" height=\"4\"/></pattern></defs>\n",
      say(words::kTiles), say(words::kTilesMean), columns * kTile + 1, rows * kTile + 1);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const char tile = page.tiles[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
      html += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                          tile == '#'   ? "whole"
                          : tile == '/' ? "part"
                                        : "none",
                          column * kTile + 1.5, row * kTile + 1.5, kTile - 2, kTile - 2);
    }
  }
  return html + fmt::format("</svg></div>\n<p class=\"quiet\">{}</p>\n</section>\n",
                            say(words::kTilesMean));
}

std::string reading_of_weights(const AttentionPage& page, const WeightDigits& digits,
                               const Words& say) {
  const std::string sum = page.rows_sum_to_one ? say(words::kRowSum) : "";
  const std::string exact = digits.decimals > 0
                                ? say.format(words::kDigits, digits.decimals)
                                : say.format(words::kRounded, std::pow(10.0, -digits.decimals));
  const std::string_view gap = Phrase{" ", ""}.in(page.language);  // between sentences
  return fmt::format("<li>{}</li>\n<li>{}{}{}{}{}</li>\n<li>{}</li>\n<li>{}</li>\n",
                     say(page.is_of_numbers ? words::kRowOfNumbers : words::kRowMeans),
                     say(page.has_entropies ? words::kColourMeans : words::kFactorMeans),
                     sum.empty() ? "" : gap, sum, gap, exact, say(words::kMaskedMeans),
                     say(page.is_of_numbers ? words::kConcludeOfNumbers : words::kConclude));
}

std::string reading_of(const AttentionPage& page, const WeightDigits& digits, const Words& say) {
  std::string html =
      fmt::format("<section class=\"panel\">\n<h2>{}</h2>\n<ul>\n", say(words::kReading));
  html += page.maps.empty() ? fmt::format("<li>{}</li>\n", say(words::kCountColours))
                            : reading_of_weights(page, digits, say);
  if (!page.saliency.empty()) {
    html += fmt::format("<li>{}</li>\n", say(page.is_of_numbers ? words::kSaliencyOfNumbersMeans
                                                                : words::kSaliencyMeans));
  }
  return html + "</ul>\n</section>\n";
}

}  // namespace

std::string attention_body(const AttentionPage& page, const WeightDigits& digits,
                           const PageLimits& limits) {
  const Words say(page.language);
  std::string html = facts_of(page);
  if (!page.maps.empty()) {
    html += fmt::format("<p class=\"note\">{}</p>\n", say(words::kWarning));
  }
  for (const std::string& note : page.notes) {
    html += fmt::format("<p class=\"note\">{}</p>\n", html_text(note));
  }
  if (digits.strongest > 0) {
    html += fmt::format(
        "<p class=\"note\">{}</p>\n",
        say.format(words::kCut, digits.strongest, static_cast<double>(limits.most) / 1e6));
  }
  html += prediction_of(page, say) + labels_of(page, say);
  if (page.maps.empty()) return html + saliency_of(page, say) + reading_of(page, digits, say);
  return html + view_of(page, say) + saliency_of(page, say) + statistics_of(page, say) +
         tiles_of(page, say) + reading_of(page, digits, say);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/attention_body.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "fovea/report/attention_words.h"
#include "fovea/report/head_statistics.h"
#include "fovea/report/places.h"
#include "fovea/report/token_text.h"

namespace fovea {

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
      const std::string label =
          labels.labels.empty() ? "" : bdi(short_token(labels.labels[token])) + " ";
      const std::string line = fmt::format("{}{:.4f}", label, p);
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
  std::string html =
      fmt::format("<section class=\"panel\">\n<h2>{}</h2>\n",
                  say(page.is_of_numbers ? words::kSaliencyOfNumbers : words::kSaliency));
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

std::string reading_of(const AttentionPage& page, const WeightDigits& digits, const Words& say) {
  std::string html = fmt::format("<section class=\"panel\">\n<h2>{}</h2>\n<ul>\n<li>{}</li>\n",
                                 say(words::kReading),
                                 say(page.is_of_numbers ? words::kRowOfNumbers : words::kRowMeans));
  const std::string sum = page.rows_sum_to_one ? say(words::kRowSum) : "";
  const std::string exact = digits.decimals > 0
                                ? say.format(words::kDigits, digits.decimals)
                                : say.format(words::kRounded, std::pow(10.0, -digits.decimals));
  const std::string_view gap = Phrase{" ", ""}.in(page.language);  // between sentences
  html += fmt::format("<li>{}{}{}{}{}</li>\n<li>{}</li>\n<li>{}</li>\n",
                      say(page.has_entropies ? words::kColourMeans : words::kFactorMeans),
                      sum.empty() ? "" : gap, sum, gap, exact, say(words::kMaskedMeans),
                      say(page.is_of_numbers ? words::kConcludeOfNumbers : words::kConclude));
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
  html += fmt::format("<p class=\"note\">{}</p>\n", say(words::kWarning));
  for (const std::string& note : page.notes) {
    html += fmt::format("<p class=\"note\">{}</p>\n", html_text(note));
  }
  if (digits.strongest > 0) {
    html += fmt::format(
        "<p class=\"note\">{}</p>\n",
        say.format(words::kCut, digits.strongest, static_cast<double>(limits.most) / 1e6));
  }
  return html + prediction_of(page, say) + labels_of(page, say) + view_of(page, say) +
         saliency_of(page, say) + statistics_of(page, say) + tiles_of(page, say) +
         reading_of(page, digits, say);
}

}  // namespace fovea

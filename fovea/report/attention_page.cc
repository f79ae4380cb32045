// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/attention_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "fovea/base/check.h"
#include "fovea/report/attention_body.h"
#include "fovea/report/attention_data.h"
#include "fovea/report/attention_words.h"
#include "fovea/report/page_file.h"
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
  check(!page.maps.empty(), "draw_attention_page: there is no map");
  check(!page.maps.front().is_of_layer_before, "draw_attention_page: there is no layer before {}",
        page.maps.front().name);
  check(page.first_map < page.maps.size(),
        "draw_attention_page: there is no map {} of {} to show first", page.first_map,
        page.maps.size());
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
          .scripts = {"weights.js", "lines.js", "attention.js"}};
}

}  // namespace

std::string draw_attention_page(const AttentionPage& page, const PageLimits& limits) {
  check_page(page);
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

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/page.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "fovea/explain/frame_page.h"
#include "fovea/explain/page_parts.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

std::string text_in(PageLanguage language, std::string_view english, std::string_view chinese) {
  return std::string(Phrase{english, chinese}.in(language));
}

std::string text_in(PageLanguage language, const Words& words) {
  return text_in(language, words.english, words.chinese);
}

// The page shows any text safely; a token of bytes may be none.
std::string as_text(const std::string& token) {
  return find_invalid_utf8(token) ? escape_text(token) : token;
}

std::string_view chinese_name_of(ExplainedKind kind) {
  switch (kind) {
    case ExplainedKind::kTextClassifier:
      return "文本分类器";
    case ExplainedKind::kLanguageModel:
      return "语言模型";
    case ExplainedKind::kNumberClassifier:
      return "数值分类器";
    case ExplainedKind::kTagger:
      return "标注器";
    case ExplainedKind::kSegmenter:
      return "分词器";
    case ExplainedKind::kTranslator:
      return "翻译器";
  }
  return "";
}

Words name_of(SaliencyMethod method) {
  if (method == SaliencyMethod::kRollout) return {"attention rollout", "注意力 rollout"};
  if (method == SaliencyMethod::kGradient) return {"length of the gradient", "梯度的长度"};
  return {"gradient x input", "梯度 × 输入"};
}

std::vector<float> floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

AttentionMap map_of(const ExplainedLayer& layer, PageLanguage language) {
  return {.name = layer_name_in(language, layer.name),
          .heads = layer.heads,
          .weights = layer.weights,
          .entropy = floats(layer.entropy),
          .distance = floats(layer.distance),
          .largest = layer.largest};
}

// Attention as pooling has one query, which is no token.
void add_pooling(const Explanation& explanation, AttentionPage& page) {
  if (explanation.pooling.empty()) return;
  if (explanation.pools_maxima) page.rows_sum_to_one = false;
  page.texts.push_back(
      {.name = text_in(page.language, "pooled", "池化"), .tokens = {"*"}, .positions = {1}});
  page.maps.push_back({.name = text_in(page.language, "pooling", "池化"),
                       .heads = 1,
                       .query_text = 1,
                       .key_text = 0,
                       .weights = explanation.pooling,
                       .has_distances = false});
}

void add_saliency(const Explanation& explanation, AttentionPage& page) {
  const Saliency& saliency = explanation.saliency;
  if (saliency.values.empty()) return;
  page.saliency.push_back({.name = saliency_name_in(page.language, saliency),
                           .source = std::string(source_of(saliency.method)),
                           .values = saliency.values});
}

void add_tags(const Explanation& explanation, AttentionPage& page) {
  for (const ExplainedTags& tags : explanation.tags) {
    TokenLabels& labels = page.labels.emplace_back();
    if (!tags.column.empty()) {
      labels.name = fmt::format("{} {}", text_in(page.language, "column", "列"), tags.column);
    }
    for (const std::string& tag : tags.tags) labels.labels.push_back(as_text(tag));
    labels.probabilities = tags.probabilities;
  }
}

void add_facts(const Explanation& explanation, std::string_view model, AttentionPage& page) {
  const auto add = [&](std::string_view english, std::string_view chinese, std::string value) {
    page.facts.emplace_back(text_in(page.language, english, chinese), std::move(value));
  };
  add("model", "模型", escape_text(model));
  add("kind", "类型",
      text_in(page.language, to_string(explanation.kind), chinese_name_of(explanation.kind)));
  if (explanation.translation) {
    const ExplainedTranslation& made = *explanation.translation;
    made.is_given ? add("given translation", "给定的译文", as_text(made.text))
                  : add("translation", "译文", as_text(made.text));
    add("log-probability", "对数概率", fmt::format("{:.4f}", made.log_probability));
    add("tokens", "词元",
        fmt::format("{} \u2192 {}", explanation.tokens.size(), made.tokens.size()));
  } else if (!explanation.numbers) {
    add("tokens", "词元", fmt::format("{}", explanation.tokens.size()));
    if (explanation.cut > 0) add("cut", "截去", fmt::format("{}", explanation.cut));
  }
  if (!explanation.number.empty()) add("number", "预测值", explanation.number);
}

// Words of many thousand characters would make the page larger than a browser likes: beyond this
// number of bytes in all, each token is cut to its share.
constexpr std::size_t kMostTokenBytes = 1'000'000;

void cut_tokens(std::vector<std::string>& tokens) {
  std::size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  if (bytes <= kMostTokenBytes) return;
  const std::size_t most = std::max<std::size_t>(kMostTokenBytes / tokens.size(), 32);
  for (std::string& token : tokens) {
    if (token.size() <= most + 3) continue;
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(token[end]) & 0xC0) == 0x80) --end;
    token.replace(end, std::string::npos, "\u2026");
  }
}

// Numbered as in a terminal.
PageText page_text(std::string name, const LayerTokens& tokens) {
  PageText text{.name = std::move(name)};
  for (const std::string& token : tokens.tokens) {
    text.positions.push_back(tokens.first + static_cast<index>(text.tokens.size()));
    text.tokens.push_back(as_text(token));
  }
  cut_tokens(text.tokens);
  return text;
}

// Texts of a translator's page.
constexpr std::size_t kSource = 0, kWritten = 1, kRead = 2;

// The decoder's rows are the tokens it writes, its columns those it reads: the same, one apart.
void add_translation(const Explanation& explanation, AttentionPage& page) {
  const std::string source = text_in(page.language, "source", "源文"),
                    written = text_in(page.language, "translation", "译文"),
                    read = text_in(page.language, "translation so far", "已译部分");
  const ExplainedLayer decoder{.name = {}, .place = AttentionPlace::kDecoder};
  page.texts[kSource].name = source;
  page.texts.push_back(page_text(written, queries_of(explanation, decoder)));
  page.texts.push_back(page_text(read, keys_of(explanation, decoder)));
  for (std::size_t n = 0; n < page.maps.size(); ++n) {
    AttentionMap& map = page.maps[n];
    const AttentionPlace place = explanation.layers[n].place;
    map.query_text = place == AttentionPlace::kText ? kSource : kWritten;
    map.key_text = place == AttentionPlace::kDecoder ? kRead : kSource;
    map.has_distances = place != AttentionPlace::kCross;
    map.rows_are = page.texts[map.query_text].name;
    map.columns_are = page.texts[map.key_text].name;
  }
  page.labels.push_back(
      {.name = written, .text = kWritten, .probabilities = explanation.translation->probabilities});
}

void add_text(const Explanation& explanation, AttentionPage& page) {
  page.texts.push_back(page_text(text_in(page.language, "text", "文本"), {explanation.tokens}));
  for (const ExplainedLayer& layer : explanation.layers) {
    page.maps.push_back(map_of(layer, page.language));
    if (layer.entropy.empty()) page.rows_sum_to_one = page.has_entropies = false;
  }
  if (explanation.main_layer) {
    page.first_map = static_cast<std::size_t>(*explanation.main_layer - 1);
  }
  if (explanation.translation) add_translation(explanation, page);
  add_pooling(explanation, page);
  add_tags(explanation, page);
  add_saliency(explanation, page);
}

}  // namespace

std::string layer_name_in(PageLanguage language, std::string_view name) {
  constexpr Phrase kWords[] = {{"layer ", "层 "},
                               {"encoder ", "编码器 "},
                               {"decoder ", "解码器 "},
                               {"(self-attention)", "(自注意力)"},
                               {"(cross-attention)", "(交叉注意力)"},
                               {"(additive attention)", "(加性注意力)"}};
  std::string text(name);
  for (const Phrase& word : kWords) {
    const std::size_t at = text.find(word.english);
    if (at != std::string::npos) text.replace(at, word.english.size(), word.in(language));
  }
  return text;
}

std::string saliency_name_in(PageLanguage language, const Saliency& saliency) {
  return fmt::format("{}: {}", text_in(language, name_of(saliency.method)),
                     text_in(language, filled(saliency.of, QuoteLength::kShort)));
}

AttentionPage page_of(const Explanation& explanation, std::string_view model,
                      PageLanguage language) {
  AttentionPage page{.language = language,
                     .title = text_in(language, "What the model looked at", "模型看了哪里")};
  add_facts(explanation, model, page);
  explanation.numbers ? add_sample(explanation, page) : add_text(explanation, page);
  for (const auto& [label, probability] : explanation.prediction) {
    page.prediction.push_back({as_text(label), probability});
  }
  for (const Words& note : explanation.notes) page.notes.push_back(text_in(language, note));
  return page;
}

}  // namespace fovea

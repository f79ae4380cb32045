// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain/page.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "fovea/task/explain/frame_page.h"
#include "fovea/task/explain/page_parts.h"
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
  page.texts.push_back({.name = text_in(page.language, "pooled", "池化"), .tokens = {"*"}});
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

void add_facts(const Explanation& explanation, std::string_view model, AttentionPage& page) {
  const auto add = [&](std::string_view english, std::string_view chinese, std::string value) {
    page.facts.emplace_back(text_in(page.language, english, chinese), std::move(value));
  };
  add("model", "模型", escape_text(model));
  constexpr Phrase kKinds[] = {{"language model", "语言模型"},
                               {"text classifier", "文本分类器"},
                               {"classifier of numbers", "数值分类器"}};
  for (const Phrase& kind : kKinds) {
    if (kind.english == explanation.kind)
      add("kind", "类型", text_in(page.language, kind.english, kind.chinese));
  }
  if (!explanation.numbers) {
    add("tokens", "词元", fmt::format("{}", explanation.tokens.size()));
    if (explanation.cut > 0) add("cut", "截去", fmt::format("{}", explanation.cut));
  }
  if (!explanation.number.empty()) add("number", "预测值", explanation.number);
}

void add_text(const Explanation& explanation, AttentionPage& page) {
  PageText text{.name = text_in(page.language, "text", "文本")};
  for (const std::string& token : explanation.tokens) {
    text.tokens.push_back(as_text(token));
    text.positions.push_back(static_cast<index>(text.tokens.size()));  // from 1, as in a terminal
  }
  page.texts.push_back(std::move(text));
  for (const ExplainedLayer& layer : explanation.layers) {
    page.maps.push_back(map_of(layer, page.language));
    if (layer.entropy.empty()) page.rows_sum_to_one = page.has_entropies = false;
  }
  add_pooling(explanation, page);
  add_saliency(explanation, page);
}

}  // namespace

std::string layer_name_in(PageLanguage language, std::string_view name) {
  constexpr std::string_view kLayer = "layer ";
  return text_in(language, kLayer, "层 ") +
         std::string(name.substr(std::min(kLayer.size(), name.size())));
}

std::string saliency_name_in(PageLanguage language, const Saliency& saliency) {
  return fmt::format("{}: {}", text_in(language, name_of(saliency.method)),
                     text_in(language, saliency.of));
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

// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "fovea/explain/shown.h"
#include "fovea/explain/text_parts.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

std::string text_in(PageLanguage language, std::string_view english, std::string_view chinese) {
  return std::string(Phrase{english, chinese}.in(language));
}

std::string text_in(PageLanguage language, const Words& words) {
  return text_in(language, words.english, words.chinese);
}

Words name_of(SaliencyMethod method) {
  if (method == SaliencyMethod::kRollout) return {"attention rollout", "注意力 rollout"};
  if (method == SaliencyMethod::kGradient) return {"length of the gradient", "梯度的长度"};
  return {"gradient x input", "梯度 × 输入"};
}

// "layer 1 (attention)" in the language of a page.
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

// The name of the saliency and of its target.
std::string saliency_name_in(PageLanguage language, const Saliency& saliency) {
  return fmt::format("{}: {}", text_in(language, name_of(saliency.method)),
                     text_in(language, filled(saliency.of, QuoteLength::kShort)));
}

constexpr std::size_t kTime = 0, kJoints = 1;  // texts of the page

constexpr Phrase kTimeStep = {"time step", "时间步"}, kJoint = {"joint", "关节"};

// Saliency of more numbers than this is shown as sums over time steps and over joints alone.
constexpr std::size_t kMostPairValues = 20'000;

constexpr Phrase kPoolingNote = {
    "In the map of pooling, a row is a joint and a column a time step: all of its weights together "
    "add up to 1.",
    "在池化的图中，每一行是一个关节，每一列是一个时间步：全部权重之和为 1。"};

// The page of a sample of numbers: maps over time and over joints, and saliency. With joints, a
// layer has a map of the means and then one for each joint, or time step.
class SamplePage {
 public:
  SamplePage(const Explanation& explanation, AttentionPage& page)
      : explanation_(explanation),
        page_(page),
        sample_(*explanation.numbers),
        steps_(static_cast<index>(explanation.tokens.size())) {}

  void add() {
    page_.is_of_numbers = true;
    add_facts();
    add_axis(word(kTimeStep), sample_.first_step, steps_);
    if (sample_.joints > 0) add_axis(word(kJoint), 0, sample_.joints);
    for (const ExplainedLayer& layer : explanation_.layers) {
      add_layer(layer);
      if (layer.entropy.empty()) page_.rows_sum_to_one = page_.has_entropies = false;
    }
    if (!explanation_.pooling.empty()) add_pooling();
    if (explanation_.pools_maxima) page_.rows_sum_to_one = false;
    if (!explanation_.saliency.values.empty()) add_saliency();
  }

 private:
  std::string word(const Phrase& phrase) const { return std::string(phrase.in(page_.language)); }
  template <class... Args>
  std::string sentence(const Phrase& phrase, const Args&... args) const {
    return fmt::format(fmt::runtime(phrase.in(page_.language)), args...);
  }

  void add_facts() {
    const auto add = [&](const Phrase& name, std::string value) {
      page_.facts.emplace_back(word(name), std::move(value));
    };
    add({"sample", "样本"}, fmt::format("{}", sample_.sample));
    add({"time steps", "时间步"},
        fmt::format("{}\u2013{}", sample_.first_step, sample_.first_step + steps_ - 1));
    if (explanation_.cut > 0) add({"cut", "截去"}, fmt::format("{}", explanation_.cut));
    if (sample_.joints > 0) add({"joints", "关节"}, fmt::format("{}", sample_.joints));
  }

  void add_axis(std::string name, index first, index count) {
    PageText text{.name = std::move(name)};
    for (index n = first; n < first + count; ++n) {
      text.tokens.push_back(fmt::format("{}", n));
      text.positions.push_back(n);
    }
    page_.texts.push_back(std::move(text));
  }

  AttentionMap empty_map(const ExplainedLayer& layer) const {
    const std::string axis = word(layer.across ? kJoint : kTimeStep);
    const std::size_t text = layer.across ? kJoints : kTime;
    return {.name = layer_name_in(page_.language, layer.name),
            .heads = layer.heads,
            .query_text = text,
            .key_text = text,
            .has_distances = !layer.across,
            .rows_are = sentence({"query {}", "查询{}"}, axis),
            .columns_are = sentence({"key {}", "键{}"}, axis)};
  }

  void add_layer(const ExplainedLayer& layer) {
    AttentionMap mean = empty_map(layer);
    for (index head = 1; head <= layer.heads; ++head) {
      const std::vector<float> weights = mean_weights(layer, head);
      mean.weights.insert(mean.weights.end(), weights.begin(), weights.end());
    }
    mean.entropy = {layer.entropy.begin(), layer.entropy.end()};
    mean.distance = {layer.distance.begin(), layer.distance.end()};
    mean.largest = layer.largest;
    if (layer.sequences > 1) {
      mean.part = layer.across
                      ? sentence({"mean of {} time steps", "{} 个时间步的平均"}, layer.sequences)
                      : sentence({"mean of {} joints", "{} 个关节的平均"}, layer.sequences);
    }
    page_.maps.push_back(std::move(mean));
    for (index s = 0; layer.sequences > 1 && s < layer.sequences; ++s) add_sequence(layer, s);
  }

  void add_sequence(const ExplainedLayer& layer, index sequence) {
    AttentionMap map = empty_map(layer);
    map.is_of_layer_before = true;
    map.part = fmt::format("{} {}", word(layer.across ? kTimeStep : kJoint),
                           sequence + (layer.across ? sample_.first_step : 0));
    const auto size = static_cast<std::ptrdiff_t>(layer.heads * layer.queries * layer.keys);
    const auto begin = layer.weights.begin() + sequence * size;
    map.weights.assign(begin, begin + size);
    page_.maps.push_back(std::move(map));
  }

  // From [T, joints].
  std::vector<float> by_joint(const std::vector<float>& values) const {
    const index J = sample_.joints;
    std::vector<float> turned(values.size());
    for (index n = 0; n < static_cast<index>(values.size()); ++n) {
      turned[static_cast<std::size_t>(n % J * steps_ + n / J)] =
          values[static_cast<std::size_t>(n)];
    }
    return turned;
  }

  void add_pooling() {
    AttentionMap map{.name = word({"pooling", "池化"}),
                     .heads = 1,
                     .query_text = kJoints,
                     .key_text = kTime,
                     .has_distances = false,
                     .rows_are = word(kJoint),
                     .columns_are = word(kTimeStep)};
    if (sample_.joints == 0) {
      page_.texts.push_back({.name = word({"pooled", "池化"}), .tokens = {"*"}});
      map.rows_are.clear();
      map.columns_are.clear();
      map.weights = explanation_.pooling;
    } else {
      map.weights = by_joint(explanation_.pooling);
      double entropy = 0;
      for (const float w : map.weights) entropy -= w > 0 ? double{w} * std::log(double{w}) : 0;
      map.entropy = {static_cast<float>(entropy)};
      map.largest = {static_cast<float>(largest_of(map.weights))};
      if (explanation_.layers.empty()) page_.rows_sum_to_one = false;
      if (!explanation_.pools_maxima) {
        page_.notes.emplace_back(kPoolingNote.in(page_.language));
      }
    }
    page_.maps.push_back(std::move(map));
  }

  void add_saliency() {
    const Saliency& saliency = explanation_.saliency;
    const std::string name = saliency_name_in(page_.language, saliency);
    const std::string source(source_of(saliency.method));
    const auto add = [&](const Phrase& what, std::size_t text, std::vector<float> values) {
      const std::string whole =
          sample_.joints > 0 ? fmt::format("{} ({})", name, word(what)) : name;
      page_.saliency.push_back(
          {.name = whole, .source = source, .text = text, .values = std::move(values)});
    };
    if (sample_.joints == 0) return add({}, kTime, saliency.values);
    std::vector<double> of_time(static_cast<std::size_t>(steps_));
    std::vector<double> of_joints(static_cast<std::size_t>(sample_.joints));
    for (std::size_t n = 0; n < saliency.values.size(); ++n) {
      of_time[n / of_joints.size()] += double{saliency.values[n]};
      of_joints[n % of_joints.size()] += double{saliency.values[n]};
    }
    add({"sum over the joints, for each time step", "对各关节求和，逐时间步"}, kTime,
        {of_time.begin(), of_time.end()});
    add({"sum over time, for each joint", "对时间求和，逐关节"}, kJoints,
        {of_joints.begin(), of_joints.end()});
    if (saliency.values.size() > kMostPairValues) {
      page_.notes.push_back(sentence({"The saliency of each joint at each time step is left out: "
                                      "it has {} numbers. --json has all of them.",
                                      "略去了每个关节在每个时间步的显著性：共 {} 个数。--json "
                                      "输出全部。"},
                                     saliency.values.size()));
      return;
    }
    page_.tables.push_back({.name = name,
                            .source = source,
                            .rows_are = word(kJoint),
                            .columns_are = word(kTimeStep),
                            .row_text = kJoints,
                            .column_text = kTime,
                            .values = by_joint(saliency.values)});
  }

  const Explanation& explanation_;
  AttentionPage& page_;
  const ExplainedSample sample_;
  index steps_;
};

// The page shows any text safely; a token of bytes may be none.
std::string as_text(const std::string& token) {
  return find_invalid_utf8(token) ? escape_text(token) : token;
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
  add("kind", "类型", std::string(explanation.kind.in(page.language)));
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

AttentionPage page_of(const Explanation& explanation, std::string_view model,
                      PageLanguage language) {
  AttentionPage page{
      .language = language,
      .title = explanation.has_weights()
                   ? text_in(language, "What the model looked at", "模型看了哪里")
                   : text_in(language, "What counts for the model", "哪些输入对模型起作用")};
  add_facts(explanation, model, page);
  explanation.numbers ? SamplePage(explanation, page).add() : add_text(explanation, page);
  for (const auto& [label, probability] : explanation.prediction) {
    page.prediction.push_back({as_text(label), probability});
  }
  if (explanation.saliency.exact) {
    page.notes.push_back(text_in(language, exact_sum_note(explanation.saliency)));
  }
  for (const Words& note : explanation.notes) page.notes.push_back(text_in(language, note));
  return page;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/frame_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "fovea/explain/page_parts.h"
#include "fovea/explain/text_parts.h"

namespace fovea {

namespace {

constexpr std::size_t kTime = 0, kJoints = 1;  // texts of the page

constexpr Phrase kTimeStep = {"time step", "时间步"}, kJoint = {"joint", "关节"};

constexpr Phrase kPoolingNote = {
    "In the map of pooling, a row is a joint and a column a time step: all of its weights together "
    "add up to 1.",
    "在池化的图中，每一行是一个关节，每一列是一个时间步：全部权重之和为 1。"};

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

}  // namespace

void add_sample(const Explanation& explanation, AttentionPage& page) {
  SamplePage(explanation, page).add();
}

}  // namespace fovea

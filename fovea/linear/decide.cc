// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/decide.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "fovea/base/option.h"

namespace fovea {

namespace {

// 2 hits / (predicted + true); 0 where there are none.
double f1(double hits, double predicted, double truth) {
  return predicted + truth > 0 ? 2 * hits / (predicted + truth) : 0;
}

// The probability of one label for each text, the largest first, and whether the text has it.
using Ranked = std::vector<std::pair<float, bool>>;

// Calls f(F1, p) for each threshold p that tells texts apart.
template <class F>
void for_thresholds(const Ranked& ranked, double truth, F&& f) {
  double hits = 0;
  for (std::size_t n = 0; n < ranked.size(); ++n) {
    hits += ranked[n].second ? 1 : 0;
    if (n + 1 < ranked.size() && ranked[n + 1].first == ranked[n].first) continue;
    f(f1(hits, static_cast<double>(n + 1), truth), ranked[n].first);
  }
}

float threshold_of_label(const Ranked& ranked) {
  constexpr double kNear = 0.9;
  const auto truth = static_cast<double>(
      std::count_if(ranked.begin(), ranked.end(), [](const auto& text) { return text.second; }));
  double best = 0, at_half = 0;
  float best_at = 0.5F;
  if (truth == 0) return best_at;
  for_thresholds(ranked, truth, [&](double found, float p) {
    if (found > best) best = found, best_at = p;
  });
  const auto half = static_cast<float>(best / 2);
  for_thresholds(ranked, truth, [&](double found, float p) {
    if (p >= half) at_half = found;
  });
  // Half of it holds more than one set of texts does, unless the probabilities are far off.
  return at_half >= kNear * best ? half : std::clamp(best_at, 1e-6F, 0.5F);
}

// The threshold that fits the rule best. It lies between two texts that it tells apart, halfway
// between their probabilities.
float threshold_by(const Ranked& ranked, const ThresholdRule& rule) {
  constexpr float kLeast = 1e-6F;
  const auto truth = static_cast<double>(
      std::count_if(ranked.begin(), ranked.end(), [](const auto& text) { return text.second; }));
  const bool by_precision = rule.goal == ThresholdGoal::kPrecision;
  double hits = 0, best = -1;
  float found = 0.5F;
  for (std::size_t n = 0; n < ranked.size() && truth > 0; ++n) {
    hits += ranked[n].second ? 1 : 0;
    const float next = n + 1 < ranked.size() ? ranked[n + 1].first : 0;
    if (next == ranked[n].first) continue;
    const double precision = hits / static_cast<double>(n + 1), recall = hits / truth;
    const float between = std::clamp((ranked[n].first + next) / 2, kLeast, 1 - kLeast);
    if (!by_precision) {
      found = between;
      if (recall >= rule.value) break;
      continue;
    }
    // Enough is enough: among those that reach it, the one with the most texts.
    const double good = precision >= rule.value ? 1 + recall : precision;
    if (good > best) best = good, found = between;
  }
  return found;
}

// The texts by the probability of label k, the largest first.
void rank(std::span<const float> predictions, const Examples& truth, index classes, index k,
          Ranked& ranked) {
  ranked.resize(static_cast<std::size_t>(truth.size()));
  for (index i = 0; i < truth.size(); ++i) {
    ranked[static_cast<std::size_t>(i)] = {predictions[static_cast<std::size_t>(i * classes + k)],
                                           truth.has_label(i, k)};
  }
  std::sort(ranked.begin(), ranked.end(), std::greater<>());
}

std::vector<float> thresholds_of_labels(const Context& context, std::span<const float> predictions,
                                        const Examples& truth, index classes,
                                        const ThresholdSearch& search) {
  const ThresholdRule& rule = search.rule;
  std::vector<float> thresholds(static_cast<std::size_t>(classes));
  std::atomic<bool> stopped = false;
  context.for_each(classes, [&](index k) {
    if (stopped || (search.interrupted && search.interrupted())) {
      stopped = true;
      return;
    }
    Ranked ranked;
    rank(predictions, truth, classes, k, ranked);
    thresholds[static_cast<std::size_t>(k)] =
        rule.goal == ThresholdGoal::kF1 ? threshold_of_label(ranked) : threshold_by(ranked, rule);
  });
  if (stopped) return {};
  return thresholds;
}

// The probability from which on the second of two classes is meant.
std::vector<float> thresholds_of_two(std::span<const float> predictions, const Examples& truth,
                                     const ThresholdRule& rule) {
  Ranked ranked;
  rank(predictions, truth, 2, 1, ranked);
  const float second = threshold_by(ranked, rule);
  return {1 - second, second};
}

// The mean F1 of the classes that texts have.
double macro_f1(std::span<const float> predictions, const Examples& truth,
                const std::vector<float>& thresholds, const std::vector<double>& texts) {
  const std::size_t classes = thresholds.size();
  std::vector<double> hits(classes), predicted(classes);
  for (index i = 0; i < truth.size(); ++i) {
    const float* const p = predictions.data() + static_cast<std::size_t>(i) * classes;
    std::size_t best = 0;
    for (std::size_t k = 1; k < classes; ++k) {
      if (p[k] / thresholds[k] > p[best] / thresholds[best]) best = k;
    }
    predicted[best] += 1;
    hits[best] += static_cast<std::size_t>(truth.labels_of(i)[0]) == best ? 1 : 0;
  }
  double sum = 0, seen = 0;
  for (std::size_t k = 0; k < classes; ++k) {
    if (texts[k] == 0) continue;
    sum += f1(hits[k], predicted[k], texts[k]);
    seen += 1;
  }
  return sum / seen;
}

std::vector<float> thresholds_of_classes(std::span<const float> predictions, const Examples& truth,
                                         index classes) {
  constexpr double kAsGood = 0.98;
  constexpr int kSteps = 9;
  std::vector<float> best(static_cast<std::size_t>(classes), 1.0F);
  const std::vector<double> texts = count_texts(truth, classes);
  if (!are_uneven(texts)) return best;
  const double most = *std::max_element(texts.begin(), texts.end());
  std::vector<std::vector<float>> tried;
  std::vector<double> found;
  for (int step = 0; step <= kSteps; ++step) {
    tried.push_back(best);
    for (std::size_t k = 0; k < texts.size(); ++k) {
      if (texts[k] > 0) tried.back()[k] = static_cast<float>(std::pow(texts[k] / most, 0.1 * step));
    }
    found.push_back(macro_f1(predictions, truth, tried.back(), texts));
  }
  // Several are about as good: the one nearest to the likeliest class is taken.
  const double enough = kAsGood * *std::max_element(found.begin(), found.end());
  const auto first =
      std::find_if(found.begin(), found.end(), [&](double f) { return f >= enough; });
  best = tried[static_cast<std::size_t>(first - found.begin())];
  return best;
}

}  // namespace

std::vector<double> count_texts(const Examples& truth, index classes) {
  std::vector<double> texts(static_cast<std::size_t>(classes));
  for (const std::int32_t label : truth.labels) texts[static_cast<std::size_t>(label)] += 1;
  return texts;
}

bool are_uneven(std::span<const double> texts) {
  constexpr double kUneven = 2;
  const double most = texts.empty() ? 0 : *std::max_element(texts.begin(), texts.end());
  return std::any_of(texts.begin(), texts.end(),
                     [&](double own) { return own > 0 && own * kUneven < most; });
}

ThresholdRule parse_threshold(std::string_view text) {
  ThresholdRule rule{.goal = ThresholdGoal::kGiven};
  std::string_view number = text;
  if (text == "f1") return {};
  if (text.starts_with("precision=")) rule.goal = ThresholdGoal::kPrecision;
  if (text.starts_with("recall=")) rule.goal = ThresholdGoal::kRecall;
  if (rule.goal != ThresholdGoal::kGiven) number.remove_prefix(text.find('=') + 1);
  const char* const end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, rule.value);
  // A part may be 1, a threshold not.
  const bool fits = rule.value > 0 && (rule.value < 1 || (rule.value == 1 && number != text));
  if (error == std::errc{} && rest == end && fits) return rule;
  fail_option("threshold", text, "f1, precision=X, recall=X or a number, each between 0 and 1");
}

std::vector<float> find_thresholds(const Context& context, ClassifierTask task,
                                   std::span<const float> predictions, const Examples& truth,
                                   index classes, const ThresholdSearch& search) {
  const ThresholdRule& rule = search.rule;
  const auto given = static_cast<float>(rule.value);
  const bool is_given = rule.goal == ThresholdGoal::kGiven;
  switch (task) {
    case ClassifierTask::kRegression:
      return {};
    case ClassifierTask::kMultiLabel:
      if (is_given) return std::vector<float>(static_cast<std::size_t>(classes), given);
      return thresholds_of_labels(context, predictions, truth, classes, search);
    case ClassifierTask::kBinary:
      if (is_given) return {1 - given, given};
      if (rule.goal != ThresholdGoal::kF1) return thresholds_of_two(predictions, truth, rule);
      break;
    case ClassifierTask::kSingleLabel:
      break;
  }
  return thresholds_of_classes(predictions, truth, classes);
}

std::vector<MissedPrecision> missed_precisions(ClassifierTask task,
                                               std::span<const float> predictions,
                                               const Examples& truth,
                                               std::span<const float> thresholds,
                                               const ThresholdRule& rule) {
  if (rule.goal != ThresholdGoal::kPrecision || thresholds.empty()) return {};
  const std::vector<float> values = decisive_rows(task, predictions, thresholds);
  const auto classes = static_cast<index>(thresholds.size());
  std::vector<MissedPrecision> missed;
  for (index k = task == ClassifierTask::kBinary ? 1 : 0; k < classes; ++k) {
    double hits = 0, named = 0, with = 0;
    for (index i = 0; i < truth.size(); ++i) {
      const bool has = truth.has_label(i, k);
      const bool is_named = values[static_cast<std::size_t>(i * classes + k)] >= 0.5F;
      named += is_named ? 1 : 0;
      hits += is_named && has ? 1 : 0;
      with += has ? 1 : 0;
    }
    const double precision = named > 0 ? hits / named : 0;
    if (with > 0 && precision < rule.value) missed.push_back({k, precision});
  }
  return missed;
}

double threshold_of(ClassifierTask task, std::span<const float> thresholds, index label) {
  const double own = double{thresholds[static_cast<std::size_t>(label)]};
  return task == ClassifierTask::kBinary ? own / (double{thresholds[0]} + double{thresholds[1]})
                                         : own;
}

std::vector<float> decisive(ClassifierTask task, std::span<const float> probabilities,
                            std::span<const float> thresholds) {
  std::vector<float> values(probabilities.begin(), probabilities.end());
  if (thresholds.empty()) return values;
  double sum = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double p = double{values[k]}, threshold = double{thresholds[k]};
    const double odds = p * (1 - threshold), against = (1 - p) * threshold;
    const double value = task == ClassifierTask::kMultiLabel
                             ? (odds + against > 0 ? odds / (odds + against) : 0)
                             : p / threshold;
    // A label at its threshold is meant, whatever the rounding.
    const bool is_meant = task == ClassifierTask::kMultiLabel && values[k] >= thresholds[k];
    values[k] = static_cast<float>(is_meant ? std::max(value, 0.5) : value);
    sum += value;
  }
  if (task == ClassifierTask::kMultiLabel || task == ClassifierTask::kRegression) return values;
  for (float& value : values) value = static_cast<float>(double{value} / sum);
  return values;
}

std::vector<float> decisive_rows(ClassifierTask task, std::span<const float> probabilities,
                                 std::span<const float> thresholds) {
  if (thresholds.empty()) return {probabilities.begin(), probabilities.end()};
  std::vector<float> all;
  all.reserve(probabilities.size());
  for (std::size_t begin = 0; begin < probabilities.size(); begin += thresholds.size()) {
    const std::vector<float> row =
        decisive(task, probabilities.subspan(begin, thresholds.size()), thresholds);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/calibrate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fovea/linear/linear_model.h"

namespace fovea {

namespace {

// The pull, as if texts were there that say 1 and 0.
constexpr double kPull = 1;
constexpr int kMostSteps = 30;
constexpr double kLeastFactor = 0.05;
constexpr index kMostTexts = 50'000;  // from which numbers so few are found

double weight_of(const CalibrationData& data, index i) {
  return data.weights.empty() ? 1 : data.weights[static_cast<std::size_t>(i)];
}

bool is_interrupted(const CalibrationData& data) { return data.interrupted && data.interrupted(); }

double value_at(const CalibrationData& data, index i, index k) {
  return double{data.values[static_cast<std::size_t>(i * data.outputs + k)]};
}

double length_at(const CalibrationData& data, index i) {
  return double{data.lengths[static_cast<std::size_t>(i)]};
}

double logit_of(const CalibrationData& data, const Calibration& by, index i, index k) {
  const auto at = static_cast<std::size_t>(k);
  return data.prior[at] + by.factors[at] * value_at(data, i, k) +
         by.shifts[at] * length_at(data, i);
}

bool has_label(const CalibrationData& data, index i, index k) {
  if (!data.labels.empty())
    return data.truth.has_label(i, data.labels[static_cast<std::size_t>(k)]);
  return data.truth.has_label(i, data.task == ClassifierTask::kBinary ? 1 : k);
}

// The texts by which numbers are found: at even distances, since files are often sorted by label.
index texts_used(const CalibrationData& data) { return std::min(data.truth.size(), kMostTexts); }
index text_used(const CalibrationData& data, index n) {
  return n * data.truth.size() / texts_used(data);
}

// Adds the gradient and the second derivatives of what one logit adds to the loss.
struct Slopes {
  double factor = kPull, shift = 0;                  // gradient
  double factors = kPull, shifts = kPull, both = 0;  // second derivatives

  Slopes(double a, double c) : factor(kPull * (a - 1)), shift(kPull * c) {}
  void add(double weight, double value, double length, double error, double curve) {
    factor += weight * error * value;
    shift += weight * error * length;
    factors += weight * curve * value * value;
    shifts += weight * curve * length * length;
    both += weight * curve * value * length;
  }
};

// The evidence of one text on an output.
struct Seen {
  double value = 0, length = 0, weight = 0, truth = 0;
};

// One or two numbers for output k, by all texts alone.
void calibrate_sigmoid(const CalibrationData& data, index k, bool shifts, Calibration& by) {
  const double prior = data.prior[static_cast<std::size_t>(k)];
  std::vector<Seen> texts;
  for (index n = 0; n < texts_used(data); ++n) {
    const index i = text_used(data, n);
    texts.push_back({value_at(data, i, k), length_at(data, i), weight_of(data, i),
                     has_label(data, i, k) ? 1.0 : 0.0});
  }
  double a = 1, c = 0;
  for (int step = 0; step < kMostSteps && !is_interrupted(data); ++step) {
    Slopes slopes(a, c);
    for (const Seen& text : texts) {
      const double p = sigmoid(prior + a * text.value + c * text.length);
      slopes.add(text.weight, text.value, text.length, p - text.truth, p * (1 - p));
    }
    const double both = shifts ? slopes.both : 0;
    const double determinant = slopes.factors * slopes.shifts - both * both;
    const double of_a = (slopes.shifts * slopes.factor - both * slopes.shift) / determinant;
    const double of_c = (slopes.factors * slopes.shift - both * slopes.factor) / determinant;
    // A factor that would fall below 0 is halved.
    const double next = a - of_a > a / 2 ? std::min(a - of_a, 2 * a) : a / 2;
    const double moved = std::abs(next - a) + (shifts ? std::abs(of_c) : 0);
    a = std::max(next, kLeastFactor);
    if (shifts) c -= of_c;
    if (moved < 1e-6) break;
  }
  by.factors[static_cast<std::size_t>(k)] = a;
  by.shifts[static_cast<std::size_t>(k)] = c;
}

// The probabilities [outputs] of text i.
void softmax_of(const CalibrationData& data, const Calibration& by, index i, std::span<double> p) {
  for (index k = 0; k < data.outputs; ++k) {
    p[static_cast<std::size_t>(k)] = logit_of(data, by, i, k);
  }
  const double largest = *std::max_element(p.begin(), p.end());
  for (double& z : p) z = std::exp(z - largest);
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& z : p) z /= sum;
}

// One factor for all classes, then a step of the shifts, in turns. Each sum is over the texts in
// their order: threads share the texts of a block for what each text says, then the classes.
class SoftmaxCalibration {
 public:
  SoftmaxCalibration(const Context& context, const CalibrationData& data, bool shifts,
                     Calibration& by)
      : context_(context),
        data_(data),
        shifts_(shifts),
        by_(by),
        p_(kTogether * classes()),
        means_(kTogether),
        squares_(kTogether),
        gradient_(classes()),
        curve_(classes()) {}

  void run() {
    for (int step = 0; step < kMostSteps && !is_interrupted(data_); ++step) {
      if (moved() < 1e-6) return;
    }
  }

 private:
  static constexpr std::size_t kTogether = 256;

  std::size_t classes() const { return static_cast<std::size_t>(data_.outputs); }
  std::size_t truth_of(index i) const {
    return static_cast<std::size_t>(data_.truth.labels_of(i)[0]);
  }

  // Takes a step.
  double moved() {
    const std::size_t K = classes();
    Slopes slopes(a_, 0);
    for (std::size_t k = 0; k < K; ++k) {
      gradient_[k] = kPull * by_.shifts[k];
      curve_[k] = kPull;
    }
    const index texts = texts_used(data_);
    for (index first = 0; first < texts; first += static_cast<index>(kTogether)) {
      add(first, std::min(texts, first + static_cast<index>(kTogether)), slopes);
    }
    const double of_a = slopes.factor / slopes.factors;
    const double next = a_ - of_a > a_ / 2 ? std::min(a_ - of_a, 2 * a_) : a_ / 2;
    double moved = std::abs(next - a_);
    a_ = std::max(next, kLeastFactor);
    std::fill(by_.factors.begin(), by_.factors.end(), a_);
    for (std::size_t k = 0; shifts_ && k < K; ++k) {
      // The shifts pull at each other, so each goes half of its way.
      const double of_c = gradient_[k] / curve_[k] / 2;
      by_.shifts[k] -= of_c;
      moved += std::abs(of_c) / static_cast<double>(K);
    }
    return moved;
  }

  void add(index first, index end, Slopes& slopes) {
    constexpr double kCost = 60;  // of a probability
    const std::size_t K = classes();
    context_.for_ranges(end - first, kCost * static_cast<double>(K), [&](index from, index to) {
      for (index n = from; n < to; ++n) look_at(text_used(data_, first + n), n);
    });
    for (index n = 0; n < end - first; ++n) {
      const auto at = static_cast<std::size_t>(n);
      const index i = text_used(data_, first + n);
      const double weight = weight_of(data_, i);
      slopes.factor += weight * (means_[at] - value_at(data_, i, static_cast<index>(truth_of(i))));
      slopes.factors += weight * (squares_[at] - means_[at] * means_[at]);
    }
    if (!shifts_) return;
    context_.for_ranges(data_.outputs, 8.0 * static_cast<double>(end - first),
                        [&](index from, index to) {
                          for (index n = 0; n < end - first; ++n) add_shifts(first, n, from, to);
                        });
  }

  void look_at(index i, index n) {
    const std::size_t K = classes(), at = static_cast<std::size_t>(n);
    const std::span<double> p = std::span(p_).subspan(at * K, K);
    softmax_of(data_, by_, i, p);
    double mean = 0, squares = 0;
    for (std::size_t k = 0; k < K; ++k) {
      const double value = value_at(data_, i, static_cast<index>(k));
      mean += p[k] * value;
      squares += p[k] * value * value;
    }
    means_[at] = mean;
    squares_[at] = squares;
  }

  void add_shifts(index first, index n, index from, index to) {
    const index i = text_used(data_, first + n);
    const double weight = weight_of(data_, i), length = length_at(data_, i);
    const double* const p = p_.data() + static_cast<std::size_t>(n) * classes();
    const std::size_t truth = truth_of(i);
    for (auto k = static_cast<std::size_t>(from); k < static_cast<std::size_t>(to); ++k) {
      gradient_[k] += weight * (p[k] - (k == truth ? 1 : 0)) * length;
      curve_[k] += weight * p[k] * (1 - p[k]) * length * length;
    }
  }

  const Context& context_;
  const CalibrationData& data_;
  const bool shifts_;
  Calibration& by_;
  double a_ = 1;
  std::vector<double> p_;                // [texts of a block, classes]
  std::vector<double> means_, squares_;  // [texts of a block] of the values
  std::vector<double> gradient_, curve_;
};

// Calls f(i, own) for all texts, where f may use own [outputs].
template <class F>
void for_all_texts(const Context& context, const CalibrationData& data, F&& f) {
  constexpr double kCost = 60;
  context.for_ranges(data.truth.size(), kCost * static_cast<double>(data.outputs),
                     [&](index begin, index end) {
                       std::vector<double> own(static_cast<std::size_t>(data.outputs));
                       for (index i = begin; i < end; ++i) f(i, std::span<double>(own));
                     });
}

double loss_of_text(const CalibrationData& data, const Calibration& by, index i,
                    std::span<double> p) {
  if (data.task == ClassifierTask::kSingleLabel) {
    softmax_of(data, by, i, p);
    return -std::log(std::max(p[static_cast<std::size_t>(data.truth.labels_of(i)[0])], 1e-300));
  }
  double own = 0;
  for (index k = 0; k < data.outputs; ++k) {
    const double z = logit_of(data, by, i, k);
    if (data.task == ClassifierTask::kRegression) {
      const double error = z - double{data.truth.numbers[static_cast<std::size_t>(i)]};
      own += error * error;
    } else {
      const double y = has_label(data, i, k) ? 1 : -1;
      own += std::max(-y * z, 0.0) + std::log1p(std::exp(-std::abs(z)));
    }
  }
  return own / static_cast<double>(data.outputs);
}

}  // namespace

Calibration calibrate(const Context& context, const CalibrationData& data, CalibrationSize size) {
  const auto K = static_cast<std::size_t>(data.outputs);
  Calibration by{std::vector<double>(K, 1), std::vector<double>(K, 0)};
  const bool whole = size == CalibrationSize::kWhole;
  switch (data.task) {
    case ClassifierTask::kRegression:
      break;
    case ClassifierTask::kSingleLabel:
      SoftmaxCalibration(context, data, whole, by).run();
      break;
    case ClassifierTask::kBinary:
    case ClassifierTask::kMultiLabel:
      context.for_each(data.outputs, [&](index k) { calibrate_sigmoid(data, k, whole, by); });
      break;
  }
  return by;
}

std::vector<double> losses_of(const Context& context, const CalibrationData& data,
                              const Calibration& by) {
  std::vector<double> losses(static_cast<std::size_t>(data.truth.size()));
  for_all_texts(context, data, [&](index i, std::span<double> own) {
    losses[static_cast<std::size_t>(i)] = loss_of_text(data, by, i, own);
  });
  return losses;
}

double loss_of(const Context& context, const CalibrationData& data, const Calibration& by) {
  const std::vector<double> losses = losses_of(context, data, by);
  double loss = 0, weights = 0;
  for (index i = 0; i < data.truth.size(); ++i) {
    const double weight = weight_of(data, i);
    loss += weight * losses[static_cast<std::size_t>(i)];
    weights += weight;
  }
  return loss / std::max(weights, 1e-300);
}

std::vector<float> predictions_of(const Context& context, const CalibrationData& data,
                                  const Calibration& by, index classes,
                                  std::span<const IsotonicMap> isotonic) {
  std::vector<float> values(static_cast<std::size_t>(data.truth.size() * classes));
  for_all_texts(context, data, [&](index i, std::span<double> z) {
    for (index k = 0; k < data.outputs; ++k) {
      z[static_cast<std::size_t>(k)] = logit_of(data, by, i, k);
    }
    const bool is_known = length_at(data, i) > 0;
    predictions_of(data.task, z, values.data() + i * classes,
                   is_known ? isotonic : std::span<const IsotonicMap>());
  });
  return values;
}

std::vector<IsotonicMap> isotonic_maps(const Context& context, const CalibrationData& data,
                                       const Calibration& by, std::span<const std::int32_t> fold,
                                       std::int32_t left_out) {
  std::vector<index> used;
  for (index i = 0; i < data.truth.size(); ++i) {
    if (left_out >= 0 && fold[static_cast<std::size_t>(i)] == left_out) continue;
    if (weight_of(data, i) > 0) used.push_back(i);
  }
  if (used.empty()) return {};
  const auto K = static_cast<std::size_t>(data.outputs);
  std::vector<float> log_odds(static_cast<std::size_t>(data.truth.size()) * K);
  for_all_texts(context, data, [&](index i, std::span<double> z) {
    for (index k = 0; k < data.outputs; ++k) {
      z[static_cast<std::size_t>(k)] = logit_of(data, by, i, k);
    }
    to_log_odds(data.task, z);
    std::copy(z.begin(), z.end(), log_odds.begin() + i * data.outputs);
  });
  std::vector<IsotonicMap> maps(K);
  context.for_each(data.outputs, [&](index k) {
    std::vector<IsotonicText> texts;
    for (const index i : used) {
      texts.push_back({log_odds[static_cast<std::size_t>(i * data.outputs + k)],
                       has_label(data, i, k), weight_of(data, i)});
    }
    maps[static_cast<std::size_t>(k)] = fit_isotonic(std::move(texts));
  });
  return maps;
}

}  // namespace fovea

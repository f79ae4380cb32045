// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/calibrate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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
  return data.truth.has_label(i, data.task == ClassifierTask::kBinary ? 1 : k);
}

// Calls f(i) for the texts by which numbers are found: at even distances, since files are often
// sorted by label.
template <class F>
void for_texts(const CalibrationData& data, F&& f) {
  const index all = data.truth.size(), count = std::min(all, kMostTexts);
  for (index n = 0; n < count; ++n) f(n * all / count);
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

// One or two numbers for output k, by all texts alone.
void calibrate_sigmoid(const CalibrationData& data, index k, bool shifts, Calibration& by) {
  double& a = by.factors[static_cast<std::size_t>(k)];
  double& c = by.shifts[static_cast<std::size_t>(k)];
  for (int step = 0; step < kMostSteps && !is_interrupted(data); ++step) {
    Slopes slopes(a, c);
    for_texts(data, [&](index i) {
      const double p = sigmoid(logit_of(data, by, i, k));
      slopes.add(weight_of(data, i), value_at(data, i, k), length_at(data, i),
                 p - (has_label(data, i, k) ? 1 : 0), p * (1 - p));
    });
    const double both = shifts ? slopes.both : 0;
    const double determinant = slopes.factors * slopes.shifts - both * both;
    const double of_a = (slopes.shifts * slopes.factor - both * slopes.shift) / determinant;
    const double of_c = (slopes.factors * slopes.shift - both * slopes.factor) / determinant;
    // A factor that would fall below 0 is halved.
    const double next = a - of_a > a / 2 ? std::min(a - of_a, 2 * a) : a / 2;
    const double moved = std::abs(next - a) + (shifts ? std::abs(of_c) : 0);
    a = std::max(next, kLeastFactor);
    if (shifts) c -= of_c;
    if (moved < 1e-6) return;
  }
}

// The probabilities [outputs] of text i.
void softmax_of(const CalibrationData& data, const Calibration& by, index i,
                std::vector<double>& p) {
  for (index k = 0; k < data.outputs; ++k) {
    p[static_cast<std::size_t>(k)] = logit_of(data, by, i, k);
  }
  const double largest = *std::max_element(p.begin(), p.end());
  for (double& z : p) z = std::exp(z - largest);
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& z : p) z /= sum;
}

// One factor for all classes, then a step of the shifts, in turns.
void calibrate_softmax(const CalibrationData& data, bool shifts, Calibration& by) {
  const auto K = static_cast<std::size_t>(data.outputs);
  std::vector<double> p(K), gradient(K), curve(K);
  double a = 1;
  for (int step = 0; step < kMostSteps && !is_interrupted(data); ++step) {
    Slopes slopes(a, 0);
    for (std::size_t k = 0; k < K; ++k) {
      gradient[k] = kPull * by.shifts[k];
      curve[k] = kPull;
    }
    for_texts(data, [&](index i) {
      softmax_of(data, by, i, p);
      const double weight = weight_of(data, i), length = length_at(data, i);
      const auto truth = static_cast<std::size_t>(data.truth.labels_of(i)[0]);
      double mean = 0, squares = 0;
      for (std::size_t k = 0; k < K; ++k) {
        const double value = value_at(data, i, static_cast<index>(k));
        mean += p[k] * value;
        squares += p[k] * value * value;
        gradient[k] += weight * (p[k] - (k == truth ? 1 : 0)) * length;
        curve[k] += weight * p[k] * (1 - p[k]) * length * length;
      }
      slopes.factor += weight * (mean - value_at(data, i, static_cast<index>(truth)));
      slopes.factors += weight * (squares - mean * mean);
    });
    const double of_a = slopes.factor / slopes.factors;
    const double next = a - of_a > a / 2 ? std::min(a - of_a, 2 * a) : a / 2;
    double moved = std::abs(next - a);
    a = std::max(next, kLeastFactor);
    std::fill(by.factors.begin(), by.factors.end(), a);
    for (std::size_t k = 0; shifts && k < K; ++k) {
      // The shifts pull at each other, so each goes half of its way.
      const double of_c = gradient[k] / curve[k] / 2;
      by.shifts[k] -= of_c;
      moved += std::abs(of_c) / static_cast<double>(K);
    }
    if (moved < 1e-6) return;
  }
}

}  // namespace

Calibration calibrate(const CalibrationData& data, CalibrationSize size) {
  const auto K = static_cast<std::size_t>(data.outputs);
  Calibration by{std::vector<double>(K, 1), std::vector<double>(K, 0)};
  const bool whole = size == CalibrationSize::kWhole;
  switch (data.task) {
    case ClassifierTask::kRegression:
      break;
    case ClassifierTask::kSingleLabel:
      calibrate_softmax(data, whole, by);
      break;
    case ClassifierTask::kBinary:
    case ClassifierTask::kMultiLabel:
      for (index k = 0; k < data.outputs; ++k) calibrate_sigmoid(data, k, whole, by);
      break;
  }
  return by;
}

double loss_of(const CalibrationData& data, const Calibration& by) {
  double loss = 0, weights = 0;
  std::vector<double> p(static_cast<std::size_t>(data.outputs));
  for (index i = 0; i < data.truth.size(); ++i) {
    const double weight = weight_of(data, i);
    double own = 0;
    if (data.task == ClassifierTask::kSingleLabel) {
      softmax_of(data, by, i, p);
      own = -std::log(std::max(p[static_cast<std::size_t>(data.truth.labels_of(i)[0])], 1e-300));
    } else {
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
      own /= static_cast<double>(data.outputs);
    }
    loss += weight * own;
    weights += weight;
  }
  return loss / std::max(weights, 1e-300);
}

std::vector<float> predictions_of(const CalibrationData& data, const Calibration& by,
                                  index classes) {
  std::vector<float> values(static_cast<std::size_t>(data.truth.size() * classes));
  std::vector<double> z(static_cast<std::size_t>(data.outputs));
  for (index i = 0; i < data.truth.size(); ++i) {
    for (index k = 0; k < data.outputs; ++k) {
      z[static_cast<std::size_t>(k)] = logit_of(data, by, i, k);
    }
    predictions_of(data.task, z, values.data() + i * classes);
  }
  return values;
}

}  // namespace fovea

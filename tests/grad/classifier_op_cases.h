// SPDX-License-Identifier: Apache-2.0
// The ops of classifiers as cases of the gradient checker: one row for each sequence, and losses.
#pragma once

#include "tests/grad/op_cases.h"

namespace fovea {

// Sequences of 2, 0 and 4 rows (kOffsets).
struct MeanOverTimeFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index s, index c) {
      T sum = T(0);
      for (index n = kOffsets[s]; n < kOffsets[s + 1]; ++n) sum += in[0][n][c];
      return s == 1 ? T(0) : sum / T(static_cast<double>(kOffsets[s + 1] - kOffsets[s]));
    });
  }
};

struct FirstOverTimeFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index s, index c) { return s == 1 ? T(0) : in[0][kOffsets[s]][c]; });
  }
};

struct LastOverTimeFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index s, index c) { return s == 1 ? T(0) : in[0][kOffsets[s + 1] - 1][c]; });
  }
};

/// in: x, query.
struct AttentionOverTimeFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    using std::exp;
    fill(y, [](index, index) { return T(0); });
    for (index s = 0; s < y.rows; ++s) {
      T total = T(0);
      for (index n = kOffsets[s]; n < kOffsets[s + 1]; ++n) {
        T score = T(0);
        for (index c = 0; c < y.columns; ++c) score += in[0][n][c] * in[1][0][c];
        const T weight = exp(score / T(std::sqrt(static_cast<double>(y.columns))));
        total += weight;
        for (index c = 0; c < y.columns; ++c) y[s][c] += weight * in[0][n][c];
      }
      for (index c = 0; s != 1 && c < y.columns; ++c) y[s][c] /= total;
    }
  }
};

inline constexpr double kClassWeights[] = {1, 0.5, 3, 0, 2};
inline constexpr double kZeroWeights[] = {0.25, 1, 2, 1, 0};

struct WeightedCrossEntropyFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    using std::exp, std::log;
    y[0][0] = T(0);
    for (index n = 0; n < in[0].rows; ++n) {
      if (kTargets[n] < 0) continue;
      T total = T(0);
      for (index c = 0; c < 5; ++c) total += exp(in[0][n][c]);
      for (index c = 0; c < 5; ++c) {
        const double share = (c == kTargets[n] ? 0.7 : 0) + 0.3 / 5;
        y[0][0] += T(0.25 * share * kClassWeights[c]) * (log(total) - in[0][n][c]);
      }
    }
  }
};

inline Variable weighted_cross_entropy(Tape& tape, Inputs in) {
  return cross_entropy(tape, in[0], {{kTargets, 6}, -1, {kClassWeights, 5}, 0.3}, 0.25);
}

// Targets of binary questions and of regressions, [6, 5].
inline double target(index n, index c) { return static_cast<double>((n * 5 + c) % 5) / 4; }

inline Variable target_rows(Tape& tape, DType dtype) {
  const Variable y = tape.result(6, 5, dtype);
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    fill(y.value<T>(), [](index n, index c) { return static_cast<T>(target(n, c)); });
  });
  return y;
}

struct BinaryCrossEntropyFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    using std::exp, std::log;
    y[0][0] = T(0);
    for (index n = 0; n < in[0].rows; ++n)
      for (index c = 0; c < 5; ++c) {
        const double one = 0.8 * target(n, c) + 0.1;
        const T x = in[0][n][c];
        y[0][0] += T(0.5 * kClassWeights[c] * one) * log(T(1) + exp(-x)) +
                   T(0.5 * kZeroWeights[c] * (1 - one)) * log(T(1) + exp(x));
      }
  }
};

inline Variable weighted_binary_cross_entropy(Tape& tape, Inputs in) {
  const BinaryWeights weights{{kClassWeights, 5}, {kZeroWeights, 5}, 0.2};
  return binary_cross_entropy(tape, in[0], target_rows(tape, in[0].dtype()), weights, 0.5);
}

struct SquaredErrorFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    y[0][0] = T(0);
    for (index n = 0; n < in[0].rows; ++n)
      for (index c = 0; c < 5; ++c) {
        const T error = in[0][n][c] - T(target(n, c));
        y[0][0] += T(0.5) * error * error;
      }
  }
};

inline constexpr OpCase kClassifierOpCases[] = {
    {"mean_over_time",
     {{6, 5}},
     [](Tape& t, Inputs in) { return mean_over_time(t, in[0], three_sequences(t)); },
     by<MeanOverTimeFormula>},
    {"first_over_time",
     {{6, 5}},
     [](Tape& t, Inputs in) { return first_over_time(t, in[0], three_sequences(t)); },
     by<FirstOverTimeFormula>},
    {"last_over_time",
     {{6, 5}},
     [](Tape& t, Inputs in) { return last_over_time(t, in[0], three_sequences(t)); },
     by<LastOverTimeFormula>},
    {"attention_over_time",
     {{6, 5}, {1, 5}},
     [](Tape& t, Inputs in) { return attention_over_time(t, in[0], in[1], three_sequences(t)); },
     by<AttentionOverTimeFormula>},
    {"weighted_cross_entropy",
     {{6, 5}},
     weighted_cross_entropy,
     by<WeightedCrossEntropyFormula>,
     -3,
     3},
    {"binary_cross_entropy",
     {{6, 5}},
     weighted_binary_cross_entropy,
     by<BinaryCrossEntropyFormula>,
     -3,
     3},
    {"squared_error",
     {{6, 5}},
     [](Tape& t, Inputs in) { return squared_error(t, in[0], target_rows(t, in[0].dtype()), 0.5); },
     by<SquaredErrorFormula>},
};

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// The formulas of the ops in plain loops: in double, what an op must compute; in float, how far off
// a plain implementation may be. Each is a struct with run<T>(inputs, output).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

#include "fovea/kernel/dropout.h"
#include "fovea/kernel/elementwise.h"
#include "fovea/reference/kernels.h"

namespace fovea {

template <class T>
using Matrices = std::span<const Rows<const T>>;

// The inputs of the cases.
inline constexpr std::int32_t kIds[] = {2, 0, 4, 2, 2, 1};
inline constexpr std::int32_t kPlaces[] = {0, 1, 2, 0, 1, 2};
inline constexpr std::int32_t kTargets[] = {3, -1, 0, 4, 3, 1};
inline constexpr std::int32_t kOffsets[] = {0, 2, 2, 6};
inline constexpr std::uint64_t kSamples[] = {7, 8, 1ull << 40};
inline constexpr double kDropoutRate = 0.4;
inline constexpr DropoutKey kDropoutKey{11, 12, 13};

/// y[n][c] = f(n, c).
template <class T, class F>
void fill(Rows<T> y, F&& f) {
  for (index n = 0; n < y.rows; ++n) {
    for (index c = 0; c < y.columns; ++c) y[n][c] = f(n, c);
  }
}

template <class T>
T activate(Activation f, T x) {
  using std::erfc, std::exp, std::tanh;
  switch (f) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x > T(0) ? x : T(0);
    case Activation::kGelu:
      return x * T(0.5) * erfc(-x / T(std::sqrt(2.0)));
    case Activation::kGeluTanh: {
      const T inner = T(std::sqrt(2 / std::numbers::pi)) * (x + T(0.044715) * x * x * x);
      return T(0.5) * x * (T(1) + tanh(inner));
    }
    case Activation::kSilu:
      return x / (T(1) + exp(-x));
    case Activation::kTanh:
      return tanh(x);
  }
  return x;
}

template <Activation f>
struct ActivationFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) { return activate(f, in[0][n][c]); });
  }
};

/// in: x, weight, and a bias or none.
template <Activation f>
struct LinearFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index o) {
      T sum = in.size() > 2 ? in[2][0][o] : T(0);
      for (index c = 0; c < in[0].columns; ++c) sum += in[0][n][c] * in[1][o][c];
      return activate(f, sum);
    });
  }
};

/// One matrix where `Formula` takes two or three.
template <class Formula, std::size_t times>
struct OfItself {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    std::array<Rows<const T>, times> same;
    same.fill(in[0]);
    Formula::template run<T>(same, y);
  }
};

/// Token rows plus position rows.
struct EmbeddingFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) { return in[0][kIds[n]][c] + in[1][kPlaces[n]][c]; });
  }
};

template <BagMode mode>
struct EmbeddingBagFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index b, index c) {
      T sum = T(0);
      for (index n = kOffsets[b]; n < kOffsets[b + 1]; ++n) sum += in[0][kIds[n]][c];
      const int count = std::max(1, kOffsets[b + 1] - kOffsets[b]);
      if (mode == BagMode::kRootMean) return sum / T(std::sqrt(count));
      return mode == BagMode::kSum ? sum : sum / T(count);
    });
  }
};

/// in: x, and gain and bias or neither.
template <LayerNormVariant variant>
struct LayerNormFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    using std::sqrt;
    const auto C = static_cast<double>(y.columns);
    for (index n = 0; n < y.rows; ++n) {
      const T* x = in[0][n];
      T mu = T(0), squares = T(0);
      for (index c = 0; c < y.columns; ++c) mu += x[c] / T(C);
      for (index c = 0; c < y.columns; ++c) squares += (x[c] - mu) * (x[c] - mu);
      const T divisor = variant == LayerNormVariant::kStandard ? sqrt(squares / T(C) + T(1e-5))
                                                               : sqrt(squares / T(C - 1)) + T(1e-6);
      for (index c = 0; c < y.columns; ++c) {
        const T hat = (x[c] - mu) / divisor;
        y[n][c] = in.size() > 1 ? in[1][0][c] * hat + in[2][0][c] : hat;
      }
    }
  }
};

struct RmsNormFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    using std::sqrt;
    for (index n = 0; n < y.rows; ++n) {
      T square = T(0);
      for (index c = 0; c < y.columns; ++c) square += in[0][n][c] * in[0][n][c];
      const T rms = sqrt(square / T(static_cast<double>(y.columns)) + T(1e-5));
      for (index c = 0; c < y.columns; ++c) y[n][c] = in[1][0][c] * in[0][n][c] / rms;
    }
  }
};

/// The columns in `heads` groups, each normalised by itself, with one gain for all.
template <index heads>
struct RmsNormHeadsFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    using std::sqrt;
    const index D = y.columns / heads;
    for (index n = 0; n < y.rows; ++n) {
      for (index first = 0; first < y.columns; first += D) {
        T square = T(0);
        for (index c = 0; c < D; ++c) square += in[0][n][first + c] * in[0][n][first + c];
        const T rms = sqrt(square / T(static_cast<double>(D)) + T(1e-5));
        for (index c = 0; c < D; ++c) y[n][first + c] = in[1][0][c] * in[0][n][first + c] / rms;
      }
    }
  }
};

struct AddFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) { return in[0][n][c] + in[1][n][c]; });
  }
};

struct MultiplyFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) { return in[0][n][c] * in[1][n][c]; });
  }
};

struct ScaleFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) { return T(-2.5) * in[0][n][c]; });
  }
};

/// The rows of x that the mask of rows leaves, in the three sequences.
template <class T>
T dropped(index n, index c, T x) {
  std::vector<SampleRow> rows;
  for (std::size_t s = 0; s < 3; ++s) {
    for (std::int32_t i = kOffsets[s]; i < kOffsets[s + 1]; ++i) {
      rows.push_back({kSamples[s], static_cast<std::uint32_t>(i - kOffsets[s])});
    }
  }
  const DropoutMask mask{.p = kDropoutRate, .key = kDropoutKey, .rows = {rows.data(), 6}};
  return reference::dropout_keeps(mask, n, c) ? x / T(1 - kDropoutRate) : T(0);
}

struct DropoutFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) { return dropped(n, c, in[0][n][c]); });
  }
};

struct ResidualDropoutFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) { return in[0][n][c] + dropped(n, c, in[1][n][c]); });
  }
};

struct ColumnsSwappedFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) { return in[0][n][(c + 2) % 5]; });
  }
};

/// x = 1.5 in; the products of columns 0, 3 and 1, 4 of x, then x.
struct ColumnsUsedTwiceFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) {
      const auto x = [&](index column) { return in[0][n][column] * T(1.5); };
      return c < 2 ? x(c) * x(c + 3) : x(c - 2);
    });
  }
};

/// Rows 0 and 2 begin the sequences that are not empty.
struct FirstRowsFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) { return in[n == 0 || n == 2 ? 1 : 0][n][c]; });
  }
};

/// Windows of three rows: sequences of 2, 0 and 4 rows, the first too short for one.
struct WholeWindowsFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) { return n == 2 || n == 5 ? T{0} : in[0][n][c]; });
  }
};

/// The second operand, then the first.
struct RowsStackedFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) { return n < 2 ? in[1][n][c] : in[0][n - 2][c]; });
  }
};

/// [u, v, |u - v|, u * v] for rows u, v of each pair.
struct PairFeaturesFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    const index C = in[0].columns;
    fill(y, [&](index s, index c) -> T {
      const T u = in[0][2 * s][c % C], v = in[0][2 * s + 1][c % C];
      return c < C ? u : c < 2 * C ? v : c < 3 * C ? T(u > v ? u - v : v - u) : T(u * v);
    });
  }
};

/// The first 3 columns, or all, divided by their length.
template <index columns>
struct UnitRowsFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    using std::sqrt;
    for (index n = 0; n < y.rows; ++n) {
      T squares = T(0);
      for (index c = 0; c < columns; ++c) squares += in[0][n][c] * in[0][n][c];
      for (index c = 0; c < columns; ++c) y[n][c] = in[0][n][c] / sqrt(squares);
    }
  }
};

/// What is to be the order of six cosines: two of them are equal.
inline constexpr float kOrder[] = {0.5f, 3, 1, 0.5f, 2, -1};

struct CosentFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    using std::exp, std::log;
    T total = T(1);
    for (index i = 0; i < 6; ++i) {
      for (index j = 0; j < 6; ++j) {
        if (kOrder[i] < kOrder[j]) total += exp((in[0][i][0] - in[0][j][0]) / T(0.5));
      }
    }
    y[0][0] = T(0.25) * log(total);
  }
};

struct ScaleByThreeFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) { return T(3) * in[0][n][c]; });
  }
};

struct SoftmaxFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    using std::exp;
    for (index n = 0; n < y.rows; ++n) {
      T total = T(0);
      for (index c = 0; c < y.columns; ++c) total += exp(in[0][n][c]);
      for (index c = 0; c < y.columns; ++c) y[n][c] = exp(in[0][n][c]) / total;
    }
  }
};

/// quarters / 4 of the sum over targets that are not ignored.
template <int quarters>
struct CrossEntropyFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    using std::exp, std::log;
    y[0][0] = T(0);
    for (index n = 0; n < in[0].rows; ++n) {
      if (kTargets[n] < 0) continue;
      T total = T(0);
      for (index c = 0; c < in[0].columns; ++c) total += exp(in[0][n][c]);
      y[0][0] += log(total) - in[0][n][kTargets[n]];
    }
    y[0][0] *= T(quarters / 4.0);
  }
};

struct LinearCrossEntropyFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    std::vector<T> values(static_cast<std::size_t>(in[0].rows * in[1].rows));
    const Rows<T> logits(values.data(), in[0].rows, in[1].rows);
    LinearFormula<Activation::kNone>::run<T>(in, logits);
    const Rows<const T> one[] = {logits};
    CrossEntropyFormula<1>::run<T>(one, y);
  }
};

/// C tanh(x / C).
struct SoftcapFormula {
  static constexpr double kCap = 0.75;

  template <class T>
  static T of(T x) {
    using std::tanh;
    return T(kCap) * tanh(x / T(kCap));
  }
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    fill(y, [&](index n, index c) { return of(in[0][n][c]); });
  }
};

struct CappedCrossEntropyFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    std::vector<T> values(static_cast<std::size_t>(in[0].rows * in[1].rows));
    const Rows<T> logits(values.data(), in[0].rows, in[1].rows);
    LinearFormula<Activation::kNone>::run<T>(in, logits);
    for (T& value : values) value = SoftcapFormula::of(value);
    const Rows<const T> one[] = {logits};
    CrossEntropyFormula<1>::run<T>(one, y);
  }
};

/// Divided by the number of elements, or not.
template <bool mean>
struct SumFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    y[0][0] = T(0);
    for (index n = 0; n < in[0].rows; ++n) {
      for (index c = 0; c < in[0].columns; ++c) y[0][0] += in[0][n][c];
    }
    if (mean) y[0][0] /= T(static_cast<double>(in[0].rows * in[0].columns));
  }
};

}  // namespace fovea

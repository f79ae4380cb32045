// SPDX-License-Identifier: Apache-2.0
// Rows of length 1, whose products are cosines, and the loss that puts cosines into an order.
#include <algorithm>
#include <cmath>

#include "fovea/base/check.h"
#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"

namespace fovea {

namespace {

// Where torch.nn.functional.normalize stops dividing.
constexpr double kLeastLength = 1e-12;

template <class T>
double length_of_row(const T* x, index C) {
  double sum = 0;
  for (index c = 0; c < C; ++c) sum += static_cast<double>(x[c]) * static_cast<double>(x[c]);
  return std::sqrt(sum);
}

// dx += (dy - y (y . dy)) / |x|; of a row that is as good as zeros dy / kLeastLength.
template <class T>
void unit_row_backward(const T* x, const T* dy, index C, T* dx) {
  const double length = length_of_row(x, C);
  const double scale = 1 / std::max(length, kLeastLength);
  double along = 0;
  if (length > kLeastLength) {
    for (index c = 0; c < C; ++c) along += static_cast<double>(x[c]) * static_cast<double>(dy[c]);
    along *= scale * scale;
  }
  for (index c = 0; c < C; ++c) {
    dx[c] +=
        static_cast<T>(scale * (static_cast<double>(dy[c]) - static_cast<double>(x[c]) * along));
  }
}

// The shares of the pairs in the loss: exp of each exponent over 1 + their sum.
class OrderedPairs {
 public:
  template <class T>
  OrderedPairs(const T* x, Vec<const float> scores, double temperature)
      : scores_(scores), temperature_(temperature) {
    for_each(x, [&](index, index, double exponent) { most_ = std::max(most_, exponent); });
    sum_ = std::exp(-most_);
    for_each(x, [&](index, index, double exponent) { sum_ += std::exp(exponent - most_); });
  }

  double loss() const { return most_ + std::log(sum_); }
  double share(double exponent) const { return std::exp(exponent - most_) / sum_; }

  // f(i, j, (x_i - x_j) / temperature) for each pair that should have the other order.
  template <class T, class F>
  void for_each(const T* x, const F& f) const {
    for (index i = 0; i < scores_.size; ++i) {
      for (index j = 0; j < scores_.size; ++j) {
        if (!(scores_[i] < scores_[j])) continue;
        f(i, j, (static_cast<double>(x[i]) - static_cast<double>(x[j])) / temperature_);
      }
    }
  }

 private:
  Vec<const float> scores_;
  double temperature_;
  double most_ = 0;  // the exponent of the 1
  double sum_ = 0;   // of all powers, over that of most_
};

}  // namespace

Variable unit_rows(Tape& tape, Variable x, index columns) {
  const index N = x.rows(), C = columns == 0 ? x.columns() : columns;
  check(C >= 1 && C <= x.columns(), "unit_rows: {} columns of {}", C, x.columns());
  const Variable y = tape.result(N, C, x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<const T> in = x.value<T>();
    const Rows<T> out = y.value<T>();
    const double work = 4 * static_cast<double>(C);
    tape.context().for_ranges(N, work, [&](index begin, index end) {
      for (index n = begin; n < end; ++n) {
        const double scale = 1 / std::max(length_of_row(in[n], C), kLeastLength);
        for (index c = 0; c < C; ++c) {
          out[n][c] = static_cast<T>(static_cast<double>(in[n][c]) * scale);
        }
      }
    });
    tape.record(y, {x}, [=](Tape& t) {
      const auto dx = gradient_to_add_to<T>(t, x);
      if (!dx) return;
      const Rows<const T> dy = t.gradient_of<T>(y), values = x.value<T>();
      t.context().for_ranges(N, 2 * work, [&](index begin, index end) {
        for (index n = begin; n < end; ++n) unit_row_backward(values[n], dy[n], C, dx.rows[n]);
      });
    });
  });
  return y;
}

Variable cosent_loss(Tape& tape, Variable x, Vec<const float> scores, double temperature,
                     double factor) {
  check_operand("cosent_loss", "x", x, scores.size, 1, x.dtype());
  const index N = scores.size;
  auto* const kept = tape.saved<float>(N);
  std::copy(scores.begin(), scores.end(), kept);
  const Vec<const float> order{kept, N};
  const Variable loss = tape.result(1, 1, x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    // A column of one value a row may have a stride.
    auto* const cosines = tape.saved<T>(N);
    for (index n = 0; n < N; ++n) cosines[n] = x.value<T>()[n][0];
    loss.value<T>()[0][0] =
        static_cast<T>(factor * OrderedPairs(cosines, order, temperature).loss());
    tape.record(loss, {x}, [=](Tape& t) {
      const auto dx = gradient_to_add_to<T>(t, x);
      if (!dx) return;
      const OrderedPairs pairs(cosines, order, temperature);
      const double scale = factor / temperature * static_cast<double>(t.gradient_of<T>(loss)[0][0]);
      auto* const slopes = t.saved<double>(N);
      std::fill_n(slopes, N, 0.0);
      pairs.for_each(cosines, [&](index i, index j, double exponent) {
        const double share = scale * pairs.share(exponent);
        slopes[i] += share;
        slopes[j] -= share;
      });
      for (index n = 0; n < N; ++n) dx.rows[n][0] += static_cast<T>(slopes[n]);
    });
  });
  return loss;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// What the tests of kernels share: random matrices, and the three questions asked of each kernel.
// Is its error within twice that of the plain float implementation? Is its gradient that of its
// forward? Do its bits depend on the number of threads?
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/random.h"
#include "fovea/base/view.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea {

/// Where vectors of every width have their edges.
inline const std::vector<index> kColumns = {1, 2, 3, 7, 8, 15, 16, 17, 33, 64, 100, 128, 257, 1000};

/// A matrix whose rows lie three further values apart, which no kernel may touch.
template <class T>
class Matrix {
 public:
  Matrix(index rows, index columns, T value = 0)
      : rows_(rows), columns_(columns), values_(static_cast<std::size_t>(rows * stride()), value) {
    for (index r = 0; r < rows_; ++r)
      for (index c = columns_; c < stride(); ++c) at(r, c) = kUntouched;
  }
  template <class U>
  explicit Matrix(const Matrix<U>& other) : Matrix(other.rows(), other.columns()) {
    for (index r = 0; r < rows_; ++r)
      for (index c = 0; c < columns_; ++c) at(r, c) = static_cast<T>(other.at(r, c));
  }
  static Matrix random(Random& random, index rows, index columns, double deviation = 1,
                       double mean = 0) {
    Matrix x(rows, columns);
    for (index r = 0; r < rows; ++r)
      for (index c = 0; c < columns; ++c)
        x.at(r, c) = static_cast<T>(mean + deviation * random.normal());
    return x;
  }

  index rows() const { return rows_; }
  index columns() const { return columns_; }
  T& at(index r, index c) { return values_[static_cast<std::size_t>(r * stride() + c)]; }
  const T& at(index r, index c) const {
    return values_[static_cast<std::size_t>(r * stride() + c)];
  }
  Rows<T> view() { return {values_.data(), rows_, columns_, stride()}; }
  Rows<const T> view() const { return {values_.data(), rows_, columns_, stride()}; }
  Rows<const T> in() const { return view(); }
  /// The first row, as a vector.
  Vec<T> vec() { return {values_.data(), columns_}; }
  Vec<const T> vec() const { return {values_.data(), columns_}; }

  std::vector<double> values() const {
    std::vector<double> result;
    for (index r = 0; r < rows_; ++r)
      for (index c = 0; c < columns_; ++c) result.push_back(static_cast<double>(at(r, c)));
    return result;
  }
  bool padding_is_untouched() const {
    for (index r = 0; r < rows_; ++r)
      for (index c = columns_; c < stride(); ++c)
        if (at(r, c) != kUntouched) return false;
    return true;
  }
  bool operator==(const Matrix& other) const {
    return values_.size() == other.values_.size() &&
           std::memcmp(values_.data(), other.values_.data(), values_.size() * sizeof(T)) == 0;
  }

 private:
  static constexpr T kUntouched = 777;
  index stride() const { return columns_ + 3; }
  index rows_, columns_;
  std::vector<T> values_;
};

/// Infinite where any is not finite.
inline double largest(const std::vector<double>& x) {
  double result = 0;
  for (const double v : x) {
    if (!std::isfinite(v)) return std::numeric_limits<double>::infinity();
    result = std::max(result, std::abs(v));
  }
  return result;
}

/// Equal infinities do not differ; a NaN differs from everything, infinitely.
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double result = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const double difference = std::abs(a[i] - b[i]);
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    result = std::max(result, difference);
  }
  return result;
}

/// At most twice the error of the plain float implementation, and 4 ulp of the largest value.
inline void expect_no_worse(const Matrix<float>& fast, const Matrix<float>& plain,
                            const Matrix<double>& exact, const char* what) {
  const auto truth = exact.values();
  std::vector<double> finite;
  for (const double x : truth)
    if (std::isfinite(x)) finite.push_back(x);
  const double ulp = std::max(largest(finite), 1e-30) * 0x1p-23;
  const double plain_error = largest_difference(plain.values(), truth);
  ASSERT_TRUE(std::isfinite(plain_error)) << what << ": anything would be as good as the plain one";
  EXPECT_LE(largest_difference(fast.values(), truth), 2 * plain_error + 4 * ulp)
      << what << " [" << fast.rows() << ", " << fast.columns() << "]";
  EXPECT_TRUE(fast.padding_is_untouched()) << what;
}

/// Compares dx with central differences of f (fourth order) in each element of x, within 1e-7.
template <class F>
void expect_gradient(Matrix<double>& x, const Matrix<double>& dx, F&& f, const char* what) {
  constexpr double h = 1e-3;
  for (index r = 0; r < x.rows(); ++r)
    for (index c = 0; c < x.columns(); ++c) {
      double& value = x.at(r, c);
      const double kept = value;
      const auto at = [&](double offset) {
        value = kept + offset;
        return f();
      };
      const double numeric = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
      value = kept;
      EXPECT_NEAR(dx.at(r, c), numeric, 1e-7) << what << " at " << r << ", " << c;
    }
}

/// sum of a * b: the loss of a gradient check, whose gradient in a is b.
inline double dot(const Matrix<double>& a, const Matrix<double>& b) {
  double sum = 0;
  for (index r = 0; r < a.rows(); ++r)
    for (index c = 0; c < a.columns(); ++c) sum += a.at(r, c) * b.at(r, c);
  return sum;
}

/// f(context) gives the same for 1, 2, 3 and 8 threads, with every instruction set.
template <class F>
void expect_same_for_threads(F&& f) {
  for_each_isa([&] {
    const auto one = f(Context(1));
    for (const int threads : {2, 3, 8})
      EXPECT_TRUE(f(Context(threads)) == one) << threads << " threads";
  });
}

}  // namespace fovea

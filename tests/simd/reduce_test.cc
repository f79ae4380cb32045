// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/reduce_test.cc"
#include "hwy/foreach_target.h"
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// sum, sum of squares, dot product, maximum
template <class T>
void ReduceAll(const T* x, const T* y, index n, T* results) {
  results[0] = Sum(x, n);
  results[1] = SumOfSquares(x, n, T{0.5});
  results[2] = Dot(x, y, n);
  results[3] = Max(x, n);
}
void ReduceFloat(const float* x, const float* y, index n, float* r) { ReduceAll(x, y, n, r); }
void ReduceDouble(const double* x, const double* y, index n, double* r) { ReduceAll(x, y, n, r); }

void Twice(const float* x, index n, float* y) {
  ForEachLane(n, [&](auto lanes, index i) {
    lanes.Store(hn::Add(lanes.Load(x + i), lanes.LoadOr(7.0f, x + i)), y + i);
  });
}
void Clear(Rows<float> rows) { ClearPastCaches(rows); }
void ClearDouble(Rows<double> rows) { ClearPastCaches(rows); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {
namespace {

HWY_EXPORT(ReduceFloat);
HWY_EXPORT(ReduceDouble);
HWY_EXPORT(Twice);
HWY_EXPORT(Clear);
HWY_EXPORT(ClearDouble);

template <class T>
std::vector<T> values(index n, int seed) {
  std::vector<T> x;
  for (index i = 0; i < n; ++i) x.push_back(static_cast<T>(std::sin(double(i * 7 + seed)) + 0.3));
  return x;
}

template <class T, class Kernel>
void expect_reductions(Kernel kernel, index n) {
  const auto x = values<T>(n, 1), y = values<T>(n, 5);
  double sum = 0, squares = 0, dot = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double a = x[i], b = y[i];
    sum += a, squares += (a - 0.5) * (a - 0.5), dot += a * b;
    size += std::fabs(a) + (a - 0.5) * (a - 0.5) + std::fabs(a * b);
  }
  T got[4];
  kernel(x.data(), y.data(), n, got);
  const double tolerance = std::numeric_limits<T>::epsilon() * size;
  EXPECT_NEAR(got[0], sum, tolerance) << n;
  EXPECT_NEAR(got[1], squares, tolerance) << n;
  EXPECT_NEAR(got[2], dot, tolerance) << n;
  EXPECT_EQ(got[3], n == 0 ? std::numeric_limits<T>::lowest() : *std::ranges::max_element(x));
}

TEST(Reduce, EveryLengthMatchesPlainLoops) {
  for_each_isa([] {
    for (index n = 0; n < 150; ++n) {
      expect_reductions<float>(FOVEA_DISPATCH(ReduceFloat), n);
      expect_reductions<double>(FOVEA_DISPATCH(ReduceDouble), n);
    }
    expect_reductions<float>(FOVEA_DISPATCH(ReduceFloat), 5000);
  });
}

TEST(Reduce, TheMaximumOfNegativeValuesIsNotAPaddingZero) {
  for_each_isa([] {
    const std::vector<float> x = {-3, -2, -5};
    float got[4];
    FOVEA_DISPATCH(ReduceFloat)(x.data(), x.data(), 3, got);
    EXPECT_EQ(got[3], -2);
  });
}

// A row that ends where the page ends, with nothing mapped behind it.
TEST(ForEachLane, TouchesNothingBeyondTheEnd) {
  constexpr std::size_t kPage = 4096;
  void* pages =
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<char*>(pages) + kPage, kPage, PROT_NONE), 0);
  float* const end = static_cast<float*>(pages) + kPage / sizeof(float);
  for_each_isa([&] {
    for (index n = 0; n < 40; ++n) {
      float* const x = end - n;
      for (index i = 0; i < n; ++i) x[i] = static_cast<float>(i);
      x[-1] = 99;
      FOVEA_DISPATCH(Twice)(x, n, x);
      for (index i = 0; i < n; ++i) ASSERT_EQ(x[i], static_cast<float>(2 * i)) << n;
      ASSERT_EQ(x[-1], 99);
      float got[4];
      FOVEA_DISPATCH(ReduceFloat)(x, x, n, got);
      ASSERT_EQ(got[0], static_cast<float>(n * (n - 1)));
    }
  });
  munmap(pages, 2 * kPage);
}

TEST(ForEachLane, LeavesWhatFollowsUntouched) {
  for_each_isa([] {
    for (index n = 0; n < 40; ++n) {
      std::vector<float> x(48, 1.0f), y(48, -1.0f);
      FOVEA_DISPATCH(Twice)(x.data(), n, y.data());
      EXPECT_EQ(std::ranges::count(y, 2.0f), n);
      EXPECT_EQ(std::ranges::count(y, -1.0f), 48 - n);
    }
  });
}

template <class T, class Kernel>
void expect_cleared(Kernel clear) {
  for (index first = 0; first < 17; ++first) {
    for (index n = 0; n < 60; ++n) {
      std::vector<T> x(160, T{1});
      clear(Rows<T>(x.data() + first, 2, n, 77));
      for (const index begin : {first, first + 77}) {
        EXPECT_EQ(std::count(x.begin() + begin, x.begin() + begin + n, T{0}), n);
      }
      EXPECT_EQ(std::ranges::count(x, T{1}), 160 - 2 * n) << first;
    }
  }
}

TEST(ClearPastCaches, LeavesWhatIsAroundUntouched) {
  for_each_isa([] {
    expect_cleared<float>(FOVEA_DISPATCH(Clear));
    expect_cleared<double>(FOVEA_DISPATCH(ClearDouble));
  });
}

}  // namespace
}  // namespace fovea
#endif  // HWY_ONCE

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "fovea/base/precision.h"
#include "tests/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/non_finite_test.cc"
#include "hwy/foreach_target.h"
//
#include "fovea/simd/non_finite-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

bool AnyFloat(Rows<const float> rows) { return AnyNonFinite(rows); }
bool AnyDouble(Rows<const double> rows) { return AnyNonFinite(rows); }
bool HasPairs() { return FOVEA_PAIRS; }
bool AnyPair([[maybe_unused]] Rows<const BFloat16Pair> rows) {
#if FOVEA_PAIRS
  return AnyNonFinite(rows);
#else
  return false;
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {
namespace {

HWY_EXPORT(AnyFloat);
HWY_EXPORT(AnyDouble);
HWY_EXPORT(AnyPair);
HWY_EXPORT(HasPairs);

template <class T>
constexpr bool kArePairs = std::is_same_v<T, BFloat16Pair>;

template <class T>
bool any(Rows<const T> rows) {
  if constexpr (kArePairs<T>) {
    return FOVEA_DISPATCH(AnyPair)(rows);
  } else if constexpr (std::is_same_v<T, float>) {
    return FOVEA_DISPATCH(AnyFloat)(rows);
  } else {
    return FOVEA_DISPATCH(AnyDouble)(rows);
  }
}

// The value; of pairs, two: it stands in one half, and 1 in the other.
template <class T>
std::vector<T> both_halves(double value) {
  if constexpr (kArePairs<T>) {
    const BFloat16Pair one = to_bfloat16(1.0f).bits;
    const BFloat16Pair x = to_bfloat16(static_cast<float>(value)).bits;
    return {x | one << 16, one | x << 16};
  } else {
    return {static_cast<T>(value)};
  }
}

template <class T>
void expect_found(index rows, index columns) {
  const double infinity = std::numeric_limits<double>::infinity();
  const index stride = columns + 3;
  const auto at = [&](index r, index c) { return static_cast<std::size_t>(r * stride + c); };
  std::vector<T> values;
  for (const double x : {-3.3e38, 0.0, 3.3e38, -0.0, 1e-40}) {
    for (const T half : both_halves<T>(x)) values.push_back(half);
  }
  std::vector<T> matrix(static_cast<std::size_t>(rows * stride));
  for (std::size_t n = 0; n < matrix.size(); ++n) matrix[n] = values[n % values.size()];
  const Rows<const T> view(matrix.data(), rows, columns, stride);
  for (index r = 0; r < rows; ++r) {
    for (index c = columns; c < stride; ++c) matrix[at(r, c)] = both_halves<T>(NAN)[0];
  }
  ASSERT_FALSE(any(view)) << rows << " x " << columns;
  for (index r = 0; r < rows; ++r) {
    for (index c = 0; c < columns; ++c) {
      const T old = matrix[at(r, c)];
      for (const double x : {static_cast<double>(NAN), infinity, -infinity}) {
        for (const T half : both_halves<T>(x)) {
          matrix[at(r, c)] = half;
          ASSERT_TRUE(any(view)) << rows << " x " << columns << ": " << r << ", " << c;
        }
      }
      matrix[at(r, c)] = old;
    }
  }
}

TEST(AnyNonFinite, FindsOneValueAnywhereAndNothingBesideTheRows) {
  for_each_isa([] {
    for (const index rows : {0, 1, 2, 3, 4, 5, 9}) {
      for (const index columns : {1, 3, 8, 15, 16, 17, 33}) {
        expect_found<float>(rows, columns);
        expect_found<double>(rows, columns);
        if (FOVEA_DISPATCH(HasPairs)()) expect_found<BFloat16Pair>(rows, columns);
      }
    }
  });
}

}  // namespace
}  // namespace fovea
#endif  // HWY_ONCE

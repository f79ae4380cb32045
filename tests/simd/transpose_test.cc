// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <numeric>
#include <vector>

#include "fovea/base/memory.h"
#include "tests/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/transpose_test.cc"
#include "hwy/foreach_target.h"
//
#include "fovea/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

void ToLanesFloat(Rows<const float> rows, float factor, float* lanes, index stride) {
  if (factor == 1) return RowsToLanes<float>(rows, rows.rows, lanes, stride);
  RowsToLanes<float>(rows, rows.rows, lanes, stride, Times<float>{factor});
}
void ToLanesDouble(Rows<const double> rows, double factor, double* lanes, index stride) {
  if (factor == 1) return RowsToLanes<double>(rows, rows.rows, lanes, stride);
  RowsToLanes<double>(rows, rows.rows, lanes, stride, Times<double>{factor});
}
void ToRowsFloat(const float* lanes, index stride, Rows<float> rows, const float* times) {
  LanesToRows<float>(lanes, stride, rows.rows, rows, times);
}
void ToRowsDouble(const double* lanes, index stride, Rows<double> rows, const double* times) {
  LanesToRows<double>(lanes, stride, rows.rows, rows, times);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {
namespace {

HWY_EXPORT(ToLanesFloat);
HWY_EXPORT(ToLanesDouble);
HWY_EXPORT(ToRowsFloat);
HWY_EXPORT(ToRowsDouble);

constexpr index kStride = 48;  // whole vectors of every instruction set
constexpr int kUntouched = -7;

template <class T>
struct Case {
  index rows, columns, row_stride;
  std::vector<T> memory;

  Case(index r, index c, index gap) : rows(r), columns(c), row_stride(c + gap) {
    for (index i = 0; i < r * row_stride; ++i) memory.push_back(static_cast<T>(i + 1));
  }
  Rows<const T> view() const { return {memory.data(), rows, columns, row_stride}; }
};

// Products are rounded once, so they are exactly those of one value.
template <class T, class ToLanes, class ToRows>
void expect_there_and_back(const Case<T>& c, T factor, ToLanes to_lanes, ToRows to_rows) {
  const AlignedBytes bytes =
      allocate_aligned(static_cast<std::size_t>(c.columns * kStride) * sizeof(T));
  T* const lanes = reinterpret_cast<T*>(bytes.get());
  to_lanes(c.view(), factor, lanes, kStride);
  for (index k = 0; k < c.columns; ++k) {
    for (index r = 0; r < kStride; ++r) {
      const T expected = r < c.rows ? factor * c.view()[r][k] : 0;
      ASSERT_EQ(lanes[k * kStride + r], expected) << r << ", " << k;
    }
  }
  std::vector<T> times(kStride);
  std::iota(times.begin(), times.end(), T{.3f});
  for (const bool scaled : {false, true}) {
    std::vector<T> back(c.memory.size(), T{kUntouched});
    const Rows<T> rows(back.data(), c.rows, c.columns, c.row_stride);
    to_rows(lanes, kStride, rows, scaled ? times.data() : nullptr);
    for (index r = 0; r < c.rows; ++r) {
      for (index k = 0; k < c.row_stride; ++k) {
        T expected = T{kUntouched};
        if (k < c.columns) expected = lanes[k * kStride + r];
        if (k < c.columns && scaled) expected *= times[static_cast<std::size_t>(r)];
        ASSERT_EQ(rows[r][k], expected) << r << ", " << k;
      }
    }
  }
}

TEST(Transpose, RowsBecomeLanesAndLanesRows) {
  for_each_isa([] {
    for (const index rows : {0, 1, 3, 8, 16, 17, 40, 48}) {
      for (const index columns : {1, 4, 15, 16, 24, 33}) {
        for (const float factor : {1.0f, 2.0f, .3f}) {
          expect_there_and_back<float>(Case<float>(rows, columns, 0), factor,
                                       FOVEA_DISPATCH(ToLanesFloat), FOVEA_DISPATCH(ToRowsFloat));
          expect_there_and_back<double>(Case<double>(rows, columns, 5), factor,
                                        FOVEA_DISPATCH(ToLanesDouble),
                                        FOVEA_DISPATCH(ToRowsDouble));
        }
      }
    }
  });
}

}  // namespace
}  // namespace fovea
#endif  // HWY_ONCE

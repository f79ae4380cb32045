// SPDX-License-Identifier: Apache-2.0
// Rows that hold a NaN or an infinity, for one instruction set.
#include <algorithm>

#include "fovea/base/memory.h"
#include "fovea/base/view.h"

#if defined(FOVEA_SIMD_NON_FINITE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_NON_FINITE_INL_H_
#undef FOVEA_SIMD_NON_FINITE_INL_H_
#else
#define FOVEA_SIMD_NON_FINITE_INL_H_
#endif

#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// Whether a row holds a NaN or an infinity.
template <class T>
HWY_INLINE bool IsNonFinite(const T* row, index n) {
  // x - x is 0 for finite x and NaN otherwise; sums of zeros are 0.
  const T sum = SumOf<T>(n, [row](auto lanes, index i) {
    const auto x = lanes.Load(row + i);
    return hn::Sub(x, x);
  });
  return !(sum == T{0});
}

template <class T>
bool AnyNonFinite(Rows<const T> rows) {
  for (index r = 0; r < rows.rows; ++r) {
    if (IsNonFinite(rows[r], rows.columns)) return true;
  }
  return false;
}

/// A copy of the rows in which those with a NaN or an infinity are 0.
template <class T>
Rows<const T> FiniteRows(Rows<const T> rows, Scratch& scratch) {
  const Rows<T> clean(scratch.allocate<T>(rows.rows * rows.columns), rows.rows, rows.columns);
  for (index r = 0; r < rows.rows; ++r) {
    if (IsNonFinite(rows[r], rows.columns)) {
      std::fill_n(clean[r], rows.columns, T{0});
    } else {
      std::copy_n(rows[r], rows.columns, clean[r]);
    }
  }
  return clean;
}

/// An operand of a product of which some weights are 0 because they are masked: 0 times NaN or
/// infinity is NaN. So rows of the operand with a NaN or an infinity are left out of the product,
/// and added apart where they count.
template <class T>
class FiniteOperand {
 public:
  /// `masked`: are there such weights? Otherwise nothing is left out.
  FiniteOperand(Rows<const T> rows, bool masked, Scratch& scratch)
      : rows_(rows),
        any_(masked && AnyNonFinite(rows)),
        finite_(any_ ? FiniteRows(rows, scratch) : rows) {}

  /// The rows for the product.
  const Rows<const T>& finite() const { return finite_; }
  /// Calls f(n, row) for each row that is left out.
  template <class F>
  void ForEachLeftOut(F&& f) const {
    for (index n = 0; any_ && n < rows_.rows; ++n) {
      if (IsNonFinite(rows_[n], rows_.columns)) f(n, rows_[n]);
    }
  }

 private:
  Rows<const T> rows_;
  bool any_;
  Rows<const T> finite_;
};

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_NON_FINITE_INL_H_

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

#include "fovea/simd/pairs-inl.h"
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
  constexpr Tag<T> d;
  constexpr index kN = kLanes<T>;
  const index whole = rows.columns / kN * kN;
  // As above, of all rows: four sums, so that none waits for the last addition.
  constexpr int kSums = 4;
  Vector<T> sum[kSums] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for (index r = 0; r < rows.rows; r += kSums) {
    for (index c = 0; c < whole; c += kN) {
#pragma GCC unroll 4
      for (int i = 0; i < kSums; ++i) {
        const auto x = hn::LoadU(d, rows[std::min(r + i, rows.rows - 1)] + c);
        sum[i] = hn::Add(sum[i], hn::Sub(x, x));
      }
    }
  }
  const auto all = hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
  if (!hn::AllTrue(d, hn::Eq(all, hn::Zero(d)))) return true;
  for (index r = 0; r < rows.rows && whole < rows.columns; ++r) {
    if (IsNonFinite(rows[r] + whole, rows.columns - whole)) return true;
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

/// Calls f(n, row) for each row that holds a NaN or an infinity.
template <class T, class F>
void ForEachNonFinite(Rows<const T> rows, F&& f) {
  for (index n = 0; n < rows.rows; ++n) {
    if (IsNonFinite(rows[n], rows.columns)) f(n, rows[n]);
  }
}

#if FOVEA_PAIRS
/// One of the two values of each pair of a row, as floats.
struct HalfRow {
  const BFloat16Pair* pairs;
  int shift;  ///< 0 the first, 16 the second

  float operator[](index c) const {
    return to_float(BFloat16{static_cast<std::uint16_t>(pairs[c] >> shift)});
  }
};

/// Whether those halves of a row of pairs that `halves` has the bits of hold a NaN or an infinity:
/// all bits of an exponent are 1.
inline bool IsNonFinite(const BFloat16Pair* row, index n, BFloat16Pair halves) {
  for (index c = 0; c < n; ++c) {
    for (const BFloat16Pair exponent : {0x7f80u, 0x7f800000u}) {
      if ((exponent & halves) == exponent && (row[c] & exponent) == exponent) return true;
    }
  }
  return false;
}

inline bool AnyNonFinite(Rows<const BFloat16Pair> rows) {
  constexpr PairTag d;
  const auto first = hn::Set(d, 0x7f80u), second = hn::Set(d, 0x7f800000u);
  const index whole = rows.columns / 16 * 16;
  auto found = hn::FirstN(d, 0);  // none
  for (index r = 0; r < rows.rows; ++r) {
    for (index c = 0; c < whole; c += 16) {
      const auto pairs = hn::LoadU(d, rows[r] + c);
      found = hn::Or(found, hn::Or(hn::Eq(hn::And(pairs, first), first),
                                   hn::Eq(hn::And(pairs, second), second)));
    }
  }
  if (!hn::AllFalse(d, found)) return true;
  for (index r = 0; r < rows.rows && whole < rows.columns; ++r) {
    if (IsNonFinite(rows[r] + whole, rows.columns - whole, 0xffffffffu)) return true;
  }
  return false;
}

inline Rows<const BFloat16Pair> FiniteRows(Rows<const BFloat16Pair> rows, Scratch& scratch) {
  const Rows<BFloat16Pair> clean(scratch.allocate<BFloat16Pair>(rows.rows * rows.columns),
                                 rows.rows, rows.columns);
  for (index r = 0; r < rows.rows; ++r) {
    BFloat16Pair kept = 0;
    for (const BFloat16Pair half : {0xffffu, 0xffff0000u}) {
      if (!IsNonFinite(rows[r], rows.columns, half)) kept |= half;
    }
    for (index c = 0; c < rows.columns; ++c) clean[r][c] = rows[r][c] & kept;
  }
  return clean;
}

template <class F>
void ForEachNonFinite(Rows<const BFloat16Pair> rows, F&& f) {
  for (index n = 0; n < rows.rows; ++n) {
    for (const int half : {0, 1}) {
      const int shift = 16 * half;
      const bool found = IsNonFinite(rows[n], rows.columns, 0xffffu << shift);
      if (found) f(2 * n + half, HalfRow{rows[n], shift});
    }
  }
}
#endif

/// An operand of a product of which some weights are 0 because they are masked: 0 times NaN or
/// infinity is NaN. So rows of the operand with a NaN or an infinity are left out of the product,
/// and added apart where they count.
template <class In>
class FiniteOperand {
 public:
  /// `masked`: are there such weights? Otherwise nothing is left out.
  FiniteOperand(Rows<const In> rows, bool masked, Scratch& scratch)
      : rows_(rows),
        any_(masked && AnyNonFinite(rows)),
        finite_(any_ ? FiniteRows(rows, scratch) : rows) {}

  bool leaves_out() const { return any_; }
  /// The rows for the product.
  const Rows<const In>& finite() const { return finite_; }
  /// Calls f(n, row) for each row that is left out; row[c] is a value of it. A row of pairs is two.
  template <class F>
  void ForEachLeftOut(F&& f) const {
    if (any_) ForEachNonFinite(rows_, f);
  }

 private:
  Rows<const In> rows_;
  bool any_;
  Rows<const In> finite_;
};

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_NON_FINITE_INL_H_

// SPDX-License-Identifier: Apache-2.0
// The operands and the result of a tile product (product-inl.h).
#include <cstring>
#include <type_traits>

#include "fovea/base/precision.h"
#include "fovea/base/view.h"
#include "fovea/simd/prefetch.h"

#if defined(FOVEA_SIMD_TILE_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_TILE_OPERANDS_INL_H_
#undef FOVEA_SIMD_TILE_OPERANDS_INL_H_
#else
#define FOVEA_SIMD_TILE_OPERANDS_INL_H_
#endif

#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

/// The initial value of each sum.
enum class Into {
  kOverwrite,    ///< at 0
  kAdd,          ///< at C[r][l]
  kScaleAndAdd,  ///< at C[r][l] * per_lane[l]
  kStartAt,      ///< at per_lane[l]
  // For operands that are not scaled beforehand, because that would round them:
  kOverwriteTimes,  ///< at 0; C = factor * the sum
  kAddTimes,        ///< at 0; C += factor * the sum
};

template <Into kInto>
inline constexpr bool kStartsAtZero =
    kInto == Into::kOverwrite || kInto == Into::kOverwriteTimes || kInto == Into::kAddTimes;

/// Whether maximum[l] becomes the larger of itself and all C[r][l]; if one of those is NaN, it may
/// become any of them.
enum class LaneMaximum { kNone, kTake };

/// The lines that the product asks for, one every few steps of its sum: kQueue for those of
/// t.prefetch, if that is there, kAhead for those of t.ahead. Products on tile registers ask for
/// both, and do not look at this.
enum class Ask { kQueue, kAhead };

/// The operand at p. A pair may be two BFloat16 of the caller that are read where they lie
/// (StridedMatrix of keys, kv_block-inl.h): an access as std::uint32_t would break C++'s aliasing
/// rules, so its bytes are copied, which compiles to the same load. Vectors and tile registers read
/// through pointers that may alias.
template <class T>
HWY_INLINE T OperandAt(const T* p) {
  return *p;
}
HWY_INLINE BFloat16Pair OperandAt(const BFloat16Pair* p) {
  BFloat16Pair pair;
  std::memcpy(&pair, p, sizeof(pair));
  return pair;
}

/// A matrix of which neither rows nor columns need be contiguous: value (r, c) is at
/// data[r * row + c * column].
template <class T>
struct StridedMatrix {
  StridedMatrix() = default;
  StridedMatrix(const T* d, index r, index c) : data(d), row(r), column(c) {}
  StridedMatrix(Rows<const T> m) : data(m.data), row(m.stride), column(1) {}
  StridedMatrix(Rows<T> m) : StridedMatrix(Rows<const T>(m)) {}

  T operator()(index r, index c) const { return OperandAt(data + r * row + c * column); }

  const T* data = nullptr;
  index row = 0, column = 0;
};

/// The value in column k of row r; of pairs, k counts their values.
template <class T>
T ValueAt(const StridedMatrix<T>& m, index r, index k) {
  return m(r, k);
}
inline float ValueAt(const StridedMatrix<BFloat16Pair>& m, index r, index k) {
  const BFloat16Pair pair = m(r, k / 2);
  return to_float(BFloat16{static_cast<std::uint16_t>(k % 2 == 0 ? pair : pair >> 16)});
}

/// m^T, without a copy.
template <class T>
StridedMatrix<std::remove_const_t<T>> Transposed(Rows<T> m) {
  return {m.data, 1, m.stride};
}

/// In: T, or BFloat16Pair if T is float.
template <class T, class In = T>
struct TileOperands {
  StridedMatrix<In> a = {};      ///< [rows, depth]
  Rows<const In> b = {};         ///< [depth, lanes]
  Rows<T> c = {};                ///< [rows, lanes]
  const T* per_lane = nullptr;   ///< [lanes], for kScaleAndAdd and kStartAt
  T factor = 1;                  ///< for kOverwriteTimes and kAddTimes
  T* maximum = nullptr;          ///< [lanes], for LaneMaximum::kTake
  Prefetch* prefetch = nullptr;  ///< for Ask::kQueue; may be null
  LinesAhead* ahead = nullptr;   ///< for Ask::kAhead, which needs one that is not empty
  bool c_is_far = false;         ///< a block asks for the rows of C of the next (kAsksForC)

  /// The operands for some rows of C, some columns of C, or a part of the sum.
  TileOperands rows_slice(index begin, index end) const {
    TileOperands t = *this;
    t.a.data += begin * a.row;
    t.c = c.slice(begin, end);
    return t;
  }
  TileOperands lanes_slice(index begin, index end) const {
    TileOperands t = *this;
    t.b = b.columns_slice(begin, end);
    t.c = c.columns_slice(begin, end);
    if (per_lane != nullptr) t.per_lane += begin;
    if (maximum != nullptr) t.maximum += begin;
    return t;
  }
  TileOperands depth_slice(index begin, index end) const {
    TileOperands t = *this;
    t.a.data += begin * a.column;
    t.b = b.slice(begin, end);
    return t;
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_SIMD_TILE_OPERANDS_INL_H_

// SPDX-License-Identifier: Apache-2.0
// Lanes of float or double, on every instruction set. It includes Highway (log-inl.h includes its
// math); all that is in it exists once for each instruction set, in namespace fovea::HWY_NAMESPACE.
// A kernel (in namespace fovea, or in fovea::detail):
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "fovea/kernel/scale.cc"
//   #include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//   //
//   #include "fovea/simd/simd-inl.h"
//
//   HWY_BEFORE_NAMESPACE();
//   namespace fovea {
//   namespace HWY_NAMESPACE {
//   namespace {
//   template <class T>
//   void ScaleRow(const T* x, T by, index n, T* y) {
//     ForEachLane<T>(n, [=](auto lanes, index i) {
//       lanes.Store(hn::Mul(lanes.Load(x + i), lanes.Set(by)), y + i);
//     });
//   }
//   auto ScaleRowKernel() { return PerPrecision{ScaleRow<float>, ScaleRow<double>}; }
//   }  // namespace
//   }  // namespace HWY_NAMESPACE
//   }  // namespace fovea
//   HWY_AFTER_NAMESPACE();
//
//   #if HWY_ONCE
//   namespace fovea {
//   HWY_EXPORT(ScaleRowKernel);
//   template <class T>
//   void scale(...) {
//     const auto scale_row = FOVEA_DISPATCH(ScaleRowKernel)().of<T>();
//     ... scale_row(x, by, n, y); ...
//   }
//   }  // namespace fovea
//   #endif  // HWY_ONCE
//
// Only a function can be exported, and not a template, so the exported function returns the kernels
// for float and for double. It may return tables of kernels instead, where a header hands them to
// other files (gemm_tiles.h). It is called once for a tile or a call, not in the innermost loop.
//
// Names of the standard library and of fovea that a kernel needs come from headers included before
// foreach_target.h, so that no plain function is compiled for a wide instruction set by mistake.
#if defined(FOVEA_SIMD_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_SIMD_INL_H_
#undef FOVEA_SIMD_SIMD_INL_H_
#else
#define FOVEA_SIMD_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "fovea/base/types.h"
#include "fovea/base/view.h"
#include "fovea/simd/isa.h"
#include "fovea/simd/per_precision.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

/// The version of an exported kernel for the current instruction set. It honours FOVEA_ISA, of
/// which Highway's own dispatch knows nothing.
#ifndef FOVEA_DISPATCH
#define FOVEA_DISPATCH(kernel) \
  (static_cast<void>(::fovea::current_isa()), HWY_DYNAMIC_DISPATCH(kernel))
#endif

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// The widest vectors of T (float or double), and how many values one holds.
template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Vector = hn::Vec<Tag<T>>;
template <class T>
inline constexpr index kLanes = HWY_LANES(T);

/// A whole vector.
template <class T>
struct FullLanes {
  Tag<T> d;

  HWY_INLINE Vector<T> Set(T value) const { return hn::Set(d, value); }
  HWY_INLINE Vector<T> Load(const T* p) const { return hn::LoadU(d, p); }
  HWY_INLINE Vector<T> LoadOr(T, const T* p) const { return hn::LoadU(d, p); }
  HWY_INLINE void Store(Vector<T> v, T* p) const { hn::StoreU(v, d, p); }
  /// v in the lanes that count, `other` in those that do not.
  HWY_INLINE Vector<T> Keep(Vector<T> v, T /*other*/) const { return v; }
};

/// The first `count` lanes of a vector (0 < count < kLanes). Memory beyond them is neither read nor
/// written: with AVX2 and AVX-512 by masks; with SSE, whose masked loads in Highway 1.0.3 are whole
/// loads, through a buffer.
template <class T>
struct TailLanes {
  Tag<T> d;
  index count;

  static constexpr bool kHasMaskedMoves = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;

  HWY_INLINE Vector<T> Set(T value) const { return hn::Set(d, value); }
  /// The lanes beyond count are 0.
  HWY_INLINE Vector<T> Load(const T* p) const {
    if constexpr (kHasMaskedMoves) {
      return hn::MaskedLoad(Mask(), d, p);
    } else {
      return LoadOr(T{0}, p);
    }
  }
  /// The lanes beyond count are `other`.
  HWY_INLINE Vector<T> LoadOr(T other, const T* p) const {
    if constexpr (kHasMaskedMoves) {
      return Keep(Load(p), other);
    } else {
      HWY_ALIGN T buffer[kLanes<T>];
      for (index i = 0; i < kLanes<T>; ++i) buffer[i] = i < count ? p[i] : other;
      return hn::Load(d, buffer);
    }
  }
  HWY_INLINE void Store(Vector<T> v, T* p) const {
    if constexpr (kHasMaskedMoves) {
      hn::BlendedStore(v, Mask(), d, p);
    } else {
      HWY_ALIGN T buffer[kLanes<T>];
      hn::Store(v, d, buffer);
      for (index i = 0; i < count; ++i) p[i] = buffer[i];
    }
  }
  HWY_INLINE Vector<T> Keep(Vector<T> v, T other) const {
    return hn::IfThenElse(Mask(), v, hn::Set(d, other));
  }

 private:
  HWY_INLINE hn::Mask<Tag<T>> Mask() const {
    return hn::FirstN(d, static_cast<std::size_t>(count));
  }
};

/// Calls f(lanes, i) for i = 0, kLanes, 2 kLanes ... below n: `lanes` is a FullLanes<T>, and in the
/// last call a TailLanes<T> if n is no multiple of kLanes. f moves data by lanes.Load(p + i) and
/// lanes.Store(v, p + i) alone.
template <class T = float, class F>
HWY_INLINE void ForEachLane(index n, F&& f) {
  index i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) f(FullLanes<T>{}, i);
  if (i < n) f(TailLanes<T>{{}, n - i}, i);
}

/// rows = 0, past the caches: a plain store first reads the line that it overwrites.
template <class T>
void ClearPastCaches(Rows<T> rows) {
  constexpr index kN = kLanes<T>, kBytes = sizeof(Vector<T>);
  for (index r = 0; r < rows.rows; ++r) {
    T* const row = rows[r];
    const auto beyond = static_cast<index>(reinterpret_cast<std::uintptr_t>(row) % kBytes);
    const index first = (kBytes - beyond) % kBytes / static_cast<index>(sizeof(T));
    index i = std::min(rows.columns, first);
    std::fill_n(row, i, T{0});
    for (; i + kN <= rows.columns; i += kN) hn::Stream(hn::Zero(Tag<T>()), Tag<T>(), row + i);
    std::fill_n(row + i, rows.columns - i, T{0});
  }
  hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE

// Kernels in namespace fovea::detail find all this by its plain name.
namespace detail::HWY_NAMESPACE {
using namespace fovea::HWY_NAMESPACE;
}  // namespace detail::HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#include "fovea/simd/math-inl.h"
#include "fovea/simd/reduce-inl.h"

#endif  // FOVEA_SIMD_SIMD_INL_H_

// SPDX-License-Identifier: Apache-2.0
// How a tile of C = A B ends: where its sums are, and what becomes of them (MatmulOptions). Include
// it from gemm_tiles.cc alone.
#include <algorithm>
#include <type_traits>

#include "fovea/base/memory.h"
#include "fovea/kernel/gemm_tiles.h"

#if defined(FOVEA_KERNEL_GEMM_END_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNEL_GEMM_END_INL_H_
#undef FOVEA_KERNEL_GEMM_END_INL_H_
#else
#define FOVEA_KERNEL_GEMM_END_INL_H_
#endif

#include "fovea/kernel/activation-inl.h"
#include "fovea/kernel/gemm_operands-inl.h"
#include "fovea/simd/pairs-inl.h"
#include "fovea/simd/product-inl.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

/// The columns [begin, end) of C that a panel, or some panels, compute. `sums` is C itself, or a
/// buffer if C is rounded or whole vectors would go beyond the end of its rows.
template <class T>
struct PanelOfC {
  index begin, end;
  T* sums;
  index stride;
  bool rounds_in_registers = false;  ///< then nothing is written to `sums`
};

/// Whether the whole panels of a tile can be rounded while their sums are in registers.
template <class T>
bool RoundsInRegisters(const MatmulTile<T>& t, bool has_parts) {
  return t.c.is_rounded() && !has_parts && t.options.activation == Activation::kNone &&
         t.options.slope.data == nullptr && !has_tiles();
}

/// The panels of a tile that are whole vectors. The sums of a rounded C are in a buffer: of one
/// panel, or of all if the sum has several parts.
template <class T>
class PanelsOfC {
 public:
  /// `has_parts`: whether the sums are computed in several parts.
  PanelsOfC(const MatmulTile<T>& t, index whole_panels, bool has_parts, Scratch& scratch)
      : t_(t), rounds_in_registers_(RoundsInRegisters(t, has_parts)) {
#if FOVEA_PAIRS
    static_assert(kPanelsAtOnce == 1, "panels that end together need a buffer each");
#endif
    if (!t.c.is_rounded() || t.first_panel >= whole_panels) return;
    const index held = has_parts ? whole_panels - t.first_panel : 1;
    stride_ = held * kPanelLanes<T>;
    step_ = has_parts ? kPanelLanes<T> : 0;
    buffer_ = scratch.template allocate<T>(t.c.rows() * stride_);
  }

  bool rounds_in_registers() const { return rounds_in_registers_; }
  PanelOfC<T> operator[](index panel) const {
    const index begin = panel * kPanelLanes<T>;
    const index end = std::min(t_.c.columns(), begin + kPanelLanes<T>);
    if (buffer_ != nullptr) {
      T* const sums = buffer_ + (panel - t_.first_panel) * step_;
      return {begin, end, sums, stride_, rounds_in_registers_};
    }
    const Rows<T> c = t_.c.values();
    return {begin, end, c.data + begin, c.stride};
  }

 private:
  const MatmulTile<T>& t_;
  bool rounds_in_registers_;
  T* buffer_ = nullptr;
  index stride_ = 0, step_ = 0;
};

/// `lanes` is what ForEachLane gives.
template <class Lanes, class T, class Out>
HWY_INLINE void StoreFinished(Lanes lanes, Vector<T> value, Out* to) {
  if constexpr (std::is_same_v<Out, T>) {
    lanes.Store(value, to);
  } else if constexpr (std::is_same_v<Lanes, TailLanes<T>>) {
    StoreRounded(value, lanes.count, to);
  } else {
    StoreRounded(value, kLanes<T>, to);
  }
}

// With the slope known to be wanted, the compiler computes once what f and f' share,
// such as an exponential.
template <Activation kF, bool kSlope, class T, class Out>
HWY_INLINE void FinishRows(const MatmulTile<T>& t, const PanelOfC<T>& p, Rows<Out> c) {
  const MatmulOptions<T>& o = t.options;
  const bool add_bias = o.store == Store::kAdd && !o.bias.empty();
  for (index r = 0; r < c.rows; ++r) {
    const T* const sums = p.sums + r * p.stride;
    Out* const to = c[r] + p.begin;
    T* const slope = kSlope ? o.slope[r] + p.begin : nullptr;
    ForEachLane<T>(p.end - p.begin, [&](auto lanes, index i) {
      auto s = lanes.Load(sums + i);
      if (add_bias) s = hn::Add(s, lanes.Load(o.bias.data + p.begin + i));
      if constexpr (kSlope) lanes.Store(ActivateGradient<kF>(lanes.d, s), slope + i);
      StoreFinished<decltype(lanes), T>(lanes, Activate<kF>(lanes.d, s), to + i);
    });
  }
}

template <class T, class Out>
void MultiplyByTimes(const MatmulTile<T>& t, const PanelOfC<T>& p, Rows<Out> c) {
  for (index r = 0; r < c.rows; ++r) {
    const T *const sums = p.sums + r * p.stride, *const times = t.options.times[r] + p.begin;
    Out* const to = c[r] + p.begin;
    ForEachLane<T>(p.end - p.begin, [&](auto lanes, index i) {
      StoreFinished<decltype(lanes), T>(lanes, hn::Mul(lanes.Load(sums + i), lanes.Load(times + i)),
                                        to + i);
    });
  }
}

template <class T, class Out>
void FinishInto(const MatmulTile<T>& t, const PanelOfC<T>& p, Rows<Out> c) {
  if (t.options.times.data != nullptr) return MultiplyByTimes(t, p, c);
  WithActivation(t.options.activation, [&](auto f) {
    if (t.options.slope.data != nullptr) {
      FinishRows<f(), true>(t, p, c);
    } else {
      FinishRows<f(), false>(t, p, c);
    }
  });
}

template <class T>
HWY_NOINLINE void Finish(const MatmulTile<T>& t, const PanelOfC<T>& p) {
#if FOVEA_PAIRS
  if constexpr (std::is_same_v<T, float>) {
    if (t.c.is_rounded()) return FinishInto(t, p, t.c.rounded());
  }
#endif
  FinishInto(t, p, t.c.values());
}

template <class T>
bool ChangesSums(const MatmulOptions<T>& o) {
  return o.activation != Activation::kNone || o.slope.data != nullptr || o.times.data != nullptr ||
         (o.store == Store::kAdd && !o.bias.empty());
}

#if FOVEA_PAIRS
/// The end of a block (in place of StoreSums) whose sums are only multiplied and rounded: to C,
/// while they are in registers. `to` and `times`, if any, begin with the columns of the panel.
struct RoundSums {
  Rows<BFloat16> to;
  Rows<const float> times;

  template <int kRows, int kVectors>
  HWY_INLINE void operator()(Vector<float> (&sum)[kRows][kVectors], index row, index lane) const {
    constexpr index kN = kLanes<float>;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      BFloat16* const c = to[row + r] + lane;
      const float* const by = times.data != nullptr ? times[row + r] + lane : nullptr;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        if (by != nullptr) sum[r][v] = hn::Mul(sum[r][v], hn::LoadU(Tag<float>(), by + v * kN));
      }
#pragma GCC unroll 8
      for (int v = 0; v + 1 < kVectors; v += 2) {
        _mm512_storeu_si512(c + v * kN, RoundInOrder(sum[r][v], sum[r][v + 1]).raw);
      }
      if constexpr (kVectors == 1) StoreRounded(sum[r][0], kN, c);
    }
  }
};
#endif

/// The product of a panel, with its end.
template <Into kInto, class T, class In>
void MultiplyPanel([[maybe_unused]] const MatmulTile<T>& t, [[maybe_unused]] const PanelOfC<T>& p,
                   const TileOperands<T, In>& o) {
#if FOVEA_PAIRS
  if constexpr (std::is_same_v<In, BFloat16Pair>) {
    if (p.rounds_in_registers) {
      RoundSums round{t.c.rounded().columns_slice(p.begin, p.end), {}};
      const Rows<const T> times = t.options.times;
      if (times.data != nullptr) round.times = times.columns_slice(p.begin, p.end);
      const ProductWithEnd<T, In, RoundSums> product{o, round};
      return WithAskOf(o, [&](auto ask) {
        VectorProduct<kInto, LaneMaximum::kNone, ask(), RoundSums, T, In>(product);
      });
    }
  }
#endif
  ProductAhead<kInto>(o);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_KERNEL_GEMM_END_INL_H_

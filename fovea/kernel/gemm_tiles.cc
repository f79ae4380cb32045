// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/gemm_tiles.h"

#include <algorithm>
#include <type_traits>

#include "fovea/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/gemm_tiles.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/kernel/activation-inl.h"
#include "fovea/kernel/gemm_operands-inl.h"
#include "fovea/simd/pairs-inl.h"
#include "fovea/simd/product-inl.h"
#include "fovea/simd/simd-inl.h"

// The place of the operands of a multiply-add decides the speed. B is read in panels (64 columns on
// AVX-512) that are packed one after another, so that the four vectors of a step in k are a cache
// line each, in order, and the prefetcher sees one stream. A panel is cut into blocks of kDepth
// steps: a block stays in L1 or L2 while it is multiplied with all rows of A of the tile. The tile
// of A (about 100 rows x kDepth) stays in L2 for all panels. C is written once for each block of k;
// bias and activation are applied right after the last block, while C is in L1 or L2 (with AVX2 to
// four panels together: by that alone, products of 768 x 512 x 128 with GELU and its slope take .85
// of the time).
// Meanwhile the product asks for what it reads next (docs/experiments.md says why).
//
// Operands of bfloat16 differ in three places: a block of A is rounded to a copy before the panels
// read it (a tile has up to 1024 columns, so that is below a hundredth of its time), a step of the
// sum has two terms, and the sums of a C that is rounded are in registers until then, or in a
// buffer.

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
      : t_(t),
        rounds_in_registers_(RoundsInRegisters(t, has_parts)),
        stride_(BufferStride(t, whole_panels, has_parts)),
        step_(has_parts ? kPanelLanes<T> : 0),
        buffer_(AllocateSome<T>(scratch, t.c.rows() * stride_)) {
#if FOVEA_PAIRS
    static_assert(kPanelsAtOnce == 1, "panels that end together need a buffer each");
#endif
  }

  /// The values of a row of the buffer; 0 if there is none.
  static index BufferStride(const MatmulTile<T>& t, index whole_panels, bool has_parts) {
    if (!t.c.is_rounded() || t.first_panel >= whole_panels) return 0;
    return (has_parts ? whole_panels - t.first_panel : 1) * kPanelLanes<T>;
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
  index stride_, step_;
  T* buffer_;
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

// -------------------------------------------------------------------------------------- panels

template <class In>
struct PanelOfB {
  const In* data;
  index row_stride;
};

/// The steps [begin, end) of a panel of B, packed into `buffer` if need be.
template <Operands kOperands, class T, class In = OperandOf<T, kOperands>>
HWY_INLINE PanelOfB<In> ReadPanel(const Panels<T>& b, index panel, index begin, index end,
                                  In* buffer) {
  if (!b.pack) {
    return {reinterpret_cast<const In*>(b.panel(panel)) + begin * b.row_stride, b.row_stride};
  }
  const Terms<kOperands> terms(begin, end, b.rows);
  const Rows<const T> m =
      *b.pack == Form::kPlain
          ? Rows<const T>(b.data, b.rows, b.columns, b.row_stride).slice(terms.begin, terms.end)
          : Rows<const T>(b.data, b.columns, b.rows, b.row_stride)
                .columns_slice(terms.begin, terms.end);
  PackPanel<kOperands>(m, *b.pack, panel * b.lanes, buffer);
  return {buffer, kPanelLanes<T>};
}

// ------------------------------------------------------------------------------------ C = A B

/// Steps of a sum.
struct Steps {
  index begin, end;
};

/// Adds the products of these steps, which `a` and `b` hold.
template <class T, class In>
void MultiplyPart(const MatmulTile<T>& t, const StridedMatrix<In>& a, const PanelOfB<In>& b,
                  const PanelOfC<T>& p, Steps steps, LinesAhead ahead) {
  HWY_ALIGN T bias[kPanelLanes<T>];
  const index lanes = RoundUpToLanes<T>(p.end - p.begin);
  TileOperands<T, In> o{.a = a,
                        .b = {b.data, steps.end - steps.begin, lanes, b.row_stride},
                        .c = {p.sums, t.c.rows(), lanes, p.stride},
                        .ahead = &ahead,
                        .c_is_far = true};
  if (steps.begin > 0 || t.options.store == Store::kAdd) {
    ProductAhead<Into::kAdd>(o);
  } else if (!t.options.bias.empty()) {
    std::fill(std::copy(t.options.bias.data + p.begin, t.options.bias.data + p.end, bias),
              bias + kPanelLanes<T>, T{0});
    o.per_lane = bias;
    MultiplyPanel<Into::kStartAt>(t, p, o);
  } else {
    MultiplyPanel<Into::kOverwrite>(t, p, o);
  }
}

/// The part of A read after the steps [begin, end): the next of A or, if rounded, of the next tile.
template <Operands kOperands, class T>
ProductRows<const T> NextOfA(const MatmulTile<T>& t, index begin, index end) {
  const Terms<kOperands> terms(end, 2 * end - begin, t.a.columns());
  if (terms.begin < terms.end) return t.a.columns_slice(terms.begin, terms.end);
  if (kOperands == Operands::kWhole) return {};
  const Terms<kOperands> first(0, end - begin, t.next_a.columns());
  return t.next_a.columns_slice(first.begin, first.end);
}

/// The lines to ask for during a panel: the next panel of B, and the next rows of A. A panel that
/// is yet to be packed is not asked for: packing reads it into the cache. Rows of A that are
/// rounded are read at once when their turn comes, so each panel asks for a share of them.
template <Operands kOperands, class T>
LinesAhead LinesAfter(const MatmulTile<T>& t, index panel, index panels, Steps steps) {
  const index N = t.c.columns(), lanes = t.b->lanes, row_stride = t.b->row_stride, next = panel + 1;
  LinesAhead of_b, of_times;
  if (next < panels && !t.b->pack) {
    of_b = LinesAhead(Rows<const T>(t.b->panel(next) + steps.begin * row_stride,
                                    steps.end - steps.begin, std::min(lanes, N - next * lanes),
                                    row_stride));
  }
  // The sums of this panel are multiplied by these in the end: few lines of each row, which the
  // processor would not find.
  if (t.options.times.data != nullptr && steps.end == steps_of(t.a.columns(), kOperands)) {
    of_times = LinesAhead(t.options.times.columns_slice(panel * lanes, std::min(N, next * lanes)));
  }
  if (kOperands == Operands::kWhole && next < panels) return of_times.then(of_b);
  const ProductRows<const T> of_a = NextOfA<kOperands>(t, steps.begin, steps.end);
  if (kOperands == Operands::kWhole) return of_times.then(LinesOf(of_a));
  const index count = panels - t.first_panel, number = panel - t.first_panel;
  const index begin = of_a.rows() * number / count, end = of_a.rows() * (number + 1) / count;
  return of_times.then(LinesOf(of_a.slice(begin, end))).then(of_b);
}

/// The last panel, if whole vectors would go beyond the end of the rows of C.
template <Operands kOperands, class T, class ReadB>
void MultiplyRaggedPanel(const MatmulTile<T>& t, index panel, index steps,
                         LeftSide<T, kOperands>& left, ReadB&& panel_of_b, Scratch& scratch) {
  using In = OperandOf<T, kOperands>;
  constexpr index kWidth = kPanelLanes<T>;
  const index begin = panel * kWidth, rows = t.c.rows();
  const PanelOfC<T> p = {begin, std::min(t.c.columns(), begin + kWidth),
                         scratch.template allocate<T>(rows * kWidth), kWidth};
  std::fill_n(p.sums, rows * kWidth, T{0});
  for (index r = 0; r < rows && t.options.store == Store::kAdd; ++r) {
    const T* const c = t.c.values()[r];
    std::copy(c + p.begin, c + p.end, p.sums + r * p.stride);
  }
  ForEachPart(steps, kDepth<In>, [&](index first, index last) {
    MultiplyPart<T, In>(t, left.part(first, last), panel_of_b(panel, first, last), p, {first, last},
                        {});
  });
  Finish(t, p);
}

/// The sizes that decide on the buffers of a tile.
template <Operands kOperands, class T>
struct TileParts {
  using In = OperandOf<T, kOperands>;

  index steps;
  bool has_parts;  ///< whether the sums are computed in several parts
  bool
      is_last_ragged;  ///< whether whole vectors of the last panel would go beyond the end of a row
  index whole_panels;  ///< the end of those that are
  index packed_panel;  ///< operands of the buffer for a panel of B

  explicit TileParts(const MatmulTile<T>& t)
      : steps(steps_of(t.a.columns(), kOperands)),
        has_parts(steps > kDepth<In>),
        is_last_ragged(t.last_panel * t.b->lanes > t.c.columns() && t.c.columns() % kLanes<T> != 0),
        whole_panels(is_last_ragged ? t.last_panel - 1 : t.last_panel),
        packed_panel(t.b->pack ? kPanelLanes<T> * kDepth<In> : 0) {}

  index scratch_bytes(const MatmulTile<T>& t) const {
    const index rows = t.c.rows();
    return BytesOfBuffers<T>({LeftSide<T, kOperands>::copy_size(t.a),
                              rows * PanelsOfC<T>::BufferStride(t, whole_panels, has_parts),
                              packed_panel, is_last_ragged ? rows * kPanelLanes<T> : 0});
  }
};

template <Operands kOperands, class T>
void MultiplyTile(const MatmulTile<T>& t) {
  using In = OperandOf<T, kOperands>;
  const TileParts<kOperands, T> parts(t);
  const index steps = parts.steps, whole_panels = parts.whole_panels;
  Scratch scratch;
  LeftSide<T, kOperands> left(t.a, scratch);
  const PanelsOfC<T> panels(t, whole_panels, parts.has_parts, scratch);
  const bool finishes =
      !panels.rounds_in_registers() && (t.c.is_rounded() || ChangesSums(t.options));
  In* const buffer = AllocateSome<In>(scratch, parts.packed_panel);
  const auto panel_of_b = [&](index panel, index begin, index end) {
    return ReadPanel<kOperands, T>(*t.b, panel, begin, end, buffer);
  };
  if (t.first_panel < whole_panels) {
    ForEachPart(steps, kDepth<In>, [&](index begin, index end) {
      const auto a = left.part(begin, end);
      for (index panel = t.first_panel; panel < whole_panels; ++panel) {
        const PanelOfC<T> p = panels[panel];
        MultiplyPart<T, In>(t, a, panel_of_b(panel, begin, end), p, {begin, end},
                            LinesAfter<kOperands>(t, panel, whole_panels, {begin, end}));
        if (end < steps || !finishes) continue;
        const index begun = (panel - t.first_panel) % kPanelsAtOnce;
        if (begun + 1 < kPanelsAtOnce && panel + 1 < whole_panels) continue;
        PanelOfC<T> together = panels[panel - begun];
        together.end = p.end;
        Finish(t, together);
      }
    });
  }
  if (!parts.is_last_ragged) return;
  MultiplyRaggedPanel<kOperands>(t, whole_panels, steps, left, panel_of_b, scratch);
}

template <class T>
void MultiplyTileOf(const MatmulTile<T>& t) {
  WithOperands<T>(t.b->operands, [&](auto operands) { MultiplyTile<operands(), T>(t); });
}
template <class T>
index ScratchOf(const MatmulTile<T>& t) {
  index bytes = 0;
  WithOperands<T>(t.b->operands,
                  [&](auto operands) { bytes = TileParts<operands(), T>(t).scratch_bytes(t); });
  return bytes;
}
template <class T>
void PackPanelsOf(const PanelsToPack<T>& p) {
  WithOperands<T>(p.operands, [&](auto operands) { PackPanels<operands(), T>(p); });
}

// --------------------------------------------------------------------------------- one pass

template <class T>
void AddRows(Rows<const T> rows, T* sums) {
  for (index r = 0; r < rows.rows; ++r) {
    const T* const row = rows[r];
    ForEachLane<T>(rows.columns, [=](auto lanes, index c) {
      lanes.Store(hn::Add(lanes.Load(sums + c), lanes.Load(row + c)), sums + c);
    });
  }
}

template <class T>
void AddProductRows(ProductRows<const T> rows, T* sums) {
#if FOVEA_PAIRS
  if constexpr (std::is_same_v<T, float>) {
    for (index r = 0; r < rows.rounded().rows; ++r) {
      const BFloat16* const row = rows.rounded()[r];
      ForEachLane<T>(rows.columns(), [&](auto lanes, index c) {
        lanes.Store(hn::Add(lanes.Load(sums + c), LoadUpTo(row, c, rows.columns())), sums + c);
      });
    }
  }
#endif
  AddRows(rows.values(), sums);
}

template <class T>
GemmKernels<T> KernelsFor() {
  return {{kBlockRows, kPanelLanes<T>, kLanes<T>, kPanelsAtOnce},
          MultiplyTileOf<T>,
          ScratchOf<T>,
          PackPanelsOf<T>,
          AddProductRows<T>};
}
auto Kernels() { return PerPrecision{KernelsFor<float>(), KernelsFor<double>()}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {

HWY_EXPORT(Kernels);

template <class T>
GemmKernels<T> gemm_kernels() {
  return FOVEA_DISPATCH(Kernels)().of<T>();
}

template GemmKernels<float> gemm_kernels();
template GemmKernels<double> gemm_kernels();

}  // namespace fovea
#endif  // HWY_ONCE

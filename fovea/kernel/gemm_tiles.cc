// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/gemm_tiles.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/gemm_tiles.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/kernel/gemm_end-inl.h"
#include "fovea/kernel/gemm_operands-inl.h"
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

template <Operands kOperands, class T>
void MultiplyTile(const MatmulTile<T>& t) {
  using In = OperandOf<T, kOperands>;
  const index N = t.c.columns(), steps = steps_of(t.a.columns(), kOperands);
  const bool is_last_ragged = t.last_panel * t.b->lanes > N && N % kLanes<T> != 0;
  const index whole_panels = is_last_ragged ? t.last_panel - 1 : t.last_panel;
  Scratch scratch;
  LeftSide<T, kOperands> left(t.a, scratch);
  const PanelsOfC<T> panels(t, whole_panels, steps > kDepth<In>, scratch);
  const bool finishes =
      !panels.rounds_in_registers() && (t.c.is_rounded() || ChangesSums(t.options));
  In* const buffer =
      t.b->pack ? scratch.template allocate<In>(kPanelLanes<T> * kDepth<In>) : nullptr;
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
  if (!is_last_ragged) return;
  MultiplyRaggedPanel<kOperands>(t, whole_panels, steps, left, panel_of_b, scratch);
}

template <class T>
void MultiplyTileOf(const MatmulTile<T>& t) {
  WithOperands<T>(t.b->operands, [&](auto operands) { MultiplyTile<operands(), T>(t); });
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

// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/gemm_tiles.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/gemm_tiles.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/kernel/activation-inl.h"
#include "fovea/simd/product-inl.h"
#include "fovea/simd/simd-inl.h"
#include "fovea/simd/transpose-inl.h"

// The place of the operands of a multiply-add decides the speed. B is read in panels (64 columns on
// AVX-512) that are packed one after another, so that the four vectors of a step in k are a cache
// line each, in order, and the prefetcher sees one stream. A panel is cut into blocks of kDepth
// rows: a block stays in L1 or L2 while it is multiplied with all rows of A of the tile. The tile
// of A (about 100 rows x kDepth) stays in L2 for all panels. C is written once for each block of k;
// bias and activation are applied right after the last block, while C is in L1. Meanwhile the
// product asks for what it reads next (docs/DESIGN.md says why).
//
// In A^T B the sum runs over the rows of both, which are in the right order already: values of A
// for six rows of C side by side, and vectors of B. With panels of 64 columns they are read in
// place; if rows are so far apart that they conflict in the sets of the caches, kDepth of them are
// first copied closer together. Copying always was measured 2 % slower at widths of 384, and 10 to
// 20 % at widths of 128. A panel of 16 columns (AVX2) is a cache line of each row, and its rows
// conflict at nearly every width: there both operands are always copied, A to strips of six
// columns. On Zen 3 that takes .6 to .75 of the time, from widths of 128 on.
HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

template <class T>
inline constexpr index kDepth = 1536 / static_cast<index>(sizeof(T));

/// Whether a panel of B is a cache line wide or less.
inline constexpr bool kIsNarrow = kBlockVectors == 2;

/// Cuts [0, n) into equal parts of at most `most`, at least one; calls f(begin, end).
template <class F>
HWY_INLINE void ForEachPart(index n, index most, F&& f) {
  const index parts = std::max<index>(1, (n + most - 1) / most);
  const index length = (n + parts - 1) / parts;
  index begin = 0;
  do {
    const index end = std::min(n, begin + length);
    f(begin, end);
    begin = end;
  } while (begin < n);
}

// -------------------------------------------------------------------------------------- panels

/// Copies rows of `from` to rows of `to` that are `to_stride` apart, and fills the rest of each
/// with zeros.
template <class T>
HWY_INLINE void CopyColumns(Rows<const T> from, T* to, index to_stride) {
  for (index k = 0; k < from.rows; ++k) {
    const T* const source = from[k];
    T* const target = to + k * to_stride;
    ForEachLane<T>(from.columns,
                   [=](auto lanes, index i) { lanes.Store(lanes.Load(source + i), target + i); });
    for (index i = from.columns; i < to_stride; ++i) target[i] = T{0};
  }
}

template <class T>
void PackPanel(const PanelToPack<T>& p) {
  constexpr index kWidth = kPanelLanes<T>;
  if (p.form == Form::kPlain) {
    const index end = std::min(p.m.columns, p.first + kWidth);
    return CopyColumns(p.m.columns_slice(p.first, end), p.panel, kWidth);
  }
  const index have = std::min(kWidth, p.m.rows - p.first);
  RowsToLanes<T>(p.m.slice(p.first, p.first + have), have, T{1}, p.panel, kWidth);
}

template <class T>
struct PanelOfB {
  const T* data;
  index row_stride;
};

/// The rows [begin, end) of a panel of B, packed into `buffer` if need be.
template <class T>
HWY_INLINE PanelOfB<T> ReadPanel(const Panels<T>& b, index panel, index begin, index end,
                                 T* buffer) {
  if (!b.pack) return {b.panel(panel) + begin * b.row_stride, b.row_stride};
  const Rows<const T> m =
      *b.pack == Form::kPlain
          ? Rows<const T>(b.data, b.rows, b.columns, b.row_stride).slice(begin, end)
          : Rows<const T>(b.data, b.columns, b.rows, b.row_stride).columns_slice(begin, end);
  PackPanel<T>({m, *b.pack, panel * b.lanes, buffer});
  return {buffer, kPanelLanes<T>};
}

// ------------------------------------------------------------------------------------ C = A B

/// The columns [begin, end) of C that a panel computes. `sums` is C itself, or a buffer if whole
/// vectors would go beyond the end of its rows.
template <class T>
struct PanelOfC {
  index begin, end;
  T* sums;
  index stride;
};

// With the slope known to be wanted, the compiler computes once what f and f' share.
template <Activation kF, bool kSlope, class T>
HWY_INLINE void FinishRows(const MatmulTile<T>& t, const PanelOfC<T>& p) {
  const MatmulOptions<T>& o = t.options;
  const bool add_bias = o.store == Store::kAdd && !o.bias.empty();
  for (index r = 0; r < t.c.rows; ++r) {
    const T* const sums = p.sums + r * p.stride;
    T* const c = t.c[r] + p.begin;
    T* const slope = kSlope ? o.slope[r] + p.begin : nullptr;
    ForEachLane<T>(p.end - p.begin, [&](auto lanes, index i) {
      auto s = lanes.Load(sums + i);
      if (add_bias) s = hn::Add(s, lanes.Load(o.bias.data + p.begin + i));
      if constexpr (kSlope) lanes.Store(ActivateGradient<kF>(lanes.d, s), slope + i);
      lanes.Store(Activate<kF>(lanes.d, s), c + i);
    });
  }
}

template <class T>
HWY_NOINLINE void Finish(const MatmulTile<T>& t, const PanelOfC<T>& p) {
  WithActivation(t.options.activation, [&](auto f) {
    if (t.options.slope.data != nullptr) {
      FinishRows<f(), true>(t, p);
    } else {
      FinishRows<f(), false>(t, p);
    }
  });
}

template <class T>
bool HasToFinish(const MatmulOptions<T>& o) {
  return o.activation != Activation::kNone || o.slope.data != nullptr ||
         (o.store == Store::kAdd && !o.bias.empty());
}

template <Into kInto, class T>
HWY_INLINE void ProductAhead(const TileOperands<T>& o) {
  if (o.ahead->is_empty()) return TileProduct<kInto>(o);
  TileProduct<kInto, LaneMaximum::kNone, Ask::kAhead>(o);
}

/// Adds the products with `b`, which holds the rows [begin, end) of B.
template <class T>
void MultiplyPart(const MatmulTile<T>& t, const PanelOfB<T>& b, const PanelOfC<T>& p, index begin,
                  index end, LinesAhead ahead) {
  HWY_ALIGN T bias[kPanelLanes<T>];
  const index lanes = RoundUpToLanes<T>(p.end - p.begin);
  TileOperands<T> o{.a = t.a.columns_slice(begin, end),
                    .b = {b.data, end - begin, lanes, b.row_stride},
                    .c = {p.sums, t.c.rows, lanes, p.stride},
                    .ahead = &ahead};
  if (begin > 0 || t.options.store == Store::kAdd) {
    ProductAhead<Into::kAdd>(o);
  } else if (!t.options.bias.empty()) {
    std::fill(std::copy(t.options.bias.data + p.begin, t.options.bias.data + p.end, bias),
              bias + kPanelLanes<T>, T{0});
    o.per_lane = bias;
    ProductAhead<Into::kStartAt>(o);
  } else {
    ProductAhead<Into::kOverwrite>(o);
  }
}

template <class T>
void MultiplyTile(const MatmulTile<T>& t) {
  const index N = t.c.columns, lanes = t.b->lanes, K = t.a.columns;
  const bool is_last_ragged = t.last_panel * lanes > N && N % kLanes<T> != 0;
  const index whole_panels = is_last_ragged ? t.last_panel - 1 : t.last_panel;
  const auto panel_of_c = [&](index panel) {
    const index begin = panel * lanes;
    return PanelOfC<T>{begin, std::min(N, begin + lanes), t.c.data + begin, t.c.stride};
  };
  Scratch scratch;
  T* const buffer = t.b->pack ? scratch.template allocate<T>(kPanelLanes<T> * kDepth<T>) : nullptr;
  const auto panel_of_b = [&](index panel, index begin, index end) {
    return ReadPanel(*t.b, panel, begin, end, buffer);
  };
  // What comes next: after the last panel the rows of A in the next part, else the next panel of B.
  // A panel that is yet to be packed is not asked for: packing reads it into the cache.
  const auto lines_after = [&](index panel, index begin, index end) {
    const index next = panel + 1, row_stride = t.b->row_stride;
    if (next == whole_panels) {
      return LinesAhead(t.a.columns_slice(end, std::min(K, 2 * end - begin)));
    }
    if (t.b->pack) return LinesAhead();
    return LinesAhead(Rows<const T>(t.b->panel(next) + begin * row_stride, end - begin,
                                    std::min(lanes, N - next * lanes), row_stride));
  };
  ForEachPart(K, kDepth<T>, [&](index begin, index end) {
    for (index panel = t.first_panel; panel < whole_panels; ++panel) {
      const auto p = panel_of_c(panel);
      MultiplyPart(t, panel_of_b(panel, begin, end), p, begin, end, lines_after(panel, begin, end));
      if (end == K && HasToFinish(t.options)) Finish(t, p);
    }
  });
  if (!is_last_ragged) return;
  auto p = panel_of_c(whole_panels);
  p.stride = kPanelLanes<T>;
  p.sums = scratch.template allocate<T>(t.c.rows * p.stride);
  for (index r = 0; r < t.c.rows; ++r) {
    std::fill_n(p.sums + r * p.stride, p.stride, T{0});
    if (t.options.store == Store::kAdd) {
      std::copy(t.c[r] + p.begin, t.c[r] + p.end, p.sums + r * p.stride);
    }
  }
  ForEachPart(K, kDepth<T>, [&](index begin, index end) {
    MultiplyPart(t, panel_of_b(whole_panels, begin, end), p, begin, end, {});
  });
  Finish(t, p);
}

// ---------------------------------------------------------------------------------- C = A^T B

/// Whether rows are first copied closer together. A block of columns of rows that are whole pages
/// apart falls into a few sets of the first cache: at widths of 1024 and 2048 copying takes .89 to
/// .98 of the time. Rows an odd number of cache lines apart fall into all sets, however far that
/// is.
template <class T>
bool CopiesRows(index stride) {
  constexpr index kLine = kAlignment / sizeof(T), kPage = 4096 / static_cast<index>(sizeof(T));
  return stride % kPage == 0 || (stride > kFarApart<T> && stride % (2 * kLine) != kLine);
}

/// The distance of two strips of `depth` rows: an odd number of cache lines more, so that the lines
/// that are written in turns fall into different sets.
template <class T>
index StripStride(index depth) {
  constexpr index kLine = kAlignment / sizeof(T);
  const index lines = (depth * kBlockRows + kLine - 1) / kLine;
  return (lines | 1) * kLine;
}

/// Rows of A as the product reads them: a strip of kBlockRows columns after the other, each [depth,
/// kBlockRows].
template <class T>
void PackStrips(Rows<const T> rows, T* to) {
  const index stride = StripStride<T>(rows.rows), whole = rows.columns / kBlockRows;
  const index rest = rows.columns % kBlockRows;
  for (index k = 0; k < rows.rows; ++k, to += kBlockRows) {
    const T* from = rows[k];
    T* strip = to;
    for (index i = 0; i < whole; ++i, from += kBlockRows, strip += stride) {
      std::memcpy(strip, from, kBlockRows * sizeof(T));
    }
    std::copy_n(from, rest, strip);
  }
}

/// The values of strips of at most kDepth rows.
template <class T>
index StripsSize(index columns) {
  return (columns + kBlockRows - 1) / kBlockRows * StripStride<T>(kDepth<T>);
}

/// The product with one panel of B. A is read from `strips` if there are any.
template <Into kInto, class T>
void MultiplyAtBPanel(const TileOperands<T>& o, const T* strips) {
  if (strips == nullptr) return ProductAhead<kInto>(o);
  const index rows = o.c.rows, stride = StripStride<T>(o.b.rows);
  for (index row = 0; row < rows; row += kBlockRows, strips += stride) {
    TileOperands<T> strip = o;
    strip.a = {strips, 1, kBlockRows};
    strip.c = o.c.slice(row, std::min<index>(rows, row + kBlockRows));
    ProductAhead<kInto>(strip);
  }
}

template <class T>
void MultiplyAtBTile(const AtBTile<T>& t) {
  constexpr index kWidth = kPanelLanes<T>;
  const index rows = t.c.rows, columns = t.c.columns;
  const bool is_ragged = columns % kLanes<T> != 0;
  const bool in_strips = kIsNarrow && columns > kWidth;
  const bool copies_a = !in_strips && CopiesRows<T>(t.a.stride);
  const bool copies_b =
      is_ragged || (kIsNarrow && rows > 2 * kBlockRows) || CopiesRows<T>(t.b.stride);
  const index a_depth = copies_a ? RoundUpToLanes<T>(rows) : t.a.stride;
  Scratch scratch;
  T* const strips = in_strips ? scratch.template allocate<T>(StripsSize<T>(rows)) : nullptr;
  T* const a = copies_a ? scratch.template allocate<T>(a_depth * kDepth<T>) : nullptr;
  T* const b = copies_b ? scratch.template allocate<T>(kWidth * kDepth<T>) : nullptr;
  // If whole vectors would go beyond the end of a row, C is summed in a buffer.
  Rows<T> c = t.c;
  if (is_ragged) {
    c.stride = RoundUpToLanes<T>(columns);
    c.data = scratch.template allocate<T>(rows * c.stride);
    for (index r = 0; r < rows && t.store == Store::kAdd; ++r) {
      std::fill(std::copy_n(t.c[r], columns, c[r]), c[r] + c.stride, T{0});
    }
  }
  // The next columns of B, and an equal share of the next rows of A.
  const auto lines_after = [&](index first, index next, index begin, index end) {
    const LinesAhead of_b(
        t.b.slice(begin, end).columns_slice(next, std::min(columns, next + kWidth)));
    const index rows_of_a = std::min(t.a.rows, 2 * end - begin) - end;
    const auto share = [&](index column) { return end + rows_of_a * column / columns; };
    return of_b.then(LinesAhead(t.a.slice(share(first), share(next))));
  };
  ForEachPart(t.a.rows, kDepth<T>, [&](index begin, index end) {
    const auto rows_of_a = t.a.slice(begin, end), rows_of_b = t.b.slice(begin, end);
    if (in_strips) PackStrips(rows_of_a, strips);
    if (copies_a) CopyColumns(rows_of_a, a, a_depth);
    for (index first = 0; first < columns; first += kWidth) {
      const index width = std::min(kWidth, columns - first);
      if (copies_b) CopyColumns(rows_of_b.columns_slice(first, first + width), b, kWidth);
      const index depth = end - begin, lanes = RoundUpToLanes<T>(width);
      const Rows<const T> left(copies_a ? a : rows_of_a.data, depth, rows, a_depth);
      LinesAhead ahead = lines_after(first, first + width, begin, end);
      const TileOperands<T> o{.a = Transposed(left),
                              .b = {copies_b ? b : rows_of_b.data + first, depth, lanes,
                                    copies_b ? kWidth : t.b.stride},
                              .c = {c.data + first, rows, lanes, c.stride},
                              .ahead = &ahead};
      if (begin > 0 || t.store == Store::kAdd) {
        MultiplyAtBPanel<Into::kAdd>(o, strips);
      } else {
        MultiplyAtBPanel<Into::kOverwrite>(o, strips);
      }
    }
  });
  for (index r = 0; r < rows && is_ragged; ++r) std::copy_n(c[r], columns, t.c[r]);
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
GemmKernels<T> KernelsFor() {
  return {{kBlockRows, kPanelLanes<T>, kLanes<T>},
          MultiplyTile<T>,
          MultiplyAtBTile<T>,
          PackPanel<T>,
          AddRows<T>};
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

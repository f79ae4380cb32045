// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "fovea/kernel/gemm_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/gemm_at_b.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/kernel/gemm_operands-inl.h"
#include "fovea/simd/product-inl.h"
#include "fovea/simd/simd-inl.h"

// In A^T B the sum runs over the rows of both, which are in the right order already: values of A
// for six rows of C side by side, and vectors of B. With panels of 64 columns they are read in
// place; if rows are so far apart that they conflict in the sets of the caches, kDepth of them are
// first copied closer together. Copying always was measured 2 % slower at widths of 384, and 10 to
// 20 % at widths of 128. A panel of 16 columns (AVX2) is a cache line of each row, and its rows
// conflict at nearly every width: there both operands are copied unless C is very small, A to
// strips of six columns, B four panels at a time. On Zen 3 that takes .6 to .75 of the time, from
// widths of 128 on. There copying asks for the rows that it reads next, and the product for the
// rows of C alone: in strips, asking for the next rows of A and B was a quarter of all the time.
//
// Operands of bfloat16 are always copied: rounded, two rows to a row of pairs.
HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

/// The steps of a sum of pairs that are computed at a time. A panel of 128 steps stays in L1 for
/// all rows of C: on Zen 5, with two instead of three tiles of a thread, products of 128 to 3072
/// columns take .91 to 1.01 of the time of 384 steps, .96 in the median. Tile registers, whose sums
/// are loaded and stored at every part, were measured with 384 steps and three tiles alone.
template <class In>
index DepthOfPart() {
  return std::is_same_v<In, BFloat16Pair> && !has_tiles() ? 128 : kDepth<In>;
}

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

/// The columns of the next strip, of `rest` that are left. 8 are two strips of 4 (kSplitsEight):
/// the sums of 2 columns are too few to hide the latency of a multiply-add, and took .08 of the
/// time of a product with 128 columns.
constexpr index StripWidth(index rest) {
  if (kSplitsEight<kBlockVectors> && rest == 8) return 4;
  return std::min<index>(kBlockRows, rest);
}

/// Rows of A as the product reads them: strip after strip, each [depth, kBlockRows]. Eight rows at
/// a time: row by row, each write would go to another page than the one before.
template <class T>
void PackStrips(Rows<const T> rows, T* to) {
  constexpr index kRowsAtOnce = 8, kLine = kAlignment / sizeof(T);
  const index stride = StripStride<T>(rows.rows);
  for (index begin = 0; begin < rows.rows; begin += kRowsAtOnce) {
    const index count = std::min(kRowsAtOnce, rows.rows - begin);
    for (index column = 0, i = 0, width; column < rows.columns; column += width, ++i) {
      width = StripWidth(rows.columns - column);
      if (column % kLine < kBlockRows) {  // mostly the first strip that begins in this line
        for (index k = 0; k < count; ++k) AskForRow(rows, begin + k, 2 * kRowsAtOnce, column);
      }
      const T* const from = rows[begin] + column;
      T* const strip = to + i * stride + begin * kBlockRows;
      const auto copy = [&](auto columns) {
        for (index k = 0; k < count; ++k) {
          std::memcpy(strip + k * kBlockRows, from + k * rows.stride, columns * sizeof(T));
        }
      };
      if (width == kBlockRows) {
        copy(std::integral_constant<std::size_t, kBlockRows>());
      } else {
        copy(static_cast<std::size_t>(width));
      }
    }
  }
}

/// The values of strips of at most kDepth rows.
template <class T>
index StripsSize(index columns) {
  return (columns + kBlockRows - 1) / kBlockRows * StripStride<T>(kDepth<T>);
}

/// The product with one panel of B. A is read from `strips` if there are any; each asks for the
/// rows of C to which the next one adds.
template <Into kInto, class T>
void MultiplyAtBPanel(const TileOperands<T>& o, const T* strips) {
  if (strips == nullptr) return ProductAhead<kInto>(o);
  const index rows = o.c.rows, stride = StripStride<T>(o.b.rows);
  for (index row = 0; row < rows; strips += stride) {
    TileOperands<T> strip = o;
    strip.a = {strips, 1, kBlockRows};
    const index end = row + StripWidth(rows - row);
    strip.c = o.c.slice(row, end);
    for (index r = end; r < end + StripWidth(rows - end); ++r) {
      detail::prefetch_line_to_write(o.c[r]);
    }
    ProductAhead<kInto>(strip);
    row = end;
  }
}

/// The values of each buffer of a tile; 0 where it reads or writes in place.
struct AtBBuffers {
  index sums, strips, a, b;
};
template <Operands kOperands, class T>
AtBBuffers BuffersOf(const AtBTile<T>& t) {
  constexpr index kWidth = kPanelLanes<T>;
  const index rows = t.c.rows, columns = t.c.columns;
  const bool is_ragged = columns % kLanes<T> != 0;
  const index sums = is_ragged ? rows * RoundUpToLanes<T>(columns) : 0;
  if constexpr (kOperands == Operands::kWhole) {
    const index a_stride = t.a.values().stride, b_stride = t.b.values().stride;
    const bool in_strips = kIsNarrow && columns > kWidth;
    const bool copies_a = !in_strips && CopiesRows<T>(a_stride);
    const bool copies_b =
        is_ragged || (kIsNarrow && rows > 2 * kBlockRows) || CopiesRows<T>(b_stride);
    return {.sums = sums,
            .strips = in_strips ? StripsSize<T>(rows) : 0,
            .a = copies_a ? RoundUpToLanes<T>(rows) * kDepth<T> : 0,
            .b = copies_b ? kPanelsAtOnce * kWidth * kDepth<T> : 0};
  } else {
    const index depth = DepthOfPart<OperandOf<T, kOperands>>();
    return {.sums = sums, .strips = 0, .a = RoundUpToLanes<T>(rows) * depth, .b = kWidth * depth};
  }
}

/// C as whole vectors: in place, or summed in a buffer if they would go beyond the end of a row.
template <class T>
class SumsOfTile {
 public:
  SumsOfTile(const AtBTile<T>& t, index buffer_size, Scratch& scratch)
      : t_(t), rows_(t.c), is_ragged_(buffer_size > 0) {
    if (!is_ragged_) return;
    rows_.stride = RoundUpToLanes<T>(t.c.columns);
    rows_.data = scratch.template allocate<T>(buffer_size);
    for (index r = 0; r < t.c.rows && t.store == Store::kAdd; ++r) {
      T* const row = rows_[r];
      std::fill(std::copy_n(t.c[r], t.c.columns, row), row + rows_.stride, T{0});
    }
  }
  /// The columns from `first` on.
  Rows<T> columns(index first, index lanes) const {
    return {rows_.data + first, rows_.rows, lanes, rows_.stride};
  }
  void finish() const {
    for (index r = 0; r < rows_.rows && is_ragged_; ++r) {
      std::copy_n(rows_[r], t_.c.columns, t_.c[r]);
    }
  }

 private:
  const AtBTile<T>& t_;
  Rows<T> rows_;
  bool is_ragged_;
};

/// The rows of A and B that are multiplied after [begin, end): the rows that follow, or else the
/// first ones of the next tile.
template <class T>
struct NextPart {
  ProductRows<const T> a, b;

  NextPart(const AtBTile<T>& t, index begin, index end) {
    const index rows = t.a.rows(), depth = end - begin;
    if (end < rows) {
      a = t.a.slice(end, std::min(rows, end + depth));
      b = t.b.slice(end, std::min(rows, end + depth));
    } else {
      a = t.next_a.slice(0, std::min(t.next_a.rows(), depth));
      b = t.next_b.slice(0, std::min(t.next_b.rows(), depth));
    }
  }
};

/// The lines that are read after the panel of the columns [first, next) of B, in the rows [begin,
/// end): the next panel, and an equal share of the next rows of A.
template <class T>
LinesAhead LinesAfter(const AtBTile<T>& t, index first, index next, index begin, index end) {
  const index columns = t.c.columns;
  const NextPart<T> part(t, begin, end);
  const auto panel_from = [](const ProductRows<const T>& b, index column) {
    return LinesOf(b.columns_slice(column, std::min(b.columns(), column + kPanelLanes<T>)));
  };
  const LinesAhead of_b =
      next < columns ? panel_from(t.b.slice(begin, end), next) : panel_from(part.b, 0);
  const auto share = [&](index column) { return part.a.rows() * column / columns; };
  return of_b.then(LinesOf(part.a.slice(share(first), share(next))));
}

template <class T>
void MultiplyAtBTile(const AtBTile<T>& t) {
  constexpr index kWidth = kPanelLanes<T>;
  const index rows = t.c.rows, columns = t.c.columns;
  const Rows<const T> all_a = t.a.values(), all_b = t.b.values();
  const AtBBuffers buffers = BuffersOf<Operands::kWhole>(t);
  const bool in_strips = buffers.strips > 0, copies_a = buffers.a > 0, copies_b = buffers.b > 0;
  const index a_depth = copies_a ? RoundUpToLanes<T>(rows) : all_a.stride;
  Scratch scratch;
  const SumsOfTile<T> c(t, buffers.sums, scratch);
  T* const strips = AllocateSome<T>(scratch, buffers.strips);
  T* const a = AllocateSome<T>(scratch, buffers.a);
  T* const b = AllocateSome<T>(scratch, buffers.b);
  ForEachPart(all_a.rows, kDepth<T>, [&](index begin, index end) {
    const auto rows_of_a = all_a.slice(begin, end), rows_of_b = all_b.slice(begin, end);
    if (in_strips) PackStrips(rows_of_a, strips);
    if (copies_a) CopyColumns<Operands::kWhole>(rows_of_a, a, a_depth);
    for (index first = 0; first < columns; first += kWidth) {
      const index width = std::min(kWidth, columns - first), lanes = RoundUpToLanes<T>(width);
      const index place = first / kWidth % kPanelsAtOnce;
      if (copies_b && place == 0) {
        const index last = std::min(columns, first + kPanelsAtOnce * kWidth);
        CopyPanels<Operands::kWhole>(rows_of_b.columns_slice(first, last), b, kWidth * kDepth<T>);
      }
      const index depth = end - begin;
      const Rows<const T> left(copies_a ? a : rows_of_a.data, depth, rows, a_depth);
      LinesAhead ahead = in_strips ? LinesAhead() : LinesAfter(t, first, first + width, begin, end);
      const TileOperands<T> o{
          .a = Transposed(left),
          .b = {copies_b ? b + place * kWidth * kDepth<T> : rows_of_b.data + first, depth, lanes,
                copies_b ? kWidth : all_b.stride},
          .c = c.columns(first, lanes),
          .ahead = &ahead};
      if (begin > 0 || t.store == Store::kAdd) {
        MultiplyAtBPanel<Into::kAdd>(o, strips);
      } else {
        MultiplyAtBPanel<Into::kOverwrite>(o, strips);
      }
    }
  });
  c.finish();
}

/// A^T of some rows of A, rounded: columns of A side by side, or as rows for tile registers, which
/// read them so.
template <Operands kOperands, class T>
StridedMatrix<OperandOf<T, kOperands>> RoundTransposed(const ProductRows<const T>& a, index steps,
                                                       [[maybe_unused]] index depth,
                                                       OperandOf<T, kOperands>* to) {
#if FOVEA_PAIRS
  if constexpr (kOperands == Operands::kPaired) {
    if (has_tiles()) {
      a.visit([&](auto rows) { PairColumnsToRows(rows, to, depth); });
      return {to, depth, 1};
    }
  }
#endif
  const index stride = RoundUpToLanes<T>(a.columns());
  PackColumns<kOperands, T>(a, to, stride);
  return Transposed(Rows<const OperandOf<T, kOperands>>(to, steps, a.columns(), stride));
}

/// Multiplies a tile of A^T B with rounded operands.
template <Operands kOperands, class T>
void MultiplyAtBTileRounded(const AtBTile<T>& t) {
  using In = OperandOf<T, kOperands>;
  constexpr index kWidth = kPanelLanes<T>;
  const index columns = t.c.columns;
  const AtBBuffers buffers = BuffersOf<kOperands>(t);
  Scratch scratch;
  const SumsOfTile<T> c(t, buffers.sums, scratch);
  const index depth = DepthOfPart<In>();
  In* const a = scratch.template allocate<In>(buffers.a);
  In* const b = scratch.template allocate<In>(buffers.b);
  ForEachPart(steps_of(t.a.rows(), kOperands), depth, [&](index begin, index end) {
    const Terms<kOperands> terms(begin, end, t.a.rows());
    const auto left =
        RoundTransposed<kOperands, T>(t.a.slice(terms.begin, terms.end), end - begin, depth, a);
    for (index first = 0; first < columns; first += kWidth) {
      const index width = std::min(kWidth, columns - first), lanes = RoundUpToLanes<T>(width);
      const auto of_panel = t.b.columns_slice(first, first + width);
      PackColumns<kOperands, T>(of_panel.slice(terms.begin, terms.end), b, kWidth);
      LinesAhead ahead = LinesAfter(t, first, first + width, terms.begin, terms.end);
      const TileOperands<T, In> o{.a = left,
                                  .b = {b, end - begin, lanes, kWidth},
                                  .c = c.columns(first, lanes),
                                  .ahead = &ahead};
      if (begin > 0 || t.store == Store::kAdd) {
        ProductAhead<Into::kAdd>(o);
      } else {
        ProductAhead<Into::kOverwrite>(o);
      }
    }
  });
  c.finish();
}

template <class T>
void MultiplyAtBTileOf(const AtBTile<T>& t) {
  WithOperands<T>(t.operands, [&](auto operands) {
    if constexpr (operands() == Operands::kWhole) {
      MultiplyAtBTile<T>(t);
    } else {
      MultiplyAtBTileRounded<operands(), T>(t);
    }
  });
}
template <class T>
index ScratchOf(const AtBTile<T>& t) {
  index bytes = 0;
  WithOperands<T>(t.operands, [&](auto operands) {
    const AtBBuffers buffers = BuffersOf<operands()>(t);
    bytes = BytesOfBuffers<T>({buffers.sums, buffers.strips, buffers.a, buffers.b});
  });
  return bytes;
}
auto Kernels() {
  return PerPrecision{AtBKernels<float>{MultiplyAtBTileOf<float>, ScratchOf<float>},
                      AtBKernels<double>{MultiplyAtBTileOf<double>, ScratchOf<double>}};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {

HWY_EXPORT(Kernels);

template <class T>
AtBKernels<T> at_b_kernels() {
  return FOVEA_DISPATCH(Kernels)().template of<T>();
}

template AtBKernels<float> at_b_kernels();
template AtBKernels<double> at_b_kernels();

}  // namespace fovea
#endif  // HWY_ONCE

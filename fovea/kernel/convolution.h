// SPDX-License-Identifier: Apache-2.0
// Convolution over time of packed sequences, as products that read overlapping rows.
//
// With taps W_j [out, in], j = 0 .. width - 1, row t of a sequence is
//
//   y_t = f(bias + sum over j of W_j x_(t - before + j dilation)),
//
// where x counts as 0 beyond the ends of the sequence. The rows are copied once, with rows of zeros
// between the sequences. With dilation 1 the rows that y_t sees lie side by side there, so they are
// row t of a matrix [rows, width in] whose rows overlap, and no window is ever copied.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "fovea/kernel/elementwise.h"
#include "fovea/kernel/gemm.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

/// Which rows a row of the result sees: as many before it as after it, or none after it.
enum class Padding : std::uint8_t {
  kSame,    ///< (width - 1) dilation in all; if that is odd, one more after (as PyTorch's 'same')
  kCausal,  ///< itself and the (width - 1) dilation rows before it
};

/// Row t of the result sees the rows t - before() + j dilation, j = 0 .. width - 1.
struct Window {
  index width = 3;
  Padding padding = Padding::kSame;
  index dilation = 1;

  index reach() const { return (width - 1) * dilation; }
  index before() const { return padding == Padding::kCausal ? reach() : reach() / 2; }
  index after() const { return reach() - before(); }
  /// Rows of zeros that serve one sequence as its end and the next as its beginning.
  index gap() const { return std::max(before(), after()); }
};

/// Where the rows of packed sequences lie if there are `gap` rows of zeros before, between and
/// after them.
struct SpreadLayout {
  /// Rows of one sequence: from row `packed` on, and from row `spread` on.
  struct Run {
    index packed, spread, rows;
  };
  Vec<const Run> runs;  ///< ascending; none is empty
  index gap = 0;
  index rows = 0;  ///< with the gaps

  /// `offsets` as in PackedRows; `runs` has room for offsets.size - 1.
  static SpreadLayout of(Vec<const std::int32_t> offsets, index gap, Vec<Run> runs);
};

/// to = the rows of `from` where the layout has them, and zeros in the gaps.
template <class T>
void spread_rows(const Context& ctx, InRows<T> from, const SpreadLayout& layout, Rows<T> to);

/// The product of all windows with the taps.
template <class T>
struct WindowProduct {
  Rows<const T> spread;  ///< [layout.rows, C], contiguous if width is more than 1
  const SpreadLayout* layout = nullptr;
  index before = 0;  ///< where the window of a row begins
  index width = 1, dilation = 1;
  Panels<T> taps;  ///< [width C, columns of y]; of pairs only if C is even or a window contiguous
  Rows<T> y;       ///< packed
  MatmulOptions<T> options;
};

/// y = f(windows taps + bias), as matmul. A row has the same bits in any batch.
template <class T>
void window_product(const Context& ctx, const WindowProduct<T>& p);

/// The gradient of the taps.
template <class T>
struct TapsGradient {
  Rows<const T> x, dy;  ///< both spread: [layout.rows, in], [layout.rows, out]
  index gap = 0;        ///< of the layout
  Window window;
  Rows<T> dw;  ///< [out, width in]
  Store store = Store::kWrite;
};

/// dW_j = the sum over t of dy_t^T x_(t - before + j dilation). Gaps of dy add zeros.
template <class T>
void taps_gradient(const Context& ctx, const TapsGradient<T>& g);

/// The taps of the gradient of x: [width out, in] from W [out, width in], the last tap first.
template <class T>
void reverse_taps(const Context& ctx, InRows<T> weight, index width, Rows<T> reversed);

// Convolution over time of width 3 with two thirds of the multiplications (Winograd 1980,
// "Arithmetic complexity of computations", F(2, 3); for networks: Lavin, Gray 2016, "Fast
// algorithms for convolutional neural networks").
//
// Two rows of the result, y0 and y1, see four rows d0 .. d3. With taps g0, g1, g2 [out, in]:
//
//   m0 = (d0 - d2) u0      u0 = g0
//   m1 = (d1 + d2) u1      u1 = (g0 + g1 + g2) / 2       y0 = m0 + m1 + m2
//   m2 = (d2 - d1) u2      u2 = (g0 - g1 + g2) / 2       y1 = m1 - m2 - m3
//   m3 = (d1 - d3) u3      u3 = g2
//
// where a product x u is x u^T: four of them, not six. The gradient of the d is the same with
// the taps in reverse order, so u1 and u2 stay and u0 and u3 change places. The gradient of the u
// is four products of the (d0 - d2) .. with dy0, dy0 + dy1, dy0 - dy1, -dy1. Rounding errors are
// not larger than those of six products, because their sums are shorter (tested).

/// Whether a convolution of `in` to `out` columns can be computed so, and faster than by windows.
constexpr bool winograd_pays(const Window& window, index in, index out) {
  // With fewer columns, what is saved in products is lost in making their operands.
  constexpr index kLeastColumns = 64;
  return window.width == 3 && window.dilation == 1 && in >= kLeastColumns && out >= kLeastColumns;
}

/// The rows of packed sequences as pairs: 0 and 1, 2 and 3, ... of each sequence. The last pair of
/// an odd number of rows has one row.
struct PairLayout {
  struct Run {
    index packed, pair, rows;  ///< of a sequence: its first row, its first pair, its rows
  };
  Vec<const Run> runs;  ///< ascending; none is empty
  index pairs = 0;

  /// `offsets` as in PackedRows; `runs` has room for offsets.size - 1.
  static PairLayout of(Vec<const std::int32_t> offsets, Vec<Run> runs);
};

/// Four matrices of one shape.
template <class T>
using Four = std::array<Rows<T>, 4>;

/// u1 and u2 [out, in] of the taps [out, 3 in]. (u0 and u3 are columns of the taps.)
template <class T>
void winograd_weights(const Context& ctx, InRows<T> taps, Rows<T> u1, Rows<T> u2);

template <class T>
struct WinogradForward {
  Rows<const T> x;  ///< [N, in]
  const PairLayout* layout = nullptr;
  index before = 1;            ///< rows that a row sees before it
  std::array<Panels<T>, 4> u;  ///< [in, out]
  Rows<T> y;                   ///< [N, out]
  MatmulOptions<T> options;
  Four<T> differences = {};  ///< if given, [pairs, in] each: becomes d0 - d2, d1 + d2, ...
};

/// y = f(convolution + bias). A row has the same bits in any batch.
template <class T>
void winograd_forward(const Context& ctx, const WinogradForward<T>& p);

template <class T>
struct WinogradWeightGradient {
  Four<T> differences;  ///< from the forward
  Rows<const T> dy;     ///< [N, out]
  const PairLayout* layout = nullptr;
  Rows<T> dw;  ///< [out, 3 in]
  Store store = Store::kWrite;
};

/// The gradient of the taps.
template <class T>
void winograd_weight_gradient(const Context& ctx, const WinogradWeightGradient<T>& g);

/// The two rows of a pair, from its four products.
template <class T>
struct WinogradPair {
  std::array<T*, 4> m;
  const T* bias = nullptr;
  index columns = 0;
  Store store = Store::kWrite;
  T *y0, *y1;          ///< y1 is null in a pair of one row
  T *slope0, *slope1;  ///< null if f' is not wanted
};

template <class T>
struct WinogradKernels {
  /// d0 - d2, d1 + d2, d2 - d1, d1 - d3 of rows of C values.
  void (*differences)(const std::array<const T*, 4>& d, index C, const std::array<T*, 4>& v);
  /// dy0, dy0 + dy1, dy0 - dy1, dy1.
  void (*result_gradients)(const T* dy0, const T* dy1, index C, const std::array<T*, 4>& m);
  /// u1 and u2 of one row of the taps, [3, C].
  void (*weights)(const T* taps, index C, T* u1, T* u2);
  /// The gradient of one row of the taps from those of the u.
  void (*gradient_of_taps)(const std::array<T*, 4>& du, index C, Store store, T* dw);
  void (*finish)(Activation f, const WinogradPair<T>& pair);
};

}  // namespace fovea

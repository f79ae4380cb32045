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
#include <cstdint>

#include "fovea/kernel/gemm.h"

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

}  // namespace fovea

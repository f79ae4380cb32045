// SPDX-License-Identifier: Apache-2.0
// Dropout (Srivastava et al. 2014) with inverted scaling. The mask is a function of its key and
// place: nothing is stored, and backward recomputes it.
#pragma once

#include <cstdint>

#include "fovea/base/context.h"
#include "fovea/base/random.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

/// The name of a row: the number of its sequence, and its place in the sequence. A mask that
/// depends on these does not change with batch order, padding or packing.
struct SampleRow {
  std::uint64_t sample = 0;
  std::uint32_t row = 0;
};

/// Which elements are dropped: element (sample, row, c) if its word is below p * 2^32. Its word
/// is
///
///   philox4x32({16 * (c / 64) + c % 16, row, sample low, sample high}, philox_key(key))[w]
///
/// with w = c % 64 / 16, so a mask has the same bits for every instruction set and number of
/// threads. This order of columns lets 16 counters of 4 words serve 64 columns without a shuffle,
/// for any width of vectors.
struct DropoutMask {
  double p = 0;  ///< in [0, 1); the kept are multiplied by 1 / (1 - p)
  DropoutKey key = {};
  Vec<const SampleRow> rows = {};  ///< [N]; empty: sample 0, row n
};

/// y = x / (1 - p) where kept, 0 where dropped. x, y [N,C]; y may be x. With p = 0, y is an exact
/// copy. Throws Error(kOptionValue) if p is outside [0, 1), Error(kShape) if a shape disagrees.
template <class T>
void dropout_forward(const Context& ctx, const DropoutMask& mask, InRows<T> x, Rows<T> y);

/// dx = dy / (1 - p) where kept, 0 where dropped: the same function of dy.
template <class T>
void dropout_backward(const Context& ctx, const DropoutMask& mask, InRows<T> dy, Rows<T> dx);

/// y = x + dropout(f), one pass for the residual connection. All [N,C]; y may be x or f. Its
/// gradient is dy for x and dropout_backward(dy) for f.
template <class T>
void dropout_add_forward(const Context& ctx, const DropoutMask& mask, InRows<T> x, InRows<T> f,
                         Rows<T> y);

}  // namespace fovea

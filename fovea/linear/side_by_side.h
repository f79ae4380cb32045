// SPDX-License-Identifier: Apache-2.0
// The loops of the solvers over a row, for weights of several problems side by side, compiled for
// every instruction set.
#pragma once

#include "fovea/base/types.h"
#include "fovea/linear/ngrams.h"

namespace fovea {

struct SideBySideKernels {
  /// sums[l] += values of the row times weights[column][l], column by column.
  void (*add_products)(const SparseRow& row, const double* weights, double* sums);
  /// weights[column][l] += steps[l] squares[column][l] value; without squares they are 1.
  void (*add_row)(const SparseRow& row, const double* steps, const double* squares,
                  double* weights);
};

/// The kernels for 1, 2, 4 or 8 lanes. No sum is fused, so all instruction sets give the same bits.
SideBySideKernels side_by_side_kernels(index lanes);

/// A number of each of the problems that are solved side by side in float32: a line of a cache.
struct alignas(64) WideLine {
  static constexpr std::size_t kLanes = 16;
  float lane[kLanes] = {};
};

/// Of a row, for each problem.
struct WideRow {
  WideLine y = {};       ///< 1 or -1
  WideLine cost = {};    ///< c_i
  WideLine square = {};  ///< |s x|^2
  WideLine dual = {};    ///< log(a / (c_i - a)) of the dual variable a
};

/// Those of WideLine::kLanes problems. Column k has the lines of its weights at lines[k stride]
/// and, where stride is 2, behind it those of its squared scales, which else are 1.
struct WideKernels {
  /// sums += values of the row times weights
  void (*add_products)(const SparseRow& row, const WideLine* lines, index stride, WideLine& sums);
  /// sums += squared values of the row times squared scales
  void (*add_squares)(const SparseRow& row, const WideLine* lines, index stride, WideLine& sums);
  /// weights += steps times squared scales times values
  void (*add_row)(const SparseRow& row, const WideLine& steps, index stride, WideLine* lines);
  /// Sets the duals of the active lanes (1; others are 0) to their optimum for these logits.
  /// `steps` becomes y times what a has grown by, and 0 of the others. `gaps` becomes, of all
  /// lanes, how far the probability of the wrong answer was from what the dual said, a / c_i.
  void (*move)(const WideLine& logits, const WideLine& active, WideRow& row, WideLine& steps,
               WideLine& gaps);
};

/// As above: the same bits on all instruction sets.
WideKernels wide_kernels();

}  // namespace fovea

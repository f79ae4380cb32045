// SPDX-License-Identifier: Apache-2.0
// The two loops of a solver over a row, for weights of several problems side by side, compiled for
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

}  // namespace fovea

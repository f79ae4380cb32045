// SPDX-License-Identifier: Apache-2.0
// How positions enter a model (spec 1.3): sines and cosines or a learned table, added to the
// embeddings, or side by side with them.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/attention/bias/alibi.h"  // alibi_slopes
#include "fovea/grad/ops.h"
#include "fovea/nn/module.h"

namespace fovea {

/// Where the sine and the cosine of frequency i stand among the d columns of a row (spec P1, P2);
/// each order is a fixed permutation of the others.
enum class SinusoidOrder {
  kInterleaved,  ///< sin 0, cos 0, sin 1, cos 1, ...
  kSinCos,       ///< all sines, then all cosines
  kCosSin,       ///< all cosines, then all sines
};

struct SinusoidOptions {
  index width = 0;  ///< even
  SinusoidOrder order = SinusoidOrder::kInterleaved;
  index reference = 0;  ///< the row for position p is that of |p - reference| (spec P6)
};

/// Rows for positions [0, count): sin and cos of p / 10000^(2i/d), i < d/2 (Vaswani et al. 2017,
/// section 3.5). float32 or float64, computed in double.
Tensor sinusoidal_positions(index count, const SinusoidOptions& options,
                            DType dtype = DType::kFloat32);

/// How the rows of positions join those of the tokens (spec P4).
enum class PositionJoin { kAdd, kConcatenate };

/// e + p, of one width, or [e; p]: e [N, C], a row of `table` [positions, P] for each id.
Variable join_positions(Tape& tape, Variable e, const TableRows& positions, PositionJoin join);

}  // namespace fovea

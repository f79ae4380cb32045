// SPDX-License-Identifier: Apache-2.0
// Position embeddings: sines and cosines or a learned table, added to the token embeddings or
// concatenated with them.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/attention/bias/alibi.h"  // alibi_slopes
#include "fovea/grad/ops.h"
#include "fovea/nn/module.h"
#include "fovea/nn/options.h"

namespace fovea {

struct SinusoidOptions {
  index width = 0;  ///< even
  SinusoidOrder order = SinusoidOrder::kInterleaved;
  index reference = 0;  ///< position p gets the row of |p - reference|
};

/// Rows for positions [0, count): sin and cos of p / 10000^(2i/d), i < d/2 (Vaswani et al. 2017,
/// section 3.5). float32 or float64, computed in double.
Tensor sinusoidal_positions(index count, const SinusoidOptions& options,
                            DType dtype = DType::kFloat32);

/// e + p (of the same width) or [e; p]: e [N, C]; p is a row of `table` [positions, P] for each id.
Variable join_positions(Tape& tape, Variable e, const TableRows& positions, PositionJoin join);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Scores that are sums over columns, but not dot products. The first bias part computes them from
// the rows of q and k, so the kernels need not know of them.
//
//   l2         s = -scale sum_c (q_c - k_c)^2         dq_c = -2 scale ds (q_c - k_c) = -dk_c
//   additive   s = scale sum_c v_c t_c                dq_c = scale ds v_c (1 - t_c^2) = dk_c
//              t_c = tanh(q_c + k_c)                  dv_c = scale ds t_c
#pragma once

#include "fovea/attention/bias/bias.h"
#include "fovea/attention/score/score.h"

namespace fovea::detail {

/// The bias part that computes such a score; no part for other scores.
template <class T>
Bias<T> pair_score(const Score<T>& score);

}  // namespace fovea::detail

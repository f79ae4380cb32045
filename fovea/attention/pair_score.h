// SPDX-License-Identifier: Apache-2.0
// Scores that are a sum over the columns of something else than products. They are made by the
// first part of the bias, which sees the rows of q and k: so the kernels know of none.
//
//   l2         s = -scale sum_c (q_c - k_c)^2         dq_c = -2 scale ds (q_c - k_c) = -dk_c
//   additive   s = scale sum_c v_c t_c                dq_c = scale ds v_c (1 - t_c^2) = dk_c
//              t_c = tanh(q_c + k_c)                  dv_c = scale ds t_c
#pragma once

#include "fovea/attention/attention.h"

namespace fovea {

/// Is the score of the call made by such a part?
template <class T>
bool has_pair_score(const Attention<T>& attention);

/// The same call, for rows of D values, whose first bias part makes the score; its scale is that of
/// the dot product which is not computed. The call must have been checked, and outlive it.
template <class T>
Attention<T> with_pair_score(const Attention<T>& attention, index D);

}  // namespace fovea

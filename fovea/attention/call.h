// SPDX-License-Identifier: Apache-2.0
// A call of attention: its parts, its inputs, its results and its sequences.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/attention/bias/bias.h"
#include "fovea/attention/dropout.h"
#include "fovea/attention/mask/mask.h"
#include "fovea/attention/observe/observe.h"
#include "fovea/attention/score/score.h"
#include "fovea/attention/values/values.h"
#include "fovea/base/few_numbers.h"
#include "fovea/base/precision.h"

namespace fovea {

/// Sequences of different lengths, one after another along the length axis, with B = 1: sequence n
/// is rows offsets[n] .. offsets[n+1]. [sequences + 1] each, ascending from 0 to T (to S for keys);
/// sequences may be empty. From vectors: `.packed = {offsets, offsets}`. Both empty: not packed.
/// Offsets together with masks of lengths are an error.
struct Packed {
  FewNumbers<std::int32_t> query_offsets = {};
  FewNumbers<std::int32_t> key_offsets = {};

  bool empty() const { return query_offsets.empty() && key_offsets.empty(); }
};

/// Which attention to compute, and what to observe of it. Parts view the caller's tables, masks,
/// gradients and results, which must outlive the call; lengths, offsets, and slopes and sinks that
/// are not learned are copied if they come as vectors (FewNumbers). The call throws Error(kShape)
/// for a part that does not fit it. T is float or double; double runs the same code, for gradient
/// checks.
template <class T>
struct Attention {
  Score<T> score = score::Dot{};
  Bias<T> bias = {};
  Mask mask = {};
  Norm norm = norm::Softmax{};
  Dropout dropout = {};
  Values<T> values = {};
  Observe<T> observe = {};
  Packed packed = {};
  Sink<T> sink = {};
  Rotary rotary = {};
};

/// T is that of the rows: float, double or BFloat16. With bfloat16, the parts and all that is
/// Wide<T> are float32.
template <class T>
struct AttentionInputs {
  View<const T> q;  ///< [B, T, H, D]
  View<const T> k;  ///< [B, S, G, D]
  View<const T> v;  ///< [B, S, G, Dv]

  AttentionSizes sizes() const {
    return {q.batch, q.length, k.length, q.heads, k.heads, q.width, v.width};
  }
};

template <class T>
struct AttentionOutputs {
  View<T> o;                      ///< [B, T, H, Dv]
  RowView<Wide<T>> lse = {};      ///< [B, H, T], natural log; optional; softmax's backward needs it
  RowView<Wide<T>> lse_low = {};  ///< [B, H, T], rounding error of lse; optional
  ScoreView<Wide<T>> weights = {};  ///< [B, H, T, S], before dropout; optional; T x S memory
};

/// The results of the forward, and the gradient of o. With scores in the hundreds, rounding lse to
/// float causes an error of 1e-5 in every weight; with lse_low the backward is as exact as one that
/// stores the weights. Without it, a row with |lse| > 1024 (2^39 for double) makes the call compute
/// q.k once more, and the lse of such rows is computed again from the keys of this call. So do not
/// pass an lse over more keys (as when the keys are split over several calls): it would be
/// replaced.
template <class T>
struct AttentionSaved {
  View<const T> o;                      ///< [B, T, H, Dv]
  RowView<const Wide<T>> lse;           ///< [B, H, T]; empty unless the norm is softmax
  View<const T> d_o;                    ///< [B, T, H, Dv]
  RowView<const Wide<T>> lse_low = {};  ///< [B, H, T]; optional
  RowView<const Wide<T>> d_lse = {};    ///< [B, H, T], gradient of lse; empty: 0
};

/// Every gradient is overwritten; rows of padding with 0. Leave one empty to skip its output.
template <class T>
struct AttentionGradients {
  View<T> dq = {};  ///< [B, T, H, D]
  View<T> dk = {};  ///< [B, S, G, D]
  View<T> dv = {};  ///< [B, S, G, Dv]
};

}  // namespace fovea

namespace fovea::detail {

/// Tells the parts that a call begins, once it has been checked.
template <class T>
void start_call(const Attention<T>& attention) {
  for (const auto& part : attention.mask.parts()) part->start_call();
  for (const auto& part : attention.bias.parts()) part->start_call();
}

/// The sequences of the call, cut to their lengths.
template <class T>
std::vector<Sequence> make_sequences(const Attention<Wide<T>>& attention,
                                     const AttentionInputs<T>& in);

/// The key/value head that query head h uses. H is a multiple of G.
inline index group_of(index h, index H, index G) { return h / (H / G); }
/// The first query head that uses key/value head g.
inline index first_head(index g, index H, index G) { return g * (H / G); }

/// How the rows of a head are normalised.
template <class T>
RowNorm<T> row_norm_of(const Attention<T>& attention, index head) {
  RowNorm<T> norm{.norm = attention.norm};
  if (!attention.sink.logits.empty()) norm.sink = attention.sink.logits[head];
  return norm;
}

/// Rows of o and lse that belong to no sequence: 0, -inf.
template <class T>
void clear_uncovered(const std::vector<Sequence>& sequences, const AttentionOutputs<T>& out);

/// Clears the rows of dq, dk and dv that belong to no sequence.
template <class T>
void clear_uncovered(const std::vector<Sequence>& sequences,
                     const AttentionGradients<T>& gradients);

}  // namespace fovea::detail

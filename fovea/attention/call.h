// SPDX-License-Identifier: Apache-2.0
// A call of attention: its parts, its inputs and its results.
#pragma once

#include <cstdint>

#include "fovea/attention/bias/bias.h"
#include "fovea/attention/dropout.h"
#include "fovea/attention/mask/mask.h"
#include "fovea/attention/observe/observe.h"
#include "fovea/attention/score/score.h"
#include "fovea/attention/values/values.h"
#include "fovea/base/bfloat16.h"

namespace fovea {

/// Sequences of different lengths, one after another along the length axis, with B = 1: sequence n
/// is rows offsets[n] .. offsets[n+1]. [sequences + 1] each, ascending from 0 to T (to S for keys);
/// sequences may be empty. From vectors: `.packed = {offsets, offsets}`. Both empty: not packed.
/// Offsets together with masks of lengths are an error.
struct Packed {
  Vec<const std::int32_t> query_offsets = {};
  Vec<const std::int32_t> key_offsets = {};

  bool empty() const { return query_offsets.empty() && key_offsets.empty(); }
};

/// Which attention to compute, and what to observe of it. Parts are views of the caller's memory,
/// which must outlive the call; the call throws Error(kShape) for a part that does not fit it. T is
/// float or double; double runs the same code, for gradient checks.
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

// SPDX-License-Identifier: Apache-2.0
// Attention: one operator with parts, fused forward and backward, for any mask and any bias.
//
//   o = dropout(normalise(mask(bias(score(q, k))))) (v + values)
//
// in this order: scale, bias and score functions, mask, normalise, dropout. Layout [B, T, H, D]:
// D contiguous, other strides free. Letters: B batch, T queries, S keys, H query heads, G key/value
// heads, D width of q and k, Dv of v. H is a multiple of G: key/value head 0 serves the first H / G
// query heads, and so on.
//
//   Attention<float> causal{.mask = mask::Causal() & mask::Window(64, 0)};
//   attention_forward(ctx, causal, {q, k, v}, {.o = o, .lse = lse});
//   attention_backward(ctx, causal, {q, k, v}, {o, lse, d_o}, {dq, dk, dv});
//
// No T x S matrix is stored, unless you ask for the weights. Tiles of which the mask keeps
// nothing are skipped. A row of any result has the same bits for any number of threads,
// batch, padding or packing; only the instruction set may change them. All functions are
// thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>

#include "fovea/attention/bias/alibi.h"
#include "fovea/attention/bias/bias.h"
#include "fovea/attention/bias/dense.h"
#include "fovea/attention/bias/shaw.h"
#include "fovea/attention/bias/softcap.h"
#include "fovea/attention/bias/t5.h"
#include "fovea/attention/lambda/of.h"
#include "fovea/attention/mask/band.h"
#include "fovea/attention/mask/dense.h"
#include "fovea/attention/mask/lengths.h"
#include "fovea/attention/mask/mask.h"
#include "fovea/attention/mask/segments.h"
#include "fovea/attention/mask/sparse.h"
#include "fovea/attention/mask/where.h"
#include "fovea/attention/norm.h"
#include "fovea/attention/observe/column_mass.h"
#include "fovea/attention/observe/dropout_keep.h"
#include "fovea/attention/observe/observe.h"
#include "fovea/attention/observe/rows.h"
#include "fovea/attention/observe/selected_rows.h"
#include "fovea/attention/observe/top_k.h"
#include "fovea/attention/score/score.h"
#include "fovea/attention/values/shaw.h"
#include "fovea/attention/values/values.h"
#include "fovea/attention/view.h"
#include "fovea/base/context.h"
#include "fovea/base/error.h"  // the exceptions

namespace fovea {

/// Dropout of the weights with inverted scaling. Its random bits are a function of (seed,
/// step, layer, number of the sequence, head, i, j). Nothing is stored: the backward
/// recomputes them.
struct Dropout {
  double probability = 0;
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t layer = 0;
  /// Number of each sequence of the call [B, or packed sequences]; empty: 0, 1, 2, ... If each
  /// sample has a fixed number, its result does not depend on the order of the batch.
  Vec<const std::uint64_t> samples = {};
};

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

template <class T>
struct AttentionInputs {
  View<const T> q;  ///< [B, T, H, D]
  View<const T> k;  ///< [B, S, G, D]
  View<const T> v;  ///< [B, S, G, Dv]
};

template <class T>
struct AttentionOutputs {
  View<T> o;                  ///< [B, T, H, Dv]
  RowView<T> lse = {};        ///< [B, H, T], natural log; optional; softmax's backward needs it
  RowView<T> lse_low = {};    ///< [B, H, T], rounding error of lse; optional
  ScoreView<T> weights = {};  ///< [B, H, T, S], before dropout; optional; T x S memory
};

/// The results of the forward, and the gradient of o. With scores in the hundreds, rounding lse to
/// float causes an error of 1e-5 in every weight; with lse_low the backward is as exact as one that
/// stores the weights. Without it, a row with |lse| > 1024 (2^39 for double) makes the call compute
/// q.k once more, and the lse of such rows is computed again from the keys of this call. So do not
/// pass an lse over more keys (as when the keys are split over several calls): it would be
/// replaced.
template <class T>
struct AttentionSaved {
  View<const T> o;                ///< [B, T, H, Dv]
  RowView<const T> lse;           ///< [B, H, T]; empty unless the norm is softmax
  View<const T> d_o;              ///< [B, T, H, Dv]
  RowView<const T> lse_low = {};  ///< [B, H, T]; optional
};

/// Every gradient is overwritten; rows of padding with 0. Leave one empty to skip its output.
template <class T>
struct AttentionGradients {
  View<T> dq = {};  ///< [B, T, H, D]
  View<T> dk = {};  ///< [B, S, G, D]
  View<T> dv = {};  ///< [B, S, G, Dv]
};

/// Computes o, and lse and weights unless empty. No output, observed ones included, may overlap an
/// input or another output: touched.h says which overlaps are found.
///
/// A query that keeps no key, and a padded query, has o = 0, weights 0 and lse = -inf (with a sink,
/// a query that keeps no key has the sink's logit). NaN or Inf
/// in a key, value or bias that is masked for a query never reaches that query's row; the same in
/// backward. Throws Error(kShape) that names the tensor, the axis and both sizes, and
/// Error(kOptionValue) for a number out of range or parts that do not combine.
template <class T>
void attention_forward(const Context& ctx, const Attention<T>& attention,
                       const AttentionInputs<T>& in, const AttentionOutputs<T>& out);

/// Computes dq, dk, dv, and the gradients of sink, bias and value parts that have room for them, in
/// one pass of five matrix products. `attention` and `in` are those of the forward. Throws what the
/// forward throws.
template <class T>
void attention_backward(const Context& ctx, const Attention<T>& attention,
                        const AttentionInputs<T>& in, const AttentionSaved<T>& saved,
                        const AttentionGradients<T>& gradients);

/// What a call would do.
struct AttentionPlan {
  std::string kernel;          ///< "fused float32", or "linear float32" (linear.h)
  std::string isa;             ///< such as "avx512"
  std::string score;           ///< such as "dot", or "cosine with rotary positions"
  std::string mask;            ///< such as "causal & key_lengths"
  std::string bias;            ///< such as "alibi"
  std::string values;          ///< such as "none"
  std::string observe;         ///< such as "entropy + maximum"
  std::string norm;            ///< such as "softmax", or "softmax with a sink"
  double dropout = 0;          ///< probability of dropping a weight
  index packed_sequences = 0;  ///< 0: the batch is not packed
  index tiles = 0;             ///< all tiles
  index tiles_kept = 0;        ///< of these, those computed
  index tiles_masked = 0;      ///< of these, masked score by score
  double kept_scores = 0;      ///< scores in the tiles computed
  /// FLOPs of the products: kept scores x 2 (D + Dv), and 2 D more to observe columns. For the
  /// linear kernel: those of its sums and of the diagonal blocks.
  double forward_flops = 0;
  double backward_flops = 0;  ///< kept scores x (6 D + 4 Dv); linear kernel as above
  double scratch_bytes = 0;   ///< beyond the tensors, of all threads; forward or backward
};
/// Computes nothing, and does not read q, k and v. Throws what the forward throws of `attention`
/// and `in`.
template <class T>
AttentionPlan attention_plan(const Context& ctx, const Attention<T>& attention,
                             const AttentionInputs<T>& in);

}  // namespace fovea

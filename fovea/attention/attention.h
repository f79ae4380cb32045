// SPDX-License-Identifier: Apache-2.0
// Attention: one operator with parts, forward and backward, fused, for any mask and any bias.
//
//   o = dropout(normalise(mask(bias(score(q, k))))) (v + values)
//
// in this order: scale, bias and score functions, mask, normalise, dropout. Layout [B, T, H, D]:
// D contiguous, other strides free. Letters: B batch, T queries, S keys, H query heads, G key/value
// heads (query head h uses floor(h G / H)), D width of q and k, Dv of v.
//
//   Attention<float> causal{.mask = mask::Causal() & mask::Window(64, 0)};
//   attention_forward(ctx, causal, {q, k, v}, {.o = o, .lse = lse});
//   attention_backward(ctx, causal, {q, k, v}, {o, lse, d_o}, {dq, dk, dv});
//
// Nothing of size T x S is ever stored; tiles that the mask keeps nothing of are never computed. A
// row of any result has the same bits for any number of threads, batch, padding or packing; only
// the instruction set may change them. Every function may be called from any number of threads at
// once.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>

#include "fovea/attention/bias/alibi.h"
#include "fovea/attention/bias/bias.h"
#include "fovea/attention/bias/dense.h"
#include "fovea/attention/bias/of.h"
#include "fovea/attention/bias/shaw.h"
#include "fovea/attention/bias/softcap.h"
#include "fovea/attention/bias/t5.h"
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
#include "fovea/attention/score.h"
#include "fovea/attention/values/shaw.h"
#include "fovea/attention/values/values.h"
#include "fovea/attention/view.h"
#include "fovea/base/context.h"
#include "fovea/base/error.h"  // what is thrown

namespace fovea {

/// Dropout of the weights with inverted scaling, as a function of where a weight stands:
/// (seed, step, layer, number of the sequence, head, i, j). Nothing is stored; backward recomputes
/// it.
struct Dropout {
  double probability = 0;
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t layer = 0;
  /// Number of each sequence of the call [B, or packed sequences]; empty: 0, 1, 2, ... Give the
  /// sample's own number, and the order of a batch changes nothing.
  Vec<const std::uint64_t> samples = {};
};

/// Sequences of different lengths, one after another along the length axis, with B = 1: sequence n
/// is rows offsets[n] .. offsets[n+1]. [sequences + 1] each, ascending from 0; empty sequences are
/// fine. Both empty: the batch is not packed. Lengths are then an error: the offsets say them.
struct Packed {
  Vec<const std::int32_t> query_offsets = {};
  Vec<const std::int32_t> key_offsets = {};

  bool empty() const { return query_offsets.empty() && key_offsets.empty(); }
};

/// What attention is to be computed, and what is to be seen of it. Parts are views of the caller's
/// memory, which must outlive the call. T is float or double; double goes through the same code,
/// for gradient checks.
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
  View<T> o;            ///< [B, T, H, Dv]
  RowView<T> lse = {};  ///< [B, H, T], natural logarithm; optional, backward needs it of softmax
  RowView<T> lse_low = {};    ///< [B, H, T], what rounding took from lse; optional
  ScoreView<T> weights = {};  ///< [B, H, T, S], before dropout; optional, costs what it weighs
};

/// What the forward left, and the gradient from above. With scores in the hundreds the rounding of
/// lse alone is an error of 1e-5 in every weight: with lse_low the backward is as exact as one that
/// keeps the weights.
template <class T>
struct AttentionSaved {
  View<const T> o;                ///< [B, T, H, Dv]
  RowView<const T> lse;           ///< [B, H, T]; empty unless the norm is softmax
  View<const T> d_o;              ///< [B, T, H, Dv]
  RowView<const T> lse_low = {};  ///< [B, H, T]; optional
};

/// Every gradient is overwritten, rows of padding with 0. One that is not wanted may be empty.
template <class T>
struct AttentionGradients {
  View<T> dq = {};  ///< [B, T, H, D]
  View<T> dk = {};  ///< [B, S, G, D]
  View<T> dv = {};  ///< [B, S, G, Dv]
};

/// Computes o, and lse and weights if asked. No output may overlap an input or another output
/// (observed ones included): touched.h says what is noticed.
///
/// A query that keeps no key, and a padded query, has o = 0, weights 0 and lse = -inf (with a sink,
/// a query that keeps no key has the sink's logit). NaN or Inf
/// in a key, value or bias that is masked for a query never reaches that query's row; the same in
/// backward. Throws Error(kShape) that names the tensor, the axis and both sizes.
template <class T>
void attention_forward(const Context& ctx, const Attention<T>& attention,
                       const AttentionInputs<T>& in, const AttentionOutputs<T>& out);

/// Computes dq, dk, dv, and the gradients that the sink, bias and value parts asked for, in one
/// pass of five products.
template <class T>
void attention_backward(const Context& ctx, const Attention<T>& attention,
                        const AttentionInputs<T>& in, const AttentionSaved<T>& saved,
                        const AttentionGradients<T>& gradients);

/// What a call would do: nothing is computed, and q, k and v are not read.
struct AttentionPlan {
  std::string kernel;      ///< "fused float32", or "linear float32": in O(n D Dv) (linear.h)
  std::string isa;         ///< such as "avx512"
  std::string score;       ///< such as "dot", or "cosine with rotary positions"
  std::string mask;        ///< such as "causal & key_lengths"
  std::string bias;        ///< such as "alibi"
  std::string values;      ///< such as "none"
  std::string observe;     ///< such as "entropy + maximum"
  std::string norm;        ///< such as "softmax", or "softmax with a sink"
  index tiles = 0;         ///< tiles of the whole rectangle
  index tiles_kept = 0;    ///< of these, computed
  index tiles_masked = 0;  ///< of these, looked at score by score
  double kept_scores = 0;  ///< scores in the tiles computed
  /// Of the products: kept scores x 2 (D + Dv), and 2 D for columns; in the linear order, those of
  /// the sums and of what meets one by one.
  double forward_flops = 0;
  double backward_flops = 0;  ///< kept scores x (6 D + 4 Dv); in the linear order as above
  double scratch_bytes = 0;   ///< beyond the tensors, forward or backward, the context's threads
};
template <class T>
AttentionPlan attention_plan(const Context& ctx, const Attention<T>& attention,
                             const AttentionInputs<T>& in);

}  // namespace fovea

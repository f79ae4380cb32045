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
//
// The headers to know, all included here:
//
//   a call           call.h  view.h  score/score.h  norm.h  dropout.h
//   its parts        mask/masks.h  bias/biases.h  values/shaw.h  observe/observers.h
//                    lambda/lambdas.h
//   parts to write   tile.h  mask/mask.h  bias/bias.h  values/values.h  observe/observe.h
//
// reference.h has the definition, in plain loops. What is in namespace fovea::detail is internal.
#pragma once

#include <string>

#include "fovea/attention/bias/biases.h"
#include "fovea/attention/call.h"
#include "fovea/attention/lambda/lambdas.h"
#include "fovea/attention/mask/masks.h"
#include "fovea/attention/observe/observers.h"
#include "fovea/attention/values/shaw.h"
#include "fovea/base/context.h"
#include "fovea/base/error.h"  // the exceptions

namespace fovea {

/// Computes o, and lse and weights unless empty. No output, observed ones included, may overlap an
/// input or another output: overlap.h says which overlaps are found.
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
/// one pass of five matrix products. `attention` and `in` are those of the forward. d_lse takes
/// part as ds_ij = p_ij (dp_ij - delta_i + d_lse_i); where lse is -infinity it has no effect.
/// Throws what the forward throws.
template <class T>
void attention_backward(const Context& ctx, const Attention<T>& attention,
                        const AttentionInputs<T>& in, const AttentionSaved<T>& saved,
                        const AttentionGradients<T>& gradients);

/// These calls take rows of bfloat16. Scores, weights, sums, lse, the numbers and gradients of all
/// parts are float32; o, dq, dk and dv are rounded once. Where the processor multiplies bfloat16
/// (has_bfloat16_products(), simd/isa.h), the products read q, k, v and dO as they are, and the
/// weights p and the gradients ds of scores rounded to bfloat16. Other calls are computed in
/// float32 from converted rows: on other processors, for scores other than the scaled dot product,
/// and by sums over keys (linear.h); attention_plan() says which. Keys whose rows are whole pairs
/// (D and the strides even) are read in place by the forward, on AMX only without gaps, or for at
/// most 32 queries.
void attention_forward(const Context& ctx, const Attention<float>& attention,
                       const AttentionInputs<BFloat16>& in, const AttentionOutputs<BFloat16>& out);
void attention_backward(const Context& ctx, const Attention<float>& attention,
                        const AttentionInputs<BFloat16>& in, const AttentionSaved<BFloat16>& saved,
                        const AttentionGradients<BFloat16>& gradients);

/// Whether a call of bfloat16 rows multiplies pairs of bfloat16 on this machine; otherwise it is
/// converted to float32.
bool multiplies_bfloat16(const Attention<float>& attention);

/// A description of how a call would be computed, and at what cost.
struct AttentionPlan {
  std::string kernel;          ///< "fused float32", "fused bfloat16 on AMX", "linear float32" ...
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
AttentionPlan attention_plan(const Context& ctx, const Attention<float>& attention,
                             const AttentionInputs<BFloat16>& in);

}  // namespace fovea

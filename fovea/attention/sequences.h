// SPDX-License-Identifier: Apache-2.0
// The sequences of a call: shared by the reference and the kernels.
#pragma once

#include <vector>

#include "fovea/attention/call.h"

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

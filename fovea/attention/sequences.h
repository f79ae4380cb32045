// SPDX-License-Identifier: Apache-2.0
// The sequences of a call, and its random numbers: shared by the reference and the kernels.
#pragma once

#include <vector>

#include "fovea/attention/attention.h"

namespace fovea {

/// The sequences of the call, cut to their lengths.
template <class T>
std::vector<Sequence> make_sequences(const Attention<T>& attention, const AttentionInputs<T>& in);

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

/// The probability p as a threshold for 16 random bits, and the remainder: 65536 p = threshold +
/// rest / 2^32. A weight is dropped where its bits are below the threshold; where they are equal to
/// it, 32 more bits decide. So the probability is exact to 2^-48, and scaling kept weights by 1 /
/// (1 - p) keeps their mean.
struct DropoutRule {
  std::uint32_t threshold = 0;
  std::uint32_t rest = 0;
  double keep_scale = 1;
  bool active() const { return threshold > 0 || rest > 0; }
};
DropoutRule dropout_rule(const Dropout& dropout);

/// Words that, with (i, j / 8), make the Philox counter and key of one sequence and head.
struct DropoutStream {
  std::uint32_t key[2];
  std::uint32_t counter[2];
};
DropoutStream dropout_stream(const Dropout& dropout, const Sequence& sequence, index head);

/// Sixteen random bits of score (i, j): the definition of attention dropout.
///   counter = (i, j / 8, stream.counter), key = stream.key; word (j % 8) / 2, half j % 2.
std::uint32_t dropout_bits(const DropoutStream& stream, index i, index j);

/// Is score (i, j) dropped?
bool drops(const DropoutRule& rule, const DropoutStream& stream, index i, index j);
/// The same, where its sixteen bits are the threshold: by the first word of the counter
/// (i, j, stream.counter[0], ~stream.counter[1]), below `rest`.
bool drops_tie(const DropoutRule& rule, const DropoutStream& stream, index i, index j);

}  // namespace fovea

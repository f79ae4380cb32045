// SPDX-License-Identifier: Apache-2.0
// Dropout of the weights, and its random numbers: shared by the reference and the kernels.
#pragma once

#include <cstdint>

#include "fovea/attention/tile.h"
#include "fovea/base/view.h"

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

}  // namespace fovea

namespace fovea::detail {

/// drops() where the sixteen bits are the threshold: by the first word of the counter
/// (i, j, stream.counter[0], ~stream.counter[1]), below `rest`.
bool drops_tie(const DropoutRule& rule, const DropoutStream& stream, index i, index j);

}  // namespace fovea::detail

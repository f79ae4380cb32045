// SPDX-License-Identifier: Apache-2.0
// The parts of the backward that do not depend on each other, and which of them may run at once.
#pragma once

#include <vector>

#include "fovea/attention/fused/backward_chunk.h"

namespace fovea::detail {

/// One sequence and group of heads.
struct BackwardUnit {
  const Sequence* sequence;
  index group;
  index first_head, last_head;  ///< query heads of the group: [first, last)
  index first_sums = 0;         ///< number of its first table of sums
  bool packed_together = true;  ///< queries are packed once, not by each chunk for itself

  index heads() const { return last_head - first_head; }
  /// Without keys there is one chunk too: it clears dq.
  index chunks() const {
    const index size = key_chunk(sequence->keys);
    return std::max<index>(1, (sequence->keys + size - 1) / size);
  }
};

struct BackwardUnits {
  std::vector<BackwardUnit> all;
  /// Units that share no entry of a gradient may run at once. Waves run one after another.
  std::vector<Span> waves;
};

/// For each head, units ascend with their sequences.
BackwardUnits make_units(const std::vector<Sequence>& sequences, index H, index G,
                         const SharedGradient& shared);

/// The gradients that any part of the bias shares between sequences or heads.
template <class T>
SharedGradient shared_gradient(const Bias<T>& bias) {
  SharedGradient all;
  for (const auto& part : bias.parts()) {
    const SharedGradient shared = part->shared_gradient();
    all.batch = all.batch || shared.batch;
    all.heads = all.heads || shared.heads;
  }
  return all;
}

}  // namespace fovea::detail

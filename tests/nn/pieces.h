// SPDX-License-Identifier: Apache-2.0
// A layer in generation against the same layer over all rows at once.
#pragma once

#include <algorithm>
#include <vector>

#include "fovea/nn/encoder.h"
#include "tests/nn/support.h"

namespace fovea {

/// x [N, columns] in pieces of 1, 2, 3 ... rows: the bits of all rows at once. After clear(),
/// again.
inline void expect_same_in_pieces(const EncoderLayer& layer, const std::vector<float>& x, index N) {
  const index columns = static_cast<index>(x.size()) / N;
  const auto rows = [&](Tape& t, index first, index end) {
    return t.constant(Rows<const float>(x.data() + first * columns, end - first, columns));
  };
  const auto whole = output_of([&](Tape& t) { return layer.forward(t, rows(t, 0, N), {{}}); });
  const auto session = layer.begin(N);
  for (int round = 0; round < 2; ++round) {
    std::vector<float> pieces;
    for (index first = 0, n = 1; first < N; first += n, ++n) {
      n = std::min(n, N - first);
      const auto piece =
          output_of([&](Tape& t) { return session->forward(t, rows(t, first, first + n)); });
      pieces.insert(pieces.end(), piece.begin(), piece.end());
    }
    ASSERT_EQ(pieces, whole) << "round " << round;
    session->clear();
  }
}

}  // namespace fovea

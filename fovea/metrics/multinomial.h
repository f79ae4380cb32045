// SPDX-License-Identifier: Apache-2.0
// Resamples of a set of examples: as many as there are, drawn with replacement.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/base/view.h"

namespace fovea::detail {

/// Uniform in [0, n), 1 <= n < 2^32, without bias, from one word as a rule (Lemire 2019, "Fast
/// random integer generation in an interval", algorithm 5).
std::uint32_t uniform_below(Random& random, std::uint32_t n);

/// How many of n >= 0 trials succeed, each with probability p in [0, 1]. If few are expected, by
/// inversion; else by BTRS of Hörmann 1993, "The generation of binomial random variates". Both are
/// exact.
index binomial(Random& random, index n, double p);

/// Examples in cells: those of a cell are alike for what is computed of a resample. So it is enough
/// to know how often each cell is drawn, and with few cells that is far less work than to draw each
/// example.
class Multinomial {
 public:
  /// cells[i] >= 0: how many examples are in cell i. The view must outlive this object.
  explicit Multinomial(Vec<const index> cells);

  index examples() const { return examples_; }
  /// How often each cell is drawn when examples() are drawn with replacement.
  void draw(Random& random, Vec<index> times) const;

 private:
  void draw_examples(Random& random, Vec<index> times) const;
  void draw_cells(Random& random, Vec<index> times) const;

  Vec<const index> cells_;
  index examples_ = 0;
  std::vector<std::uint32_t> cell_of_;  // of each example; empty if cells are drawn
};

}  // namespace fovea::detail

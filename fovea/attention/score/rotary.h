// SPDX-License-Identifier: Apache-2.0
// Rotary positions (Su et al. 2021): a row, turned pair by pair.
#pragma once

#include <vector>

#include "fovea/attention/score/score.h"
#include "fovea/base/context.h"

namespace fovea::detail {

/// Cosines and sines of the angles at positions [first, last].
template <class T>
class RotaryTable {
 public:
  RotaryTable() = default;  // rotates nothing
  RotaryTable(const Context& ctx, const Rotary& rotary, index D, index first, index last);

  bool empty() const { return cosines_.empty(); }
  /// to = row, rotated. They may be the same.
  void turn(const T* row, index position, T* to) const { turn_by(row, position, T{1}, to); }
  /// The transpose of turn().
  void turn_back(const T* row, index position, T* to) const { turn_by(row, position, T{-1}, to); }

 private:
  void turn_by(const T* row, index position, T sign, T* to) const;

  // Turns a row by the angles of its position, times sign.
  void (*turn_row_)(const T* row, const T* cosines, const T* sines, T sign, index half,
                    T* to) = nullptr;
  index half_ = 0;                  // D / 2
  index first_ = 0;                 // position
  std::vector<T> cosines_, sines_;  // [positions][half]
};

}  // namespace fovea::detail

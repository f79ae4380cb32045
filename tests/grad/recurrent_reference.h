// SPDX-License-Identifier: Apache-2.0
// The formulas of recurrent layers in plain loops, over the three sequences of op_references.h.
#pragma once

#include "fovea/kernel/recurrent.h"
#include "tests/grad/op_references.h"

namespace fovea {

/// The parameters of one direction of a layer; empty: left out.
template <class T>
struct PlainRecurrent {
  RecurrentKind kind;
  Rows<const T> x, weight_ih, weight_hh, bias, bias_hn;

  index H() const { return weight_hh.columns; }
  T input(index n, index gate) const {
    T sum = T(0);
    for (index k = 0; k < x.columns; ++k) sum += x[n][k] * weight_ih[gate][k];
    return sum;
  }
  T bias_of(index gate) const { return bias.data == nullptr ? T(0) : bias[0][gate]; }
  T product(const std::vector<T>& h, index gate) const {
    T sum = T(0);
    for (index k = 0; k < H(); ++k) sum += h[static_cast<std::size_t>(k)] * weight_hh[gate][k];
    return sum;
  }
  static T sigmoid(T v) {
    using std::exp;
    return T(1) / (T(1) + exp(-v));
  }

  /// Column c of row n, and of its cell, from h and c of the row before.
  struct Cell {
    T hidden, cell;
  };
  Cell step(index n, index c, const std::vector<T>& h, const std::vector<T>& cells) const {
    using std::tanh;
    const auto at = static_cast<std::size_t>(c);
    const auto sum = [&](index gate) {
      const index g = gate * H() + c;
      return input(n, g) + bias_of(g) + product(h, g);
    };
    if (kind == RecurrentKind::kRnn) return {tanh(sum(0)), T(0)};
    if (kind == RecurrentKind::kSru) return sru_step(n, c, cells[at]);
    if (kind == RecurrentKind::kGru) {
      const T r = sigmoid(sum(0)), z = sigmoid(sum(1));
      const index g = 2 * H() + c;
      const T extra = bias_hn.data == nullptr ? T(0) : bias_hn[0][c];
      const T candidate = tanh(input(n, g) + bias_of(g) + r * (product(h, g) + extra));
      return {(T(1) - z) * candidate + z * h[at], T(0)};
    }
    const T cell = sigmoid(sum(1)) * cells[at] + sigmoid(sum(0)) * tanh(sum(2));
    return {sigmoid(sum(3)) * tanh(cell), cell};
  }
  Cell sru_step(index n, index c, T before) const {
    const T f = sigmoid(input(n, H() + c) + weight_hh[0][c] * before + bias_of(c));
    const T r = sigmoid(input(n, 2 * H() + c) + weight_hh[1][c] * before + bias_of(H() + c));
    const T highway = x.columns == H() ? x[n][c] : input(n, 3 * H() + c);
    const T cell = f * before + (T(1) - f) * input(n, c);
    return {r * cell + (T(1) - r) * highway, cell};
  }

  /// y [N, H]; `reverse`: from the last row of each sequence to the first.
  void run(bool reverse, Rows<T> y) const {
    for (std::size_t s = 0; s < 3; ++s) {
      std::vector<T> h(static_cast<std::size_t>(H()), T(0)), cells = h;
      for (index k = kOffsets[s]; k < kOffsets[s + 1]; ++k) {
        const index n = reverse ? kOffsets[s] + kOffsets[s + 1] - 1 - k : k;
        std::vector<T> next_h = h, next_cells = cells;
        for (index c = 0; c < H(); ++c) {
          const Cell cell = step(n, c, h, cells);
          y[n][c] = next_h[static_cast<std::size_t>(c)] = cell.hidden;
          next_cells[static_cast<std::size_t>(c)] = cell.cell;
        }
        h = next_h;
        cells = next_cells;
      }
    }
  }
};

/// in: x; then for each direction W_ih, W_hh and, as far as `per_direction` says, b and b_hn.
template <RecurrentKind kind, std::size_t per_direction, std::size_t directions = 1>
struct RecurrentFormula {
  template <class T>
  static void run(Matrices<T> in, Rows<T> y) {
    const index H = y.columns / static_cast<index>(directions);
    for (std::size_t d = 0; d < directions; ++d) {
      const auto operand = [&](std::size_t i) {
        return i < per_direction ? in[1 + d * per_direction + i] : Rows<const T>();
      };
      const PlainRecurrent<T> layer{kind, in[0], operand(0), operand(1), operand(2), operand(3)};
      const index begin = static_cast<index>(d) * H;
      layer.run(d == 1, y.columns_slice(begin, begin + H));
    }
  }
};

}  // namespace fovea

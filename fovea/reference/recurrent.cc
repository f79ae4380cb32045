// SPDX-License-Identifier: Apache-2.0
#include "fovea/reference/recurrent.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fovea::reference {

namespace {

template <class T>
T sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

// The rows of each sequence in the order of time.
template <class F>
void for_each_sequence(Vec<const std::int32_t> offsets, TimeDirection direction, F&& f) {
  for (index s = 0; s + 1 < offsets.size; ++s) {
    std::vector<index> rows;
    for (index n = offsets[s]; n < offsets[s + 1]; ++n) rows.push_back(n);
    if (direction == TimeDirection::kReverse) std::reverse(rows.begin(), rows.end());
    f(s, rows);
  }
}

// Value c of the row before, where there is one; else of the state before the first step, or 0.
template <class T>
T before(Rows<const T> rows, index previous, Rows<const T> first, index s, index c) {
  if (previous >= 0) return rows[previous][c];
  return first.data == nullptr ? T{0} : first[s][c];
}

// The cell of one row, from W_ih x + b and `product`, W_hh h of the row before.
template <class T>
void cell_forward(const RecurrentRun<T>& run, index n, index previous, index s,
                  const std::vector<T>& product) {
  const index H = run.hidden.columns;
  for (index c = 0; c < H; ++c) {
    T* const gates = run.gates[n];
    const auto sum = [&](index g) {
      return gates[g * H + c] + product[static_cast<std::size_t>(g * H + c)];
    };
    if (run.kind == RecurrentKind::kRnn) {
      run.hidden[n][c] = std::tanh(sum(0));
    } else if (run.kind == RecurrentKind::kGru) {
      const T r = sigmoid(sum(0)), z = sigmoid(sum(1));
      const T bias = run.bias_hn.empty() ? T{0} : run.bias_hn[c];
      const T hn = product[static_cast<std::size_t>(2 * H + c)] + bias;
      const T nn = std::tanh(gates[2 * H + c] + r * hn);
      const T h = before<T>(run.hidden, previous, run.first_hidden, s, c);
      run.hidden[n][c] = (1 - z) * nn + z * h;
      gates[c] = r, gates[H + c] = z, gates[2 * H + c] = nn, gates[3 * H + c] = hn;
    } else {
      const T i = sigmoid(sum(0)), f = sigmoid(sum(1)), g = std::tanh(sum(2)), o = sigmoid(sum(3));
      const T cell = f * before<T>(run.cells, previous, run.first_cell, s, c) + i * g;
      run.cells[n][c] = cell;
      run.cell_tanh[n][c] = std::tanh(cell);
      run.hidden[n][c] = o * std::tanh(cell);
      gates[c] = i, gates[H + c] = f, gates[2 * H + c] = g, gates[3 * H + c] = o;
    }
  }
}

// The gates' gradients of one row from dh; dcell carries what the step after gives beside its
// product: of the LSTM dc, of the GRU its part of dh.
template <class T>
void cell_backward(const RecurrentRun<T>& run, index n, index previous, const std::vector<T>& dhs,
                   std::vector<T>& carry) {
  const index H = run.hidden.columns;
  for (index c = 0; c < H; ++c) {
    T* const gates = run.gates[n];
    T& kept = carry[static_cast<std::size_t>(c)];
    T dh = dhs[static_cast<std::size_t>(c)];
    if (run.kind == RecurrentKind::kRnn) {
      gates[c] = dh * (1 - run.hidden[n][c] * run.hidden[n][c]);
    } else if (run.kind == RecurrentKind::kGru) {
      dh += kept;
      const T r = gates[c], z = gates[H + c], nn = gates[2 * H + c], hn = gates[3 * H + c];
      const T h = before<T>(run.hidden, previous, {}, 0, c);
      const T dn = dh * (1 - z) * (1 - nn * nn);
      gates[c] = dn * hn * r * (1 - r);
      gates[H + c] = dh * (h - nn) * z * (1 - z);
      gates[2 * H + c] = dn;
      gates[3 * H + c] = dn * r;
      kept = dh * z;
    } else {
      const T i = gates[c], f = gates[H + c], g = gates[2 * H + c], o = gates[3 * H + c];
      const T tanh = run.cell_tanh[n][c];
      const T dc = dh * o * (1 - tanh * tanh) + kept;
      gates[c] = dc * g * i * (1 - i);
      gates[H + c] = dc * before<T>(run.cells, previous, {}, 0, c) * f * (1 - f);
      gates[2 * H + c] = dc * i * (1 - g * g);
      gates[3 * H + c] = dh * tanh * o * (1 - o);
      kept = dc * f;
    }
  }
}

// The column of gates that belongs to row k of W_hh: W_hn's is in the fourth block.
template <class T>
index gate_column(const RecurrentRun<T>& run, index k) {
  const index H = run.hidden.columns;
  return run.kind == RecurrentKind::kGru && k >= 2 * H ? k + H : k;
}

}  // namespace

template <class T>
void recurrent_forward(const RecurrentRun<T>& run) {
  const index H = run.hidden.columns;
  for_each_sequence(run.offsets, run.direction, [&](index s, const std::vector<index>& rows) {
    index previous = -1;
    for (const index n : rows) {
      std::vector<T> product(static_cast<std::size_t>(run.weight.rows));
      for (index g = 0; g < run.weight.rows; ++g) {
        T& sum = product[static_cast<std::size_t>(g)];
        for (index k = 0; k < H; ++k) {
          sum += run.weight[g][k] * before<T>(run.hidden, previous, run.first_hidden, s, k);
        }
      }
      cell_forward(run, n, previous, s, product);
      previous = n;
    }
  });
}

template <class T>
void recurrent_backward(const RecurrentGradient<T>& gradient) {
  const RecurrentRun<T>& run = gradient.run;
  const auto H = static_cast<std::size_t>(run.hidden.columns);
  for_each_sequence(run.offsets, run.direction, [&](index, const std::vector<index>& rows) {
    std::vector<T> carry(H);
    for (std::size_t at = rows.size(); at-- > 0;) {
      std::vector<T> dh(gradient.dy[rows[at]], gradient.dy[rows[at]] + H);
      if (at + 1 < rows.size()) {
        const T* const after = run.gates[rows[at + 1]];
        for (std::size_t c = 0; c < H; ++c) {
          for (index k = 0; k < run.weight.rows; ++k) {
            dh[c] += after[gate_column(run, k)] * run.weight[k][static_cast<index>(c)];
          }
        }
      }
      cell_backward(run, rows[at], at > 0 ? rows[at - 1] : -1, dh, carry);
    }
  });
}

template <class T>
void sru_forward(const SruRun<T>& run) {
  const index H = run.hidden.columns;
  const auto bias = [&](index c) { return run.bias.empty() ? T{0} : run.bias[c]; };
  for_each_sequence(run.offsets, run.direction, [&](index s, const std::vector<index>& rows) {
    index previous = -1;
    for (const index n : rows) {
      T* const gates = run.gates[n];
      for (index c = 0; c < H; ++c) {
        const T cell = before<T>(run.cells, previous, run.first_cell, s, c);
        const T f = sigmoid(gates[H + c] + run.vectors[0][c] * cell + bias(c));
        const T r = sigmoid(gates[2 * H + c] + run.vectors[1][c] * cell + bias(H + c));
        const T x = run.highway.columns == 0 ? gates[3 * H + c] : run.highway[n][c];
        run.cells[n][c] = f * cell + (1 - f) * gates[c];
        run.hidden[n][c] = r * run.cells[n][c] + (1 - r) * x;
        gates[H + c] = f;
        gates[2 * H + c] = r;
      }
      previous = n;
    }
  });
}

template <class T>
void sru_backward(const SruGradient<T>& gradient) {
  const SruRun<T>& run = gradient.run;
  const index H = run.hidden.columns;
  for (index v = 0; v < 2; ++v) std::fill_n(gradient.dvectors[v], H, T{0});
  for_each_sequence(run.offsets, run.direction, [&](index, const std::vector<index>& rows) {
    std::vector<T> carry(static_cast<std::size_t>(H));
    for (std::size_t at = rows.size(); at-- > 0;) {
      const index n = rows[at];
      T* const gates = run.gates[n];
      for (index c = 0; c < H; ++c) {
        const T u = gates[c], f = gates[H + c], r = gates[2 * H + c], dh = gradient.dy[n][c];
        const T x = run.highway.columns == 0 ? gates[3 * H + c] : run.highway[n][c];
        const T cell = at > 0 ? run.cells[rows[at - 1]][c] : T{0};
        T& kept = carry[static_cast<std::size_t>(c)];
        const T dr = dh * (run.cells[n][c] - x) * r * (1 - r);
        const T dc = dh * r + kept;
        const T df = dc * (cell - u) * f * (1 - f);
        kept = dc * f + run.vectors[0][c] * df + run.vectors[1][c] * dr;
        gradient.dvectors[0][c] += df * cell;
        gradient.dvectors[1][c] += dr * cell;
        gates[c] = dc * (1 - f);
        gates[H + c] = df;
        gates[2 * H + c] = dr;
        const T dx = dh * (1 - r);
        if (run.highway.columns == 0) {
          gates[3 * H + c] = dx;
        } else if (gradient.dhighway.data != nullptr) {
          T& to = gradient.dhighway[n][c];
          to = gradient.store_dhighway == Store::kAdd ? to + dx : dx;
        }
      }
    }
  });
}

#define FOVEA_INSTANTIATE(T)                                     \
  template void recurrent_forward(const RecurrentRun<T>&);       \
  template void recurrent_backward(const RecurrentGradient<T>&); \
  template void sru_forward(const SruRun<T>&);                   \
  template void sru_backward(const SruGradient<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::reference

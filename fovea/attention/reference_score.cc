// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/reference_score.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace fovea::detail {

namespace {

template <class T>
T dot(const T* a, const T* b, index n) {
  T sum = 0;
  for (index c = 0; c < n; ++c) sum += a[c] * b[c];
  return sum;
}

// In double: squares of floats neither overflow nor vanish in it.
template <class T>
double length_of(Vec<const T> row) {
  double square = 0;
  for (const T x : row) square += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(square);
}

// u = r / |r|, and 0 for 0.
template <class T>
std::vector<T> unit(Vec<const T> row) {
  const double length = length_of(row);
  std::vector<T> to(row.begin(), row.end());
  for (T& x : to) x = length == 0 ? T{0} : static_cast<T>(static_cast<double>(x) / length);
  return to;
}

// dr = (du - (du.u) u) / |r|. Adds nothing where du is 0, whatever the row holds.
template <class T>
void pull_unit(Vec<const T> row, const std::vector<T>& dunit, Vec<T> drow) {
  const double length = length_of(row);
  if (length == 0 || std::all_of(dunit.begin(), dunit.end(), [](T x) { return x == T{0}; })) return;
  double along = 0;
  for (index c = 0; c < row.size; ++c) {
    along += static_cast<double>(dunit[static_cast<std::size_t>(c)]) *
             (static_cast<double>(row[c]) / length);
  }
  for (index c = 0; c < row.size; ++c) {
    const double across = static_cast<double>(dunit[static_cast<std::size_t>(c)]) -
                          along * (static_cast<double>(row[c]) / length);
    drow[c] += static_cast<T>(across / length);
  }
}

// s = scale q.k
template <class T>
T value(const score::Dot&, index, const ScoreRows<T>& rows) {
  return rows.scale * dot(rows.q.data, rows.k.data, rows.q.size);
}
template <class T>
void pull(const score::Dot&, index, const ScoreRows<T>& rows, T ds, const ScoreGradients<T>& to) {
  const T scaled = rows.scale * ds;
  for (index c = 0; c < rows.q.size; ++c) {
    to.dq[c] += scaled * rows.k[c];
    to.dk[c] += scaled * rows.q[c];
  }
}

// s = scale (q / |q|).(k / |k|)
template <class T>
T value(const score::Cosine&, index, const ScoreRows<T>& rows) {
  return rows.scale * dot(unit(rows.q).data(), unit(rows.k).data(), rows.q.size);
}
template <class T>
void pull(const score::Cosine&, index, const ScoreRows<T>& rows, T ds,
          const ScoreGradients<T>& to) {
  const T scaled = rows.scale * ds;
  std::vector<T> dq = unit(rows.k), dk = unit(rows.q);
  for (T& x : dq) x *= scaled;
  for (T& x : dk) x *= scaled;
  pull_unit(rows.q, dq, to.dq);
  pull_unit(rows.k, dk, to.dk);
}

// s = scale w.[q; k]
template <class T>
T value(const score::Concat<T>& concat, index head, const ScoreRows<T>& rows) {
  const index D = rows.q.size;
  const T* const w = concat.w[head];
  T sum = 0;
  for (index c = 0; c < D; ++c) sum += w[c] * rows.q[c];
  for (index c = 0; c < D; ++c) sum += w[D + c] * rows.k[c];
  return rows.scale * sum;
}
template <class T>
void pull(const score::Concat<T>& concat, index head, const ScoreRows<T>& rows, T ds,
          const ScoreGradients<T>& to) {
  const T scaled = rows.scale * ds;
  const index D = rows.q.size;
  const T* const w = concat.w[head];
  for (index c = 0; c < D; ++c) {
    to.dq[c] += scaled * w[c];
    to.dk[c] += scaled * w[D + c];
  }
  // No gradient: the rows may hold NaN.
  if (to.parameters == nullptr || scaled == T{0}) return;
  for (index c = 0; c < D; ++c) {
    to.parameters[c] += static_cast<double>(scaled * rows.q[c]);
    to.parameters[D + c] += static_cast<double>(scaled * rows.k[c]);
  }
}

// s = -scale sum_c (q_c - k_c)^2
template <class T>
T value(const score::L2&, index, const ScoreRows<T>& rows) {
  T sum = 0;
  for (index c = 0; c < rows.q.size; ++c) {
    const T difference = rows.q[c] - rows.k[c];
    sum += difference * difference;
  }
  return -rows.scale * sum;
}
template <class T>
void pull(const score::L2&, index, const ScoreRows<T>& rows, T ds, const ScoreGradients<T>& to) {
  if (ds == T{0}) return;  // the rows may hold NaN
  for (index c = 0; c < rows.q.size; ++c) {
    const T d = 2 * rows.scale * ds * (rows.q[c] - rows.k[c]);
    to.dq[c] -= d;
    to.dk[c] += d;
  }
}

// s = scale sum_c v_c tanh(q_c + k_c)
template <class T>
T value(const score::Additive<T>& additive, index head, const ScoreRows<T>& rows) {
  T sum = 0;
  for (index c = 0; c < rows.q.size; ++c) {
    sum += additive.v[head][c] * std::tanh(rows.q[c] + rows.k[c]);
  }
  return rows.scale * sum;
}
template <class T>
void pull(const score::Additive<T>& additive, index head, const ScoreRows<T>& rows, T ds,
          const ScoreGradients<T>& to) {
  if (ds == T{0}) return;  // the rows may hold NaN
  const T scaled = rows.scale * ds;
  for (index c = 0; c < rows.q.size; ++c) {
    const T t = std::tanh(rows.q[c] + rows.k[c]);
    const T d = scaled * additive.v[head][c] * (1 - t * t);
    to.dq[c] += d;
    to.dk[c] += d;
    if (to.parameters != nullptr) to.parameters[c] += static_cast<double>(scaled * t);
  }
}

// Dot, l2 and additive.
template <class One, class T>
SeenRows<T> see(const One&, index, const ScoreRows<T>&) {
  return {};
}
template <class One, class T>
void pull_seen(const One&, index, const ScoreRows<T>&, const SeenRows<T>&,
               const ScoreGradients<T>&) {}

template <class T>
SeenRows<T> see(const score::Cosine&, index, const ScoreRows<T>& rows) {
  return {unit(rows.q), unit(rows.k)};
}
template <class T>
void pull_seen(const score::Cosine&, index, const ScoreRows<T>& rows, const SeenRows<T>& dseen,
               const ScoreGradients<T>& to) {
  pull_unit(rows.q, dseen.q, to.dq);
  pull_unit(rows.k, dseen.k, to.dk);
}

template <class T>
SeenRows<T> see(const score::Concat<T>& concat, index head, const ScoreRows<T>& rows) {
  const index D = rows.q.size;
  const T* const w = concat.w[head];
  SeenRows<T> seen{{dot(w, rows.q.data, D)}, {T{1}}};
  seen.q.insert(seen.q.end(), w + D, w + 2 * D);
  seen.k.insert(seen.k.end(), rows.k.begin(), rows.k.end());
  return seen;
}
template <class T>
void pull_seen(const score::Concat<T>& concat, index head, const ScoreRows<T>& rows,
               const SeenRows<T>& dseen, const ScoreGradients<T>& to) {
  const index D = rows.q.size;
  const T first = dseen.q[0];
  for (index c = 0; c < D; ++c) {
    const auto next = static_cast<std::size_t>(c + 1);
    to.dq[c] += first * concat.w[head][c];
    to.dk[c] += dseen.k[next];
    if (to.parameters == nullptr) continue;
    if (first != T{0}) to.parameters[c] += static_cast<double>(first * rows.q[c]);
    to.parameters[D + c] += static_cast<double>(dseen.q[next]);
  }
}

// Where the gradient of a score's weights goes.
template <class T>
Rows<T> weight_gradient(const Score<T>& score) {
  if (const auto* concat = std::get_if<score::Concat<T>>(&score)) return concat->dw;
  if (const auto* additive = std::get_if<score::Additive<T>>(&score)) return additive->dv;
  return {};
}

template <class T>
View<T> room(const View<const T>& of, std::vector<T>& memory) {
  memory.resize(static_cast<std::size_t>(of.batch * of.length * of.heads * of.width));
  return View<T>::contiguous(memory.data(), of.batch, of.length, of.heads, of.width);
}

// Calls f(batch row, row, head, position) for the rows of every sequence; never for an empty view.
template <class T, class F>
void for_each_query(const std::vector<Sequence>& sequences, const View<T>& q, F&& f) {
  for (const Sequence& s : sequences) {
    for (index i = 0; !q.empty() && i < s.queries; ++i) {
      for (index h = 0; h < q.heads; ++h) f(s.batch, s.query_row + i, h, s.position(i));
    }
  }
}
template <class T, class F>
void for_each_key(const std::vector<Sequence>& sequences, const View<T>& k, F&& f) {
  for (const Sequence& s : sequences) {
    for (index j = 0; !k.empty() && j < s.keys; ++j) {
      for (index g = 0; g < k.heads; ++g) f(s.batch, s.key_row + j, g, j);
    }
  }
}

}  // namespace

template <class T>
void rotate(const Rotary& rotary, index place, Vec<T> row) {
  const index D = row.size, half = D / 2;
  const bool halves = rotary.pairs == RotaryPairs::kHalves;
  for (index c = 0; c < half; ++c) {
    const double power = 2 * static_cast<double>(c) / static_cast<double>(D);
    const double slower =
        rotary.divisors.empty() ? 1 : rotary.divisors[static_cast<std::size_t>(c)];
    const double angle = static_cast<double>(place) / (std::pow(rotary.base, power) * slower);
    const T cosine = static_cast<T>(rotary.amplitude * std::cos(angle));
    const T sine = static_cast<T>(rotary.amplitude * std::sin(angle));
    T& one = row[halves ? c : 2 * c];
    T& other = row[halves ? c + half : 2 * c + 1];
    const T x = one, y = other;
    one = x * cosine - y * sine;
    other = x * sine + y * cosine;
  }
}

template <class T>
RotatedRows<T>::RotatedRows(const Rotary& rotary, const std::vector<Sequence>& sequences,
                            const AttentionInputs<T>& in, Factors factors)
    : in_(in) {
  if (rotary.pairs == RotaryPairs::kNone) return;
  const View<T> q = room(in.q, q_), k = room(in.k, k_);
  const auto make = [&](const T* from, index position, Vec<T> to) {
    std::copy_n(from, to.size, to.data);
    rotate<T>(rotary, rotary.first + position, to);
    for (index c = 0; c < to.size; ++c) to[c] = as_factor(to[c], factors);
  };
  for_each_query(sequences, q, [&](index b, index row, index h, index position) {
    make(in.q.row(b, row, h), position, {q.row(b, row, h), q.width});
  });
  for_each_key(sequences, k, [&](index b, index row, index g, index position) {
    make(in.k.row(b, row, g), position, {k.row(b, row, g), k.width});
  });
  in_.q = q;
  in_.k = k;
}

template <class T>
void rotate_back(const Rotary& rotary, const std::vector<Sequence>& sequences, const View<T>& dq,
                 const View<T>& dk, Factors factors) {
  if (rotary.pairs == RotaryPairs::kNone) return;
  const auto turn_back = [&](index position, Vec<T> row) {
    for (index c = 0; c < row.size; ++c) row[c] = as_factor(row[c], factors);
    rotate<T>(rotary, -(rotary.first + position), row);
  };
  for_each_query(sequences, dq, [&](index b, index row, index h, index position) {
    turn_back(position, {dq.row(b, row, h), dq.width});
  });
  for_each_key(sequences, dk, [&](index b, index row, index g, index position) {
    turn_back(position, {dk.row(b, row, g), dk.width});
  });
}

template <class T>
T reference_score(const Score<T>& score, index head, const ScoreRows<T>& rows) {
  return std::visit([&](const auto& one) { return value(one, head, rows); }, score);
}

template <class T>
void pull_reference_score(const Score<T>& score, index head, const ScoreRows<T>& rows, T dscore,
                          const ScoreGradients<T>& gradients) {
  std::visit([&](const auto& one) { pull(one, head, rows, dscore, gradients); }, score);
}

template <class T>
SeenRows<T> seen_rows(const Score<T>& score, index head, const ScoreRows<T>& rows) {
  return std::visit([&](const auto& one) { return see(one, head, rows); }, score);
}

template <class T>
void pull_seen_rows(const Score<T>& score, index head, const ScoreRows<T>& rows,
                    const SeenRows<T>& dseen, const ScoreGradients<T>& gradients) {
  std::visit([&](const auto& one) { pull_seen(one, head, rows, dseen, gradients); }, score);
}

template <class T>
index score_gradient_size(const Score<T>& score) {
  const Rows<T> to = weight_gradient(score);
  return to.data == nullptr ? 0 : to.columns;
}

template <class T>
void store_score_gradient(const Score<T>& score, const std::vector<double>& sums) {
  const Rows<T> to = weight_gradient(score);
  if (to.data == nullptr) return;
  auto next = sums.begin();
  for (index h = 0; h < to.rows; ++h) {
    for (index c = 0; c < to.columns; ++c) to[h][c] = static_cast<T>(*next++);
  }
}

#define FOVEA_INSTANTIATE(T)                                                                    \
  template void rotate(const Rotary&, index, Vec<T>);                                           \
  template class RotatedRows<T>;                                                                \
  template void rotate_back(const Rotary&, const std::vector<Sequence>&, const View<T>&,        \
                            const View<T>&, Factors);                                           \
  template T reference_score(const Score<T>&, index, const ScoreRows<T>&);                      \
  template void pull_reference_score(const Score<T>&, index, const ScoreRows<T>&, T,            \
                                     const ScoreGradients<T>&);                                 \
  template SeenRows<T> seen_rows(const Score<T>&, index, const ScoreRows<T>&);                  \
  template void pull_seen_rows(const Score<T>&, index, const ScoreRows<T>&, const SeenRows<T>&, \
                               const ScoreGradients<T>&);                                       \
  template index score_gradient_size(const Score<T>&);                                          \
  template void store_score_gradient(const Score<T>&, const std::vector<double>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail

// SPDX-License-Identifier: Apache-2.0
#include "fovea/reference/crf.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace fovea::reference {

namespace {

template <class T>
constexpr T kNone = -std::numeric_limits<T>::infinity();

template <class T>
T log_sum(const std::vector<T>& scores) {
  const T most = *std::max_element(scores.begin(), scores.end());
  if (most == kNone<T>) return most;
  T sum = 0;
  for (const T score : scores) sum += std::exp(score - most);
  return most + std::log(sum);
}

/// The sums over the paths of one sequence up to a row, and behind it, as logarithms.
template <class T>
class Chain {
 public:
  Chain(const CrfScores<T>& scores, Rows<const T> x)
      : scores_(scores),
        x_(x),
        before_(static_cast<std::size_t>(x.rows), row_of_none()),
        behind_(before_) {
    for (index n = 0; n < x.rows; ++n)
      for (index b = 0; b < K(); ++b) {
        std::vector<T> terms;
        for (index a = 0; a < K() && n > 0; ++a) {
          terms.push_back(before(n - 1, a) + transition(a, b));
        }
        before(n, b) = (n == 0 ? start(b) : log_sum(terms)) + x[n][b];
      }
    for (index n = x.rows - 1; n >= 0; --n)
      for (index a = 0; a < K(); ++a) {
        std::vector<T> terms;
        for (index b = 0; b < K() && n + 1 < x.rows; ++b) {
          terms.push_back(transition(a, b) + x[n + 1][b] + behind(n + 1, b));
        }
        behind(n, a) = n + 1 == x.rows ? end(a) : log_sum(terms);
      }
    std::vector<T> all;
    for (index k = 0; k < K(); ++k) all.push_back(before(x.rows - 1, k) + end(k));
    log_z = log_sum(all);
  }

  T log_z = 0;

  T marginal(index n, index k) { return std::exp(before(n, k) + behind(n, k) - log_z); }
  /// The probability of tag a in row n - 1 and b in row n.
  T pair(index n, index a, index b) {
    return std::exp(before(n - 1, a) + transition(a, b) + x_[n][b] + behind(n, b) - log_z);
  }

  T start(index k) const { return allowed(scores_.allowed.start, k) ? scores_.start[k] : kNone<T>; }
  T end(index k) const { return allowed(scores_.allowed.end, k) ? scores_.end[k] : kNone<T>; }
  T transition(index a, index b) const {
    return allowed(scores_.allowed.transitions, a * K() + b) ? scores_.transitions[a][b] : kNone<T>;
  }

 private:
  index K() const { return x_.columns; }
  std::vector<T> row_of_none() const {
    return std::vector<T>(static_cast<std::size_t>(x_.columns), kNone<T>);
  }
  static bool allowed(Vec<const std::uint8_t> flags, index i) {
    return flags.empty() || flags[i] != 0;
  }
  T& before(index n, index k) {
    return before_[static_cast<std::size_t>(n)][static_cast<std::size_t>(k)];
  }
  T& behind(index n, index k) {
    return behind_[static_cast<std::size_t>(n)][static_cast<std::size_t>(k)];
  }

  const CrfScores<T>& scores_;
  Rows<const T> x_;
  std::vector<std::vector<T>> before_, behind_;
};

/// Calls f(sequence, its rows) for each sequence that has rows.
template <class T, class F>
void for_each_sequence(const CrfRows<T>& rows, F&& f) {
  for (index s = 0; s + 1 < rows.offsets.size; ++s) {
    if (rows.offsets[s] == rows.offsets[s + 1]) continue;
    f(s, rows.emissions.slice(rows.offsets[s], rows.offsets[s + 1]));
  }
}

template <class T>
void clear(const CrfGradient<T>& gradient) {
  const index K = gradient.start.size;
  for (index k = 0; k < K; ++k) {
    gradient.start[k] = gradient.end[k] = 0;
    for (index b = 0; b < K; ++b) gradient.transitions[k][b] = 0;
  }
}

/// Adds the gradient of one sequence, whose tags are `tags`.
template <class T>
void add_gradient(Chain<T>& chain, const std::int32_t* tags, T scale,
                  const CrfGradient<T>& gradient) {
  const Rows<T> dx = gradient.emissions;
  for (index n = 0; n < dx.rows; ++n)
    for (index b = 0; b < dx.columns; ++b) {
      const T own = chain.marginal(n, b) - (tags[n] == b ? T{1} : T{0});
      dx[n][b] = scale * own;
      if (n == 0) gradient.start[b] += scale * own;
      if (n + 1 == dx.rows) gradient.end[b] += scale * own;
      for (index a = 0; a < dx.columns && n > 0; ++a) {
        const bool is_true = tags[n - 1] == a && tags[n] == b;
        gradient.transitions[a][b] += scale * (chain.pair(n, a, b) - (is_true ? T{1} : T{0}));
      }
    }
}

}  // namespace

template <class T>
void crf_log_partition(const CrfScores<T>& scores, const CrfRows<T>& rows,
                       Vec<double> log_partition) {
  std::fill(log_partition.begin(), log_partition.end(), 0.0);
  for_each_sequence(rows, [&](index s, Rows<const T> x) {
    log_partition[s] = double{Chain<T>(scores, x).log_z};
  });
}

template <class T>
double crf_loss(const CrfScores<T>& scores, const CrfRows<T>& rows, const CrfTargets& targets,
                Vec<double> losses, const CrfGradient<T>& gradient) {
  std::fill(losses.begin(), losses.end(), 0.0);
  clear(gradient);
  for_each_sequence(rows, [&](index s, Rows<const T> x) {
    Chain<T> chain(scores, x);
    const std::int32_t* const tags = targets.tags.data + rows.offsets[s];
    T score = chain.start(tags[0]) + chain.end(tags[x.rows - 1]);
    for (index n = 0; n < x.rows; ++n) {
      score += x[n][tags[n]] + (n > 0 ? chain.transition(tags[n - 1], tags[n]) : T{0});
    }
    losses[s] = double{chain.log_z - score};
    CrfGradient<T> own = gradient;
    own.emissions = gradient.emissions.slice(rows.offsets[s], rows.offsets[s + 1]);
    add_gradient(chain, tags, static_cast<T>(targets.scale), own);
  });
  double total = 0;
  for (const double loss : losses) total += loss;
  return total;
}

template <class T>
void crf_marginals(const CrfScores<T>& scores, const CrfRows<T>& rows, Rows<T> marginals) {
  for_each_sequence(rows, [&](index s, Rows<const T> x) {
    Chain<T> chain(scores, x);
    for (index n = 0; n < x.rows; ++n)
      for (index k = 0; k < x.columns; ++k) {
        marginals[rows.offsets[s] + n][k] = chain.marginal(n, k);
      }
  });
}

#define FOVEA_INSTANTIATE(T)                                                                       \
  template void crf_log_partition(const CrfScores<T>&, const CrfRows<T>&, Vec<double>);            \
  template double crf_loss(const CrfScores<T>&, const CrfRows<T>&, const CrfTargets&, Vec<double>, \
                           const CrfGradient<T>&);                                                 \
  template void crf_marginals(const CrfScores<T>&, const CrfRows<T>&, Rows<T>);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::reference

// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fovea {

namespace {

// The softmax of some scores, in place.
void normalise(std::span<double> scores) {
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const double score : scores) most = std::max(most, score);
  for (double& score : scores) sum += score = std::exp(score - most);
  for (double& score : scores) score /= sum;
}

// query . x / sqrt(width) of each row.
void attention_scores(Variable x, const Tensor& query, std::span<double> scores) {
  const double scale = 1 / std::sqrt(static_cast<double>(x.columns()));
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* const q = query.vec<T>().data;
    for (index n = 0; n < x.rows(); ++n) {
      const T* const row = x.value<T>()[n];
      double sum = 0;
      for (index c = 0; c < x.columns(); ++c) sum += static_cast<double>(row[c]) * double{q[c]};
      scores[static_cast<std::size_t>(n)] = scale * sum;
    }
  });
}

// Adds to each row from `first` on the share of the columns whose maximum it is.
void add_maxima(Variable x, index first, std::span<double> shares) {
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<const T> rows = x.value<T>();
    const auto count = static_cast<index>(shares.size());
    for (index c = 0; c < x.columns(); ++c) {
      index best = 0;
      bool differs = count == 1;
      for (index n = 1; n < count; ++n) {
        differs = differs || rows[first + n][c] != rows[first][c];
        if (rows[first + n][c] > rows[first + best][c]) best = n;
      }
      if (!differs) continue;
      shares[static_cast<std::size_t>(best)] += 1 / static_cast<double>(x.columns());
    }
  });
}

}  // namespace

Pooling::Pooling(PoolingKind kind, index width, const ParameterScope& scope, index reverse)
    : kind_(kind), width_(width), reverse_(reverse) {
  check(reverse >= 0 && reverse < width, "pooling: {} of {} columns cannot be read backwards",
        reverse, width);
  if (kind == PoolingKind::kAttention) {
    query_ = &scope.add("query", {1, width}, Init::zeros(), Decay::kNo);
  }
}

Variable Pooling::forward(Tape& tape, Variable x, const PackedRows& rows) const {
  check(x.columns() == width_, "pooling: x must have {} columns; it has {}", width_, x.columns());
  switch (kind_) {
    case PoolingKind::kMean:
      return mean_over_time(tape, x, rows);
    case PoolingKind::kMax:
      return max_over_time(tape, x, rows);
    case PoolingKind::kFirst:
      return first_over_time(tape, x, rows);
    case PoolingKind::kLast:
      return reverse_ > 0 ? ends(tape, x, rows) : last_over_time(tape, x, rows);
    case PoolingKind::kAttention:
      break;
  }
  return attention_over_time(tape, x, tape.parameter(*query_), rows);
}

Variable Pooling::ends(Tape& tape, Variable x, const PackedRows& rows) const {
  const index widths[] = {width_ - reverse_, reverse_};
  const std::span<const Variable> directions = split_columns(tape, x, widths);
  const Variable both[] = {last_over_time(tape, directions[0], rows),
                           first_over_time(tape, directions[1], rows)};
  return concat_columns(tape, both);
}

std::vector<double> Pooling::weights(Variable x, const PackedRows& rows) const {
  check(kind_ == PoolingKind::kAttention || kind_ == PoolingKind::kMax,
        "pooling: only attention and the maximum have weights to look at");
  check(x.columns() == width_, "pooling: x must have {} columns; it has {}", width_, x.columns());
  const index N = x.rows();
  std::vector<double> all(static_cast<std::size_t>(N));
  if (kind_ == PoolingKind::kAttention) attention_scores(x, query_->value, all);
  for (index s = 0; s < rows.count(); ++s) {
    const index begin = rows.offsets.empty() ? 0 : rows.offsets[s];
    const index end = rows.offsets.empty() ? N : rows.offsets[s + 1];
    const auto part = std::span(all).subspan(static_cast<std::size_t>(begin),
                                             static_cast<std::size_t>(end - begin));
    if (kind_ == PoolingKind::kAttention) {
      normalise(part);
    } else if (!part.empty()) {
      add_maxima(x, begin, part);
    }
  }
  return all;
}

}  // namespace fovea

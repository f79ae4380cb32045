// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/crf_paths.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fovea/kernel/crf_chain.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/crf_paths.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

/// Some vectors of MaxStep. Together they hide the latency of a comparison.
template <int kVectors>
HWY_INLINE void MaxColumns(Rows<const double> matrix, const double* from, double* to,
                           double* came_from) {
  constexpr index kN = kLanes<double>;
  const Tag<double> d;
  Vector<double> best[kVectors], best_at[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    best[v] = hn::Add(hn::Set(d, from[0]), hn::LoadU(d, matrix[0] + v * kN));
    best_at[v] = hn::Zero(d);
  }
  for (index a = 1; a < matrix.rows; ++a) {
    const auto before = hn::Set(d, from[a]), number = hn::Set(d, static_cast<double>(a));
    for (int v = 0; v < kVectors; ++v) {
      const auto score = hn::Add(before, hn::LoadU(d, matrix[a] + v * kN));
      const auto is_better = hn::Gt(score, best[v]);
      best[v] = hn::IfThenElse(is_better, score, best[v]);
      best_at[v] = hn::IfThenElse(is_better, number, best_at[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    hn::StoreU(best[v], d, to + v * kN);
    hn::StoreU(best_at[v], d, came_from + v * kN);
  }
}

/// to[b] = max_a from[a] + matrix[a][b], came_from[b] the first a of it; all [stride], whole
/// vectors.
void MaxStep(Rows<const double> matrix, const double* from, double* to, double* came_from) {
  constexpr index kN = kLanes<double>;
  index b = 0;
  for (; b + 4 * kN <= matrix.stride; b += 4 * kN) {
    MaxColumns<4>({matrix.data + b, matrix.rows, kN, matrix.stride}, from, to + b, came_from + b);
  }
  for (; b < matrix.stride; b += kN) {
    MaxColumns<1>({matrix.data + b, matrix.rows, kN, matrix.stride}, from, to + b, came_from + b);
  }
}

auto MaxStepKernel() {
  static_assert(kLanes<double> <= detail::kCrfMostLanes<double>);
  return MaxStep;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <queue>
#include <string_view>

#include "fovea/base/memory.h"
#include "fovea/base/profile.h"
#include "fovea/kernel/crf_checks.h"
namespace fovea {
namespace {

HWY_EXPORT(MaxStepKernel);

using Step = void (*)(Rows<const double>, const double*, double*, double*);

constexpr index kMostLanes = detail::kCrfMostLanes<double>;
constexpr double kNone = -std::numeric_limits<double>::infinity();
constexpr double kCost = 4;  // operations for one transition of one row

/// The scores in double; -infinity: not allowed.
struct Scores {
  Rows<const double> transitions;  ///< [K, K], rows whole vectors apart
  const double *start, *end;       ///< [K]
};

template <class T>
Scores in_double(Scratch& scratch, std::string_view op, const CrfScores<T>& scores) {
  const index K = scores.start.size, P = (K + kMostLanes - 1) / kMostLanes * kMostLanes;
  double* const all = scratch.allocate<double>((K + 2) * P);
  std::fill_n(all, (K + 2) * P, kNone);
  const CrfAllowed& allowed = scores.allowed;
  for (index a = 0; a < K; ++a) {
    for (index b = 0; b < K; ++b) {
      if (detail::may_follow(allowed, K, a, b)) all[a * P + b] = double{scores.transitions[a][b]};
    }
    if (detail::may_start(allowed, a)) all[K * P + a] = double{scores.start[a]};
    if (detail::may_end(allowed, a)) all[(K + 1) * P + a] = double{scores.end[a]};
  }
  constexpr double kMost = std::numeric_limits<double>::max();
  if (!std::all_of(all, all + (K + 2) * P, [](double v) { return v <= kMost; })) {
    fail(ErrorCode::kOptionValue, Hint{"look for what made it so"},
         "{}: a score of transitions, start or end is NaN or infinite", op);
  }
  return {{all, K, K, P}, all + K * P, all + (K + 1) * P};
}

/// Calls f(s) for each sequence that has rows, whose emissions are all numbers, or -infinity.
template <class T, class F>
void for_each_sequence(const Context& ctx, std::string_view op, const CrfRows<T>& rows, F&& f) {
  const index S = detail::crf_sequences(rows), N = rows.emissions.rows, K = rows.emissions.columns;
  if (S == 0) return;
  const double cost = kCost * static_cast<double>(N) / static_cast<double>(S) *
                      static_cast<double>(K) * static_cast<double>(K);
  ctx.for_ranges(S, cost, [&](index begin, index end) {
    for (index s = begin; s < end; ++s) {
      for (index n = rows.offsets[s]; n < rows.offsets[s + 1]; ++n) {
        const T* const x = rows.emissions[n];
        if (!std::all_of(x, x + K, [](T v) { return v <= std::numeric_limits<T>::max(); })) {
          detail::fail_without_path(op, s, true);
        }
      }
      if (rows.offsets[s] < rows.offsets[s + 1]) f(s);
    }
  });
}

/// The best path of sequence s, whose tags go to `tags`; returns its score.
template <class T>
double viterbi(Step step, const Scores& scores, const CrfRows<T>& rows, index s,
               std::int32_t* tags) {
  const Rows<const T> x = rows.emissions.slice(rows.offsets[s], rows.offsets[s + 1]);
  const index K = x.columns, P = scores.transitions.stride;
  Scratch scratch;
  double *best = scratch.allocate<double>(P), *next = scratch.allocate<double>(P);
  double* const came_from = scratch.allocate<double>(P);
  std::int32_t* const back = scratch.allocate<std::int32_t>(x.rows * K);
  for (index n = 0; n < x.rows; ++n) {
    if (n > 0) step(scores.transitions, best, next, came_from);
    for (index k = 0; k < K; ++k) {
      if (n > 0) back[n * K + k] = static_cast<std::int32_t>(came_from[k]);
      next[k] = (n > 0 ? next[k] : scores.start[k]) + double{x[n][k]};
    }
    std::swap(best, next);
  }
  index last = 0;
  for (index k = 0; k < K; ++k) {
    best[k] += scores.end[k];
    if (best[k] > best[last]) last = k;
  }
  if (best[last] == kNone) detail::fail_without_path("crf_viterbi", s, false);
  tags[x.rows - 1] = static_cast<std::int32_t>(last);
  for (index n = x.rows - 1; n > 0; --n) tags[n - 1] = back[n * K + tags[n]];
  return best[last];
}

/// One of the best paths up to a row and a tag: its score, the tag before, and which of that tag's.
struct Partial {
  double score = 0;
  std::int32_t before = 0, rank = 0;
};

/// The order of a queue: the better first, then the lower tag before, then the lower rank.
struct ComesLater {
  bool operator()(const Partial& a, const Partial& b) const {
    if (a.score != b.score) return a.score < b.score;
    return a.before != b.before ? a.before > b.before : a.rank > b.rank;
  }
};

/// The `count` best of lists [K], each best first, to whose scores[r] `more(a)` is added.
template <class More>
std::vector<Partial> merge(const std::vector<Partial>* lists, index K, index count, More&& more) {
  std::priority_queue<Partial, std::vector<Partial>, ComesLater> queue;
  const auto push = [&](index a, index rank) {
    const auto& list = lists[a];
    if (rank >= std::ssize(list)) return;
    const double score = list[static_cast<std::size_t>(rank)].score + more(a);
    if (score > kNone) {
      queue.push({score, static_cast<std::int32_t>(a), static_cast<std::int32_t>(rank)});
    }
  };
  for (index a = 0; a < K; ++a) push(a, 0);
  std::vector<Partial> best;
  while (!queue.empty() && std::ssize(best) < count) {
    best.push_back(queue.top());
    queue.pop();
    push(best.back().before, index{best.back().rank} + 1);
  }
  return best;
}

template <class T>
std::vector<CrfPath> best_paths_of(const Scores& scores, Rows<const T> x, index count) {
  const index K = x.columns;
  std::vector<std::vector<Partial>> lists(static_cast<std::size_t>(x.rows * K));
  const auto row = [&](index n) { return lists.data() + n * K; };
  for (index n = 0; n < x.rows; ++n) {
    for (index b = 0; b < K; ++b) {
      std::vector<Partial>& list = row(n)[b];
      if (n == 0) {
        list = {{scores.start[b], 0, 0}};
        if (scores.start[b] == kNone) list.clear();
      } else {
        list = merge(row(n - 1), K, count, [&](index a) { return scores.transitions[a][b]; });
      }
      for (Partial& p : list) p.score += double{x[n][b]};
    }
  }
  std::vector<CrfPath> paths;
  for (const Partial& end :
       merge(row(x.rows - 1), K, count, [&](index a) { return scores.end[a]; })) {
    CrfPath path{end.score, std::vector<std::int32_t>(static_cast<std::size_t>(x.rows))};
    Partial at = end;
    for (index n = x.rows - 1; n >= 0; --n) {
      path.tags[static_cast<std::size_t>(n)] = at.before;
      at = row(n)[at.before][static_cast<std::size_t>(at.rank)];
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace

template <class T>
void crf_viterbi(const Context& ctx, const CrfScores<T>& scores, const CrfRows<T>& rows,
                 Vec<std::int32_t> tags, Vec<double> scores_of) {
  detail::check_crf("crf_viterbi", scores, rows);
  check_vec("crf_viterbi", "tags", tags, "N", rows.emissions.rows);
  check_optional("crf_viterbi", "scores_of", scores_of, "S", detail::crf_sequences(rows));
  const ProfileScope scope(
      ctx, pass_over<T>("crf viterbi", rows.emissions.rows, rows.emissions.columns, 1));
  const Step step = FOVEA_DISPATCH(MaxStepKernel)();
  Scratch scratch;
  const Scores all = in_double(scratch, "crf_viterbi", scores);
  std::fill(scores_of.begin(), scores_of.end(), 0.0);
  for_each_sequence(ctx, "crf_viterbi", rows, [&](index s) {
    const double score = viterbi(step, all, rows, s, tags.data + rows.offsets[s]);
    if (!scores_of.empty()) scores_of[s] = score;
  });
}

template <class T>
std::vector<std::vector<CrfPath>> crf_best_paths(const Context& ctx, const CrfScores<T>& scores,
                                                 const CrfRows<T>& rows, index count) {
  detail::check_crf("crf_best_paths", scores, rows);
  if (count < 1) {
    fail(ErrorCode::kOptionValue, "crf_best_paths: count is {}; it must be at least 1", count);
  }
  const ProfileScope scope(
      ctx, pass_over<T>("crf best paths", rows.emissions.rows, rows.emissions.columns, 1));
  Scratch scratch;
  const Scores all = in_double(scratch, "crf_best_paths", scores);
  std::vector<std::vector<CrfPath>> result(static_cast<std::size_t>(detail::crf_sequences(rows)),
                                           {CrfPath{}});
  for_each_sequence(ctx, "crf_best_paths", rows, [&](index s) {
    auto& paths = result[static_cast<std::size_t>(s)];
    paths = best_paths_of(all, rows.emissions.slice(rows.offsets[s], rows.offsets[s + 1]), count);
    if (paths.empty()) detail::fail_without_path("crf_best_paths", s, false);
  });
  return result;
}

#define FOVEA_INSTANTIATE(T)                                                                     \
  template void crf_viterbi(const Context&, const CrfScores<T>&, const CrfRows<T>&,              \
                            Vec<std::int32_t>, Vec<double>);                                     \
  template std::vector<std::vector<CrfPath>> crf_best_paths(const Context&, const CrfScores<T>&, \
                                                            const CrfRows<T>&, index);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea
#endif  // HWY_ONCE

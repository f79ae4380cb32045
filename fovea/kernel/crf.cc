// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/crf.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "fovea/base/memory.h"
#include "fovea/base/profile.h"
#include "fovea/kernel/crf_chain.h"
#include "fovea/kernel/crf_score.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/crf.cc"
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

namespace fovea {

namespace {

using detail::CrfChain;
using detail::CrfLane;
using detail::CrfLanes;
using detail::CrfLaneSteps;
using detail::CrfMatrix;
using detail::CrfSteps;
using detail::CrfTable;
using detail::kNoExponent;
using detail::Scaled;

// Parts of the batch whose gradients of the scores are summed by themselves: many enough for
// threads, few enough that adding their K^2 sums costs little.
constexpr index kMostChunks = 16;
constexpr double kCost = 8;  // operations for one transition of one row

template <class T>
Scaled<T> allocate_scaled(Scratch& scratch, index n) {
  return {scratch.allocate<T>(n), scratch.allocate<T>(n)};
}

/// exp(scores) [n], 0 where `allows` says no; 0 up to the stride.
template <class T, class Allows>
void split_row(const CrfSteps<T>& steps, const CrfTable<T>& t, const T* scores, Scaled<T> to,
               Allows&& allows) {
  // to.e first holds the scores that count.
  for (index k = 0; k < t.tags; ++k) {
    to.e[k] = allows(k) ? scores[k] : -std::numeric_limits<T>::infinity();
  }
  steps.split(to.e, t.tags, to);
  std::fill(to.m + t.tags, to.m + t.stride, T{0});
  std::fill(to.e + t.tags, to.e + t.stride, kNoExponent<T>);
}

template <class T>
CrfMatrix<T> allocate_matrix(Scratch& scratch, const CrfTable<T>& t) {
  const index n = t.tags * t.stride;
  return {allocate_scaled<T>(scratch, n), scratch.allocate<T>(n)};
}

/// The backward matrix is the other's transpose.
template <class T>
void transpose(const CrfTable<T>& t, const CrfMatrix<T>& from, const CrfMatrix<T>& to) {
  const index P = t.stride;
  for (index b = 0; b < t.tags; ++b) {
    for (index a = 0; a < P; ++a) {
      const index at = a * P + b;
      const bool inside = a < t.tags;
      to.parts.m[b * P + a] = inside ? from.parts.m[at] : T{0};
      to.parts.e[b * P + a] = inside ? from.parts.e[at] : kNoExponent<T>;
      to.plain[b * P + a] = inside ? from.plain[at] : T{0};
    }
  }
}

template <class T>
void fill_table(CrfTable<T>& t, const CrfSteps<T>& steps, const CrfScores<T>& scores) {
  const index K = t.tags, P = t.stride;
  const CrfAllowed& allowed = scores.allowed;
  split_row(steps, t, scores.start.data, t.start,
            [&](index k) { return detail::may_start(allowed, k); });
  split_row(steps, t, scores.end.data, t.end, [&](index k) { return detail::may_end(allowed, k); });
  T top = kNoExponent<T>;
  for (index a = 0; a < K; ++a) {
    const Scaled<T> row = t.forward.parts.row(a, P);
    split_row(steps, t, scores.transitions[a], row,
              [&](index b) { return detail::may_follow(allowed, K, a, b); });
    top = std::max(top, *std::max_element(row.e, row.e + K));
  }
  if (top > kNoExponent<T>) {
    for (index i = 0; i < K * P; ++i) t.forward.parts.e[i] -= top;
    t.top = double{top};
  }
  steps.join({t.forward.parts.m, t.forward.parts.e}, K * P, t.forward.plain);
  transpose(t, t.forward, t.backward);
}

template <class T>
CrfTable<T> make_table(const Context& ctx, Scratch& scratch, const CrfSteps<T>& steps,
                       const CrfScores<T>& scores) {
  const index K = scores.start.size, P = (K + steps.lanes - 1) / steps.lanes * steps.lanes;
  CrfTable<T> t{
      .tags = K, .stride = P, .forward = {}, .backward = {}, .start = {}, .end = {}, .top = 0};
  t.start = allocate_scaled<T>(scratch, P);
  t.end = allocate_scaled<T>(scratch, P);
  t.forward = allocate_matrix(scratch, t);
  t.backward = allocate_matrix(scratch, t);
  ctx.run_here([&] { fill_table(t, steps, scores); });
  return t;
}

// Vectors hold the tags of one sequence or, where these would leave half of the lanes empty, as
// many sequences as there are lanes. Which it is depends on the number of tags alone, so no bit of
// a sequence depends on the batch.
template <class T>
struct Kernels {
  CrfSteps<T> tags = detail::crf_steps<T>();
  CrfLaneSteps<T> lanes = detail::crf_lane_steps<T>();

  /// How many sequences are walked along at once.
  index width(index K) const { return 2 * K <= tags.lanes ? tags.lanes : 1; }
};

/// The walk along the sequences [begin, end), which are as many as one walk takes or fewer, with
/// room for it.
template <class T>
class Group {
 public:
  Group(const Kernels<T>& kernels, const CrfTable<T>& t, const CrfRows<T>& rows, index begin,
        index end)
      : kernels_(kernels),
        rows_(rows),
        begin_(begin),
        end_(end),
        in_lanes_(kernels.width(t.tags) > 1) {
    for (index s = begin; s < end; ++s) longest_ = std::max(longest_, x(s).rows);
    if (!in_lanes_) {
      chain_ = {&t, x(begin), allocate_scaled<T>(scratch_, longest_ * t.stride),
                scratch_.allocate<T>(detail::kCrfBuffers * t.stride)};
      return;
    }
    const index lanes = kernels.tags.lanes;
    for (index s = begin; s < end; ++s) lane(s).x = x(s);
    group_ = {&t, lanes_.data(), end - begin,
              allocate_scaled<T>(scratch_, longest_ * t.tags * lanes),
              scratch_.allocate<T>(detail::crf_lanes_buffer(t.tags) * lanes)};
  }

  /// log Z of each sequence; 0 of an empty one.
  void forward(Vec<double> log_partition) {
    if (in_lanes_) {
      kernels_.lanes.forward(group_);
      for (index s = begin_; s < end_; ++s) log_partition[s] = lane(s).log_partition;
    } else {
      log_partition[begin_] = longest_ == 0 ? 0 : kernels_.tags.forward(chain_);
    }
  }
  /// After forward, of all rows of the batch: the marginals of these sequences.
  void backward(Rows<T> marginals, T* pairs) {
    const auto of = [&](index s) {
      return marginals.slice(rows_.offsets[s], rows_.offsets[s + 1]);
    };
    if (in_lanes_) {
      for (index s = begin_; s < end_; ++s) lane(s).marginals = of(s);
      kernels_.lanes.backward(group_, pairs);
    } else if (longest_ > 0) {
      kernels_.tags.backward(chain_, {of(begin_), pairs});
    }
  }

 private:
  Rows<const T> x(index s) const {
    return rows_.emissions.slice(rows_.offsets[s], rows_.offsets[s + 1]);
  }
  CrfLane<T>& lane(index s) { return lanes_[static_cast<std::size_t>(s - begin_)]; }

  const Kernels<T>& kernels_;
  const CrfRows<T>& rows_;
  const index begin_, end_;
  const bool in_lanes_;
  index longest_ = 0;
  Scratch scratch_;
  CrfChain<T> chain_ = {};
  std::array<CrfLane<T>, static_cast<std::size_t>(detail::kCrfMostLanes<T>)> lanes_ = {};
  CrfLanes<T> group_ = {};
};

/// Tells a plan what each thread takes for its sequences.
template <class T>
void plan_threads(const Context& ctx, const CrfRows<T>& rows) {
  if (ctx.plan() == nullptr) return;
  index longest = 0;
  for (index s = 0; s < detail::crf_sequences(rows); ++s) {
    longest = std::max<index>(longest, rows.offsets[s + 1] - rows.offsets[s]);
  }
  ctx.plan()->add_thread_bytes(crf_scratch<T>(rows.emissions.columns, longest, false).of_thread);
}

/// The groups of a batch, and its range of threads: f(begin, end) of each.
template <class T, class F>
void for_each_group(const Context& ctx, const CrfRows<T>& rows, index width, F&& f) {
  const index S = detail::crf_sequences(rows), N = rows.emissions.rows, K = rows.emissions.columns;
  if (S == 0) return;
  plan_threads(ctx, rows);
  const index groups = (S + width - 1) / width;
  const double cost = kCost * static_cast<double>(N) / static_cast<double>(groups) *
                      static_cast<double>(K) * static_cast<double>(K);
  ctx.for_ranges(groups, cost, [&](index begin, index end) {
    for (index g = begin; g < end; ++g) f(g * width, std::min(S, (g + 1) * width));
  });
}

/// Sums of a part of the batch: [K, stride], [K], [K].
template <class T>
struct Sums {
  T *pairs, *start, *end;
  index size;
};

template <class T>
Sums<T> allocate_sums(const Context& ctx, Scratch& scratch, const CrfTable<T>& t, index parts) {
  const index size = (t.tags + 2) * t.stride;
  T* const all = scratch.allocate<T>(parts * size);
  ctx.run_here([&] { std::fill_n(all, parts * size, T{0}); });
  return {all, all + t.tags * t.stride, all + (t.tags + 1) * t.stride, size};
}
template <class T>
Sums<T> part_of(const Sums<T>& all, index part) {
  const index by = part * all.size;
  return {all.pairs + by, all.start + by, all.end + by, all.size};
}

/// Makes the gradient of the loss: the expected counts less those of the tags.
template <class T>
struct LossGradient {
  const CrfTable<T>& table;
  const CrfRows<T>& rows;
  const CrfTargets& targets;
  const CrfGradient<T>& out;

  /// Adds sequence s, whose marginals have been computed.
  void pull(index s, const Sums<T>& sums) const {
    const index first = rows.offsets[s], last = rows.offsets[s + 1], K = table.tags;
    if (first == last) return;
    const Rows<T> p = out.emissions.slice(first, last);
    const std::int32_t* const tags = targets.tags.data + first;
    const index length = last - first;
    for (index k = 0; k < K; ++k) {
      sums.start[k] += p[0][k];
      sums.end[k] += p[length - 1][k];
    }
    sums.start[tags[0]] -= T{1};
    sums.end[tags[length - 1]] -= T{1};
    const T factor = static_cast<T>(targets.scale);
    for (index n = 0; n < length; ++n) {
      p[n][tags[n]] -= T{1};
      for (index k = 0; k < K; ++k) p[n][k] *= factor;
      if (n > 0) sums.pairs[tags[n - 1] * table.stride + tags[n]] -= T{1};
    }
  }

  /// The sums of all parts, in ascending order.
  void add_up(const Sums<T>& all, index parts) const {
    const index K = table.tags;
    const double factor = targets.scale;
    for (index a = 0; a < K + 2; ++a) {
      T* const to = a < K ? out.transitions[a] : a == K ? out.start.data : out.end.data;
      for (index b = 0; b < K; ++b) {
        double sum = 0;
        for (index part = 0; part < parts; ++part) {
          sum += double{all.pairs[part * all.size + a * table.stride + b]};
        }
        to[b] = static_cast<T>(factor * sum);
      }
    }
  }
};

template <class T>
void check_gradient(const CrfGradient<T>& gradient, index N, index K) {
  check_rows("crf_loss", "the gradient of emissions", gradient.emissions, N, K);
  check_rows("crf_loss", "the gradient of transitions", gradient.transitions, K, K);
  check_vec("crf_loss", "the gradient of start", gradient.start, "K", K);
  check_vec("crf_loss", "the gradient of end", gradient.end, "K", K);
}

}  // namespace

template <class T>
void crf_log_partition(const Context& ctx, const CrfScores<T>& scores, const CrfRows<T>& rows,
                       Vec<double> log_partition) {
  detail::check_crf("crf_log_partition", scores, rows);
  check_vec("crf_log_partition", "log_partition", log_partition, "S", detail::crf_sequences(rows));
  const ProfileScope scope(
      ctx, pass_over<T>("crf partition", rows.emissions.rows, rows.emissions.columns, 1));
  const Kernels<T> kernels;
  Scratch scratch;
  const CrfTable<T> table = make_table(ctx, scratch, kernels.tags, scores);
  for_each_group(ctx, rows, kernels.width(table.tags), [&](index begin, index end) {
    Group<T>(kernels, table, rows, begin, end).forward(log_partition);
  });
}

template <class T>
double crf_loss(const Context& ctx, const CrfScores<T>& scores, const CrfRows<T>& rows,
                const CrfTargets& targets, Vec<double> losses, const CrfGradient<T>& gradient) {
  const index N = rows.emissions.rows, K = rows.emissions.columns;
  detail::check_crf("crf_loss", scores, rows);
  const index S = detail::crf_sequences(rows);
  check_vec("crf_loss", "tags", targets.tags, "N", N);
  check_vec("crf_loss", "losses", losses, "S", S);
  const bool with_gradient =
      gradient.emissions.data != nullptr || gradient.transitions.data != nullptr;
  if (with_gradient) check_gradient(gradient, N, K);
  const ProfileScope scope(ctx, pass_over<T>("crf loss", N, K, with_gradient ? 2 : 1));
  const Kernels<T> kernels;
  Scratch scratch;
  const CrfTable<T> table = make_table(ctx, scratch, kernels.tags, scores);
  const LossGradient<T> pull{table, rows, targets, gradient};
  const index width = kernels.width(K), groups = (S + width - 1) / width;
  const index chunks = std::min(groups, kMostChunks);
  const Sums<T> sums = allocate_sums(ctx, scratch, table, with_gradient ? chunks : 0);
  plan_threads(ctx, rows);
  ctx.for_each(chunks, [&](index chunk) {
    for (index g = chunk * groups / chunks; g < (chunk + 1) * groups / chunks; ++g) {
      const index begin = g * width, end = std::min(S, begin + width);
      Group<T> group(kernels, table, rows, begin, end);
      group.forward(losses);
      for (index s = begin; s < end; ++s) {
        losses[s] = detail::loss_of_path<T>(
            losses[s], detail::score_of_tags(scores, rows, targets.tags, s), K);
      }
      if (!with_gradient) continue;
      group.backward(gradient.emissions, part_of(sums, chunk).pairs);
      for (index s = begin; s < end; ++s) pull.pull(s, part_of(sums, chunk));
    }
  });
  if (with_gradient) ctx.run_here([&] { pull.add_up(sums, chunks); });
  double total = 0;
  for (const double loss : losses) total += loss;
  return total;
}

template <class T>
void crf_marginals(const Context& ctx, const CrfScores<T>& scores, const CrfRows<T>& rows,
                   Rows<T> marginals) {
  const index N = rows.emissions.rows, K = rows.emissions.columns;
  detail::check_crf("crf_marginals", scores, rows);
  check_rows("crf_marginals", "marginals", marginals, N, K);
  const ProfileScope scope(ctx, pass_over<T>("crf marginals", N, K, 2));
  const Kernels<T> kernels;
  Scratch scratch;
  const CrfTable<T> table = make_table(ctx, scratch, kernels.tags, scores);
  std::vector<double> log_z(static_cast<std::size_t>(detail::crf_sequences(rows)));
  for_each_group(ctx, rows, kernels.width(K), [&](index begin, index end) {
    Group<T> group(kernels, table, rows, begin, end);
    group.forward(log_z);
    for (index s = begin; s < end; ++s) {
      const double z = log_z[static_cast<std::size_t>(s)];
      if (!std::isfinite(z)) detail::fail_without_path("crf_marginals", s, std::isnan(z) || z > 0);
    }
    group.backward(marginals, nullptr);
  });
}

template <class T>
CrfScratch crf_scratch(index tags, index longest, bool with_gradient) {
  constexpr index kMost = detail::kCrfMostLanes<T>;
  constexpr double lanes = kMost;
  const auto K = static_cast<double>(tags), L = static_cast<double>(longest);
  const double P = (std::ceil(K / lanes)) * lanes;
  const double table = (6 * K + 4) * P, sums = with_gradient ? kMostChunks * (K + 2) * P : 0;
  const double chain = (2 * L + detail::kCrfBuffers) * P;
  const double group = lanes * (2 * L * K + static_cast<double>(detail::crf_lanes_buffer(tags)));
  const double walk = 2 * tags <= kMost ? group : chain;
  return {sizeof(T) * (table + sums), sizeof(T) * walk};
}

#define FOVEA_INSTANTIATE(T)                                                                    \
  template void crf_log_partition(const Context&, const CrfScores<T>&, const CrfRows<T>&,       \
                                  Vec<double>);                                                 \
  template double crf_loss(const Context&, const CrfScores<T>&, const CrfRows<T>&,              \
                           const CrfTargets&, Vec<double>, const CrfGradient<T>&);              \
  template void crf_marginals(const Context&, const CrfScores<T>&, const CrfRows<T>&, Rows<T>); \
  template CrfScratch crf_scratch<T>(index, index, bool);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

namespace {

HWY_EXPORT(MaxStepKernel);

using Step = void (*)(Rows<const double>, const double*, double*, double*);

constexpr index kMostLanes = detail::kCrfMostLanes<double>;
constexpr double kNone = -std::numeric_limits<double>::infinity();
constexpr double kPathCost = 4;  // operations for one transition of one row

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
  const double cost = kPathCost * static_cast<double>(N) / static_cast<double>(S) *
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

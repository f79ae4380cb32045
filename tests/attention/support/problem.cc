// SPDX-License-Identifier: Apache-2.0
#include "tests/attention/support/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tests/attention/support/problem_observe.h"
#include "tests/attention/support/problem_parts.h"
#include "tests/attention/support/problem_score.h"

namespace fovea::testing {

namespace {

index one_of(Random& random, std::initializer_list<index> values) {
  return *(values.begin() + random.below(static_cast<index>(values.size())));
}

bool chance(Random& random, double p) { return random.uniform() < p; }

std::vector<float> normals(Random& random, index n, double deviation) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& x : values) x = static_cast<float>(deviation * random.normal());
  return values;
}

std::vector<std::int32_t> lengths(Random& random, index B, index most) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(B));
  for (auto& x : values) x = static_cast<std::int32_t>(random.below(most + 1));
  return values;
}

// Four sequences, some of them perhaps empty, in `rows` rows.
std::vector<std::int32_t> offsets(Random& random, index rows) {
  const index a = random.below(rows + 1), b = random.below(rows + 1), c = random.below(rows + 1);
  std::vector<std::int32_t> cuts = {static_cast<std::int32_t>(a), static_cast<std::int32_t>(b),
                                    static_cast<std::int32_t>(std::max(c, rows / 2))};
  std::sort(cuts.begin(), cuts.end());
  return {0, cuts[0], cuts[1], cuts[2], static_cast<std::int32_t>(rows)};
}

template <class T>
T to(float x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(x);
  } else {
    return static_cast<T>(x);
  }
}

template <class T>
Padded<T> padded(const std::vector<float>& from, index B, index L, index H, index W,
                 const Layout& layout) {
  Padded<T> padded(B, L, H, W, layout, to<T>(std::numeric_limits<float>::quiet_NaN()));
  padded.for_each([&](std::size_t n, std::size_t at) { padded.values[at] = to<T>(from[n]); });
  return padded;
}

// The values of the rows; what lies between must be as it was.
template <class T>
std::vector<double> rows_of(const Padded<T>& from) {
  std::vector<double> values;
  std::vector<T> rest = from.values;
  from.for_each([&](std::size_t, std::size_t at) {
    values.push_back(static_cast<double>(widen(from.values[at])));
    rest[at] = to<T>(-77);
  });
  EXPECT_EQ(std::count(rest.begin(), rest.end(), to<T>(-77)),
            static_cast<std::ptrdiff_t>(rest.size()))
      << "a value between two rows was written";
  return values;
}

}  // namespace

std::string ProblemShape::text() const {
  return fmt::format(
      "seed {}: B={} T={} S={} H={} G={} D={} Dv={} layouts={}{} deviation={:.3g} causal={}{} "
      "window={}({},{}) key_lengths={} query_lengths={} keep={} drop={} alibi={} packed={} "
      "relative={} t5={} dense={}({}{}{}) softcap={:.3g} broadcast={} dropout={} score={} "
      "shaw={}{}{}",
      seed, B, T, S, H, G, D, Dv, static_cast<int>(queries.order), static_cast<int>(keys.order),
      deviation, causal, top_left ? "(top-left)" : "", window, left, right, key_lengths,
      query_lengths, keep, drop, alibi, packed, relative, t5, dense, dense_batch ? "B" : "1",
      dense_heads ? "H" : "1", dense_queries ? "T" : "1", softcap, broadcast_keys, dropout,
      static_cast<int>(score), shaw_keys ? "k" : "", shaw_values ? "v" : "",
      order == ShawOrder::kKeyMinusQuery ? "(j-i)" : "");
}

ProblemShape draw_shape(std::uint64_t seed) {
  Random random(seed, RandomUse::kTest);
  ProblemShape s;
  s.seed = seed;
  const bool large = chance(random, 0.5);
  s.T =
      large ? one_of(random, {47, 64, 65, 97, 130}) : one_of(random, {1, 2, 5, 15, 16, 17, 31, 40});
  s.S = large ? one_of(random, {193, 255, 256, 257, 290, 300})
              : one_of(random, {1, 3, 15, 16, 17, 48, 49, 64, 65, 95, 96, 97});
  if (chance(random, 0.3)) s.T = s.S;
  s.B = large ? 1 : 1 + random.below(3);
  s.G = 1 + random.below(2);
  s.H = s.G * (chance(random, 0.2) ? 2 + random.below(2) : 1 + random.below(2));
  // From five columns on there are orders enough for the bound: fused_test.cc has fewer columns.
  s.D = one_of(random, {5, 7, 8, 16, 17, 32, 33, 64});
  s.Dv = chance(random, 0.5) ? s.D : one_of(random, {5, 9, 16, 20, 64, 65});
  s.queries.gap = s.keys.gap = chance(random, 0.5) ? 0 : 1 + random.below(5);
  s.deviation = std::pow(10.0, random.uniform(0, 2.7));
  s.causal = chance(random, 0.4);
  s.top_left = s.causal && chance(random, 0.3);
  s.window = chance(random, 0.3);
  s.left = random.below(80) - 1;
  s.right = random.below(40) - 1;
  s.packed = chance(random, 0.2);
  if (s.packed) s.B = 1;
  s.key_lengths = !s.packed && chance(random, 0.3);
  s.query_lengths = !s.packed && chance(random, 0.2);
  s.keep = chance(random, 0.2);
  s.drop = chance(random, 0.1);
  s.alibi = chance(random, 0.25);
  s.dropout = chance(random, 0.3) ? random.uniform(0.05, 0.6) : 0;
  Random of_memory(seed, RandomUse::kTest, 2);
  for (Layout* layout : {&s.queries, &s.keys}) {
    layout->order = static_cast<Layout::Order>(of_memory.below(3));
    layout->row_gap = chance(of_memory, 0.5) ? 0 : 1 + of_memory.below(40);
  }
  s.broadcast_keys = chance(of_memory, 0.2);
  s.rows_first = chance(of_memory, 0.5);
  s.relative = chance(of_memory, 0.12);
  Random of_bias(seed, RandomUse::kTest, 3);
  s.softcap = chance(of_bias, 0.15) ? of_bias.uniform(2, 60) : 0;
  s.t5 = chance(of_bias, 0.3);
  s.dense = chance(of_bias, 0.4);
  s.dense_batch = chance(of_bias, 0.5);
  s.dense_heads = chance(of_bias, 0.5);
  s.dense_queries = chance(of_bias, 0.7);
  Random of_score(seed, RandomUse::kTest, 4);
  if (chance(of_score, 0.3)) s.score = static_cast<ScoreKind>(1 + of_score.below(4));
  // Concat makes rows of another width.
  s.shaw_keys = s.score != ScoreKind::kConcat && chance(of_bias, 0.2);
  s.shaw_values = chance(of_bias, 0.3);
  if (chance(of_bias, 0.5)) s.order = ShawOrder::kKeyMinusQuery;
  return s;
}

Problem::Problem(const ProblemShape& s) : shape(s) {
  Random random(s.seed, RandomUse::kTest, 1);
  // Products of D standard normals times 1 / sqrt(D) have deviation 1.
  q = normals(random, s.B * s.T * s.H * s.D, s.deviation);
  k = normals(random, s.B * s.S * s.G * s.D, 1);
  v = normals(random, s.B * s.S * s.G * s.Dv, 1);
  d_o = normals(random, s.B * s.T * s.H * s.Dv, 1);
  for (auto* values : {&k, &v}) {
    const std::size_t row = values->size() / static_cast<std::size_t>(s.B);
    for (std::size_t n = row; s.broadcast_keys && n < values->size(); ++n) {
      (*values)[n] = (*values)[n - row];
    }
  }
  slopes = normals(random, s.H, 0.3);
  key_lengths = lengths(random, s.B, s.S);
  query_lengths = lengths(random, s.B, s.T);
  query_offsets = offsets(random, s.T);
  key_offsets = offsets(random, s.S);
  keep.resize(static_cast<std::size_t>(s.B * s.H * s.T * s.S));
  for (auto& x : keep) x = chance(random, 0.6) ? 7 : 0;
  drop.resize(static_cast<std::size_t>(s.S));
  for (auto& x : drop) x = chance(random, 0.2) ? 1 : 0;
  table = normals(random, (2 * kClip + 1) * s.Dv, 1);
  t5 = normals(random, kBuckets * s.H, 1);
  const auto view = dense_view<float>(s, nullptr);
  dense = normals(random, view.batch * view.heads * view.queries * view.keys, 1);
  shaw_k = normals(random, (2 * kClip + 1) * s.D, 1);
  shaw_v = normals(random, (2 * kClip + 1) * s.Dv, 1);
  if (s.score == ScoreKind::kConcat) score = normals(random, s.H * 2 * s.D, 1);
  if (s.score == ScoreKind::kAdditive) score = normals(random, s.H * s.D, 1);
}

namespace {

// Column c of the result is column order[c] of `from`.
template <class V>
std::vector<V> with_columns(const std::vector<V>& from, const std::vector<index>& order) {
  std::vector<V> to(from.size());
  const std::size_t width = order.size();
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] = from[i / width * width + static_cast<std::size_t>(order[i % width])];
  }
  return to;
}

std::vector<index> shuffled(Random& random, index n) {
  std::vector<index> order(static_cast<std::size_t>(n));
  for (index i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = i;
  for (index i = n - 1; i > 0; --i) {
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(random.below(i + 1))]);
  }
  return order;
}

std::vector<index> inverse(const std::vector<index>& order) {
  std::vector<index> to(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    to[static_cast<std::size_t>(order[i])] = static_cast<index>(i);
  }
  return to;
}

}  // namespace

Problem Problem::rounded() const {
  Problem other = *this;
  for (auto* values : {&other.q, &other.k, &other.v, &other.d_o}) {
    for (float& x : *values) x = to_float(to_bfloat16(x));
  }
  return other;
}

Problem Problem::permuted(std::uint64_t order) const {
  Problem other = *this;
  if (order == 0) return other;
  Random random(shape.seed, RandomUse::kTest, 1 + order);
  other.column_of = shuffled(random, shape.D);
  other.value_column_of = shuffled(random, shape.Dv);
  other.q = with_columns(q, other.column_of);
  other.k = with_columns(k, other.column_of);
  other.v = with_columns(v, other.value_column_of);
  other.d_o = with_columns(d_o, other.value_column_of);
  other.table = with_columns(table, other.value_column_of);
  other.score = with_columns(score, other.column_of);
  other.shaw_k = with_columns(shaw_k, other.column_of);
  other.shaw_v = with_columns(shaw_v, other.value_column_of);
  return other;
}

Results Problem::restored(const Results& results) const {
  Results in_order = results;
  if (column_of.empty()) return in_order;
  const auto columns = inverse(column_of), value_columns = inverse(value_column_of);
  in_order.o = with_columns(results.o, value_columns);
  in_order.dq = with_columns(results.dq, columns);
  in_order.dk = with_columns(results.dk, columns);
  in_order.dv = with_columns(results.dv, value_columns);
  in_order.dtable = with_columns(results.dtable, value_columns);
  in_order.dscore = with_columns(results.dscore, columns);
  in_order.dshaw_k = with_columns(results.dshaw_k, columns);
  in_order.dshaw_v = with_columns(results.dshaw_v, value_columns);
  return in_order;
}

Mask Problem::mask() const {
  const ProblemShape& s = shape;
  Mask mask;
  if (s.causal) {
    mask = mask & mask::Causal(s.top_left ? Align::kTopLeft : Align::kBottomRight);
  }
  if (s.window) mask = mask & mask::Window(s.left, s.right);
  if (s.key_lengths) mask = mask & mask::KeyLengths({key_lengths.data(), s.B});
  if (s.query_lengths) mask = mask & mask::QueryLengths({query_lengths.data(), s.B});
  if (s.keep) {
    mask = mask &
           mask::Keep(ScoreView<const std::uint8_t>::contiguous(keep.data(), s.B, s.H, s.T, s.S));
  }
  if (s.drop) {
    mask = mask & mask::Drop(ScoreView<const std::uint8_t>::contiguous(drop.data(), 1, 1, 1, s.S));
  }
  return mask;
}

template <class T>
Results Problem::run(Method method, int threads) const {
  const ProblemShape& s = shape;
  auto q_ = padded<T>(q, s.B, s.T, s.H, s.D, s.queries);
  auto k_ = padded<T>(k, s.B, s.S, s.G, s.D, s.keys),
       v_ = padded<T>(v, s.B, s.S, s.G, s.Dv, s.keys);
  auto do_ = padded<T>(d_o, s.B, s.T, s.H, s.Dv, s.queries);
  using W = Wide<T>;
  const T old = to<T>(-77);
  Padded<T> o(s.B, s.T, s.H, s.Dv, s.queries, old), dq(s.B, s.T, s.H, s.D, s.queries, old);
  Padded<T> dk(s.B, s.S, s.G, s.D, s.keys, old), dv(s.B, s.S, s.G, s.Dv, s.keys, old);
  std::vector<W> lse, lse_low, weights;
  ObserverMemory<W> observed;
  PartMemory<W> parts(*this);
  ScoreMemory<W> of_score(*this);

  Attention<W> attention{.score = of_score.score(s),
                         .bias = parts.bias_of(s),
                         .mask = mask(),
                         .dropout = {.probability = s.dropout, .seed = s.seed},
                         .values = parts.values_of(s),
                         .observe = observed.parts(s)};
  if (s.watch == Watch::kNothing) attention.observe = {};
  if (s.packed) attention.packed = {query_offsets, key_offsets};
  AttentionInputs<T> in{q_.view(), k_.view(), v_.view()};
  if (s.broadcast_keys) in.k.batch_stride = in.v.batch_stride = 0;
  AttentionOutputs<T> out{o.view(), row_view(lse, s), row_view(lse_low, s), {}};
  if (s.watch != Watch::kNothing) out.weights = score_view(weights, s);
  const AttentionSaved<T> saved{out.o, out.lse, do_.view(), out.lse_low};
  const AttentionGradients<T> gradients{dq.view(), dk.view(), dv.view()};
  if (method == Method::kReference) {
    attention_reference_forward(attention, in, out);
    attention_reference_backward(attention, in, saved, gradients);
  } else {
    const Context ctx(threads);
    attention_forward(ctx, attention, in, out);
    attention_backward(ctx, attention, in, saved, gradients);
  }
  Results results;
  results.o = rows_of(o);
  results.lse = doubles(lse);
  results.weights = doubles(weights);
  results.dq = rows_of(dq);
  results.dk = rows_of(dk);
  results.dv = rows_of(dv);
  results.entropy = doubles(observed.entropy);
  results.maximum = doubles(observed.maximum);
  results.distance = doubles(observed.distance);
  results.topk_weight = doubles(observed.topk_weight);
  results.column_mass = doubles(observed.column_mass);
  results.dscore = doubles(of_score.dweights);
  parts.store(results);
  return results;
}
template Results Problem::run<float>(Method, int) const;
template Results Problem::run<double>(Method, int) const;
template Results Problem::run<BFloat16>(Method, int) const;

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = a[i] == b[i] ? 0 : std::abs(a[i] - b[i]);
    largest = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                     : std::max(largest, difference);
  }
  return largest;
}

double largest_magnitude(const std::vector<double>& a) {
  double largest = 0;
  for (const double x : a) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  return largest;
}

}  // namespace fovea::testing

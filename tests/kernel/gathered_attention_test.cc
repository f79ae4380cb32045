// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/gathered_attention.h"

#include "tests/kernel/support.h"

namespace fovea {
namespace {

constexpr index M = 12;

struct Heads {
  index heads, kv_heads, width, value_width;
};
const std::vector<Heads> kHeads = {{1, 1, 1, 1}, {2, 2, 8, 5}, {4, 2, 33, 16}, {6, 1, 64, 64}};

// Query i sees i + 1 rows, of any order, some twice.
struct Seen {
  explicit Seen(index queries) {
    Random random(4, RandomUse::kTest);
    for (index i = 0; i < queries; ++i) {
      for (index j = 0; j <= i; ++j) ids.push_back(static_cast<std::int32_t>(random.below(M)));
      offsets.push_back(static_cast<std::int32_t>(ids.size()));
    }
  }
  std::vector<std::int32_t> ids, offsets{0};
};

template <class T>
GatheredAttention<T> call_of(const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v,
                             const Seen& seen, const Heads& h) {
  return {.q = q.in(),
          .k = k.in(),
          .v = v.in(),
          .heads = h.heads,
          .kv_heads = h.kv_heads,
          .scale = 0.3,
          .rows = {seen.ids, seen.offsets}};
}

// The definition, in plain loops.
template <class T>
Matrix<T> plain(const GatheredAttention<T>& a) {
  const index D = a.q.columns / a.heads, Dv = a.v.columns / a.kv_heads;
  Matrix<T> o(a.q.rows, a.heads * Dv);
  for (index i = 0; i < a.q.rows; ++i) {
    const index begin = a.rows.offsets[i], end = a.rows.offsets[i + 1];
    for (index h = 0; h < a.heads; ++h) {
      const index g = h / (a.heads / a.kv_heads);
      std::vector<T> weights;
      T most = std::numeric_limits<T>::lowest(), sum = 0;
      for (index j = begin; j < end; ++j) {
        T score = 0;
        for (index d = 0; d < D; ++d) {
          score += a.q[i][h * D + d] * a.k[a.rows.ids[j]][g * D + d];
        }
        weights.push_back(static_cast<T>(a.scale) * score);
        most = std::max(most, weights.back());
      }
      for (T& w : weights) sum += w = std::exp(w - most);
      for (index j = begin; j < end; ++j) {
        for (index d = 0; d < Dv; ++d) {
          o.at(i, h * Dv + d) +=
              weights[static_cast<std::size_t>(j - begin)] / sum * a.v[a.rows.ids[j]][g * Dv + d];
        }
      }
    }
  }
  return o;
}

template <class T>
Matrix<T> gathered(const Context& ctx, const GatheredAttention<T>& a) {
  Matrix<T> o(a.q.rows, a.heads * (a.v.columns / a.kv_heads));
  gathered_attention<T>(ctx, a, o.view());
  return o;
}

TEST(GatheredAttention, ErrorIsAtMostTwiceThatOfThePlainFloat) {
  for_each_isa([] {
    Random random(2, RandomUse::kTest);
    const Seen seen(9);
    for (const Heads& h : kHeads) {
      const auto q = Matrix<float>::random(random, 9, h.heads * h.width, 3);
      const auto k = Matrix<float>::random(random, M, h.kv_heads * h.width);
      const auto v = Matrix<float>::random(random, M, h.kv_heads * h.value_width);
      const Matrix<double> qd(q), kd(k), vd(v);
      const auto a = call_of(q, k, v, seen, h);
      expect_no_worse(gathered(Context(2), a), plain(a), plain(call_of(qd, kd, vd, seen, h)), "o");
    }
  });
}

TEST(GatheredAttention, BitsDoNotDependOnThreadsOrOtherQueries) {
  Random random(3, RandomUse::kTest);
  const Seen seen(200);
  const Heads h{4, 2, 16, 16};
  const auto q = Matrix<float>::random(random, 200, 64), k = Matrix<float>::random(random, M, 32),
             v = Matrix<float>::random(random, M, 32);
  expect_same_for_threads(
      [&](const Context& ctx) { return gathered(ctx, call_of(q, k, v, seen, h)); });
  const auto all = gathered(Context(2), call_of(q, k, v, seen, h));
  GatheredAttention<float> last = call_of(q, k, v, seen, h);
  const std::int32_t offsets[] = {0, 200};
  last.q = last.q.slice(199, 200);
  last.rows = {{seen.ids.data() + seen.offsets[199], 200}, {offsets, 2}};
  const auto alone = gathered(Context(1), last);
  for (index c = 0; c < 64; ++c) EXPECT_EQ(alone.at(0, c), all.at(199, c));
}

TEST(GatheredAttention, NamesWhatDoesNotFit) {
  Random random(3, RandomUse::kTest);
  const auto q = Matrix<float>::random(random, 2, 8), k = Matrix<float>::random(random, M, 8);
  Seen seen(2);
  const Heads h{2, 2, 4, 4};
  const auto ask = [&](auto change) {
    Seen own = seen;
    GatheredAttention<float> a = call_of(q, k, k, own, h);
    change(a, own);
    gathered(Context(1), a);
  };
  using Call = GatheredAttention<float>;
  EXPECT_THROWS(ask([](Call& a, Seen&) { a.heads = 3; }), kShape, "for 3 heads");
  EXPECT_THROWS(ask([](Call&, Seen& s) { s.ids[0] = M; }), kShape, "no row 12 of 12");
  EXPECT_THROWS(ask([](Call&, Seen& s) { s.offsets[1] = 0; }), kShape, "query 0 sees no key");
  EXPECT_THROWS(ask([](Call& a, Seen&) { a.rows.offsets.size = 2; }), kShape, "2 offsets");
}

}  // namespace
}  // namespace fovea

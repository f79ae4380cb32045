// SPDX-License-Identifier: Apache-2.0
// NaN and infinity in whatever is masked reach no result, under every mask.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/attention/support/call.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A matrix of biases, as somebody's own part may be.
class MatrixBias final : public ScoreFunction<float> {
 public:
  MatrixBias(const std::vector<float>& values, index S) : values_(values), S_(S) {}
  float value(const ScoreSite& site, float score) const override {
    const index row = site.sequence.query_row + site.i, column = site.sequence.key_row + site.j;
    return score + values_[static_cast<std::size_t>(row * S_ + column)];
  }
  bool needs_scores() const override { return false; }
  std::string name() const override { return "matrix"; }

 private:
  const std::vector<float>& values_;
  index S_;
};

struct Case {
  const char* name;
  Attention<float> attention;
  /// Is (i, j), rows of the views, kept?
  std::function<bool(index i, index j)> keeps;
};

// One batch row, four heads that share two; T x S with masks that cut through tiles. V: of the
// rows.
template <class V>
class Poisoned {
 public:
  Poisoned(index T, index S, float poison)
      : T_(T),
        S_(S),
        poison_(poison),
        clean_({.T = T, .S = S, .H = 4, .G = 2, .D = 10, .Dv = 6}, 1) {
    bias_.assign(static_cast<std::size_t>(T * S), 0.5f);
    for (index n = 0; n < T * S; ++n) dense_.push_back(n * 2654435761 % 97 < 40 ? 1 : 0);
    key_length_ = {static_cast<std::int32_t>(S / 2 + 1)};
    query_length_ = {static_cast<std::int32_t>(T * 2 / 3)};
    for (index i = 0; i < T; ++i) query_segments_.push_back(static_cast<std::int32_t>(i / 20));
    for (index j = 0; j < S; ++j) {
      key_segments_.push_back(static_cast<std::int32_t>(j / 30));
      ids_.push_back(j % 5 == 1 ? 0 : 7);
    }
    query_offsets_ = {0, query_length_[0], static_cast<std::int32_t>(T)};
    key_offsets_ = {0, key_length_[0], static_cast<std::int32_t>(S)};
  }

  void expect_harmless() {
    for (const Case& one : cases()) {
      SCOPED_TRACE(one.name);
      SCOPED_TRACE(::testing::Message() << "T=" << T_ << " S=" << S_ << " poison=" << poison_);
      poison_keys(one);
      poison_queries(one);
      poison_bias(one);
      poison_saved(one);
    }
  }

 private:
  std::vector<Case> cases() const {
    const auto matrix = ScoreView<const std::uint8_t>::contiguous(dense_.data(), 1, 1, T_, S_);
    const auto set = [this](index i, index j) {
      return dense_[static_cast<std::size_t>(i * S_ + j)] != 0;
    };
    const index shift = S_ - T_, T1 = query_length_[0], S1 = key_length_[0];
    const Attention<float> packed{.mask = mask::Causal(),
                                  .packed = {view_of(query_offsets_), view_of(key_offsets_)}};
    return {
        {"causal", {.mask = mask::Causal()}, [=](index i, index j) { return j <= i + shift; }},
        {"window",
         {.mask = mask::Window(5, 3)},
         [=](index i, index j) { return j >= i + shift - 5 && j <= i + shift + 3; }},
        {"key lengths",
         {.mask = mask::KeyLengths(view_of(key_length_))},
         [=](index, index j) { return j < S1; }},
        {"query lengths",
         {.mask = mask::QueryLengths(view_of(query_length_))},
         [=](index i, index) { return i < T1; }},
        {"head windows",
         {.mask = mask::HeadWindows({windows_.data(), 4, 2})},
         [=](index i, index j) { return j >= i + shift - 7 && j <= i + shift + 9; }},
        {"dilated",
         {.mask = mask::dilated(3, 4, 1)},
         [=](index i, index j) {
           const index distance = j - i - shift;
           return distance % 3 == 0 && distance >= -12 && distance <= 3;
         }},
        {"strided",
         {.mask = mask::Strided(4)},
         [=](index i, index j) {
           const index distance = j - i - shift;
           return std::abs(distance) < 4 || distance % 4 == 0;
         }},
        {"segments",
         {.mask = mask::Segments({query_segments_.data(), 1, T_}, {key_segments_.data(), 1, S_})},
         [=](index i, index j) { return i / 20 == j / 30; }},
        {"padding",
         {.mask = mask::NotPadding({ids_.data(), 1, S_})},
         [=](index, index j) { return j % 5 != 1; }},
        {"keep", {.mask = mask::Keep(matrix)}, set},
        {"drop", {.mask = mask::Drop(matrix)}, [=](index i, index j) { return !set(i, j); }},
        {"keep & causal, with dropout",
         {.mask = mask::Keep(matrix) & mask::Causal(), .dropout = {.probability = 0.3}},
         [=](index i, index j) { return set(i, j) && j <= i + shift; }},
        {"packed causal", packed, [=, this](index i, index j) {
           const bool first = i < T1 && j < S1 && j <= i + S1 - T1;
           const index i2 = i - T1, j2 = j - S1, T2 = T_ - T1, S2 = S_ - S1;
           return first || (i2 >= 0 && j2 >= 0 && j2 <= i2 + S2 - T2);
         }}};
  }

  // Results of rows that nothing non_finite may reach are those of the clean call.
  void expect_same(const Case& one, Call<V>& bad, const std::vector<bool>& bad_query,
                   const std::vector<bool>& bad_key) const {
    Call<V> good = clean_;
    good.want_weights();
    bad.want_weights();
    good.run(one.attention);
    bad.run(one.attention);
    expect_rows("o", good.o, bad.o, bad_query);
    expect_rows("lse", good.lse, bad.lse, bad_query, good.H);
    expect_rows("weights", good.weights, bad.weights, bad_query, good.H);
    expect_rows("dq", good.dq, bad.dq, bad_query);
    expect_rows("dk", good.dk, bad.dk, bad_key);
    expect_rows("dv", good.dv, bad.dv, bad_key);
  }

  // The rows [heads][row][width] that are not skipped are the same.
  template <class Values>
  static void expect_rows(const char* name, const Values& a, const Values& b,
                          const std::vector<bool>& skip, index heads = 1) {
    const std::size_t rows = skip.size() * static_cast<std::size_t>(heads);
    const std::size_t width = a.size() / rows;
    for (std::size_t n = 0; n < rows; ++n) {
      if (skip[n % skip.size()]) continue;
      const auto at = static_cast<std::ptrdiff_t>(n * width);
      const auto end = at + static_cast<std::ptrdiff_t>(width);
      ASSERT_TRUE(std::equal(a.begin() + at, a.begin() + end, b.begin() + at))
          << name << " of row " << n;
    }
  }

  // What the forward left of queries that keep nothing, and their gradients from above.
  void poison_saved(const Case& one) const {
    Call<V> good = clean_, bad = clean_;
    good.run(one.attention);
    bad.forward(one.attention);
    for (index i = 0; i < T_; ++i) {
      bool any = false;
      for (index j = 0; j < S_; ++j) any = any || one.keeps(i, j);
      if (any) continue;
      std::fill_n(bad.o_row(0, i, 0), bad.H * bad.Dv, value_of<V>(poison_));
      std::fill_n(bad.d_o_row(0, i, 0), bad.H * bad.Dv, value_of<V>(poison_));
      for (index h = 0; h < bad.H; ++h) {
        bad.lse[static_cast<std::size_t>(h * T_ + i)] = poison_;
        bad.lse_low[static_cast<std::size_t>(h * T_ + i)] = poison_;
      }
    }
    bad.backward(one.attention);
    expect_rows("dq by what was saved", good.dq, bad.dq,
                std::vector<bool>(static_cast<std::size_t>(T_)));
    expect_rows("dk by what was saved", good.dk, bad.dk,
                std::vector<bool>(static_cast<std::size_t>(S_)));
    expect_rows("dv by what was saved", good.dv, bad.dv,
                std::vector<bool>(static_cast<std::size_t>(S_)));
  }

  // A non_finite key spoils the queries that keep it, and what those keep in turn; no other row.
  void poison_keys(const Case& one) const {
    for (const index key : {index{0}, S_ / 3, S_ / 2 + 1, S_ - 2, S_ - 1}) {
      std::vector<bool> queries(static_cast<std::size_t>(T_)), keys(static_cast<std::size_t>(S_));
      for (index i = 0; i < T_; ++i) spoil(one, i, one.keeps(i, key), queries, keys);
      Call<V> bad = clean_;
      std::fill_n(bad.k_row(0, key, 0), bad.G * bad.D, value_of<V>(poison_));
      std::fill_n(bad.v_row(0, key, 0), bad.G * bad.Dv, value_of<V>(poison_));
      expect_same(one, bad, queries, keys);
    }
  }

  // A query, and its gradient from above, are poisoned likewise.
  void poison_queries(const Case& one) const {
    for (const index query : {index{0}, T_ / 2, T_ - 1}) {
      std::vector<bool> queries(static_cast<std::size_t>(T_)), keys(static_cast<std::size_t>(S_));
      bool any = false;
      for (index j = 0; j < S_; ++j) any = any || one.keeps(query, j);
      spoil(one, query, any, queries, keys);
      Call<V> bad = clean_;
      std::fill_n(bad.q_row(0, query, 0), bad.H * bad.D, value_of<V>(poison_));
      std::fill_n(bad.d_o_row(0, query, 0), bad.H * bad.Dv, value_of<V>(poison_));
      expect_same(one, bad, queries, keys);
    }
  }

  void spoil(const Case& one, index i, bool is, std::vector<bool>& queries,
             std::vector<bool>& keys) const {
    if (!is) return;
    queries[static_cast<std::size_t>(i)] = true;
    for (index j = 0; j < S_; ++j) {
      if (one.keeps(i, j)) keys[static_cast<std::size_t>(j)] = true;
    }
  }

  // Every masked bias at once.
  void poison_bias(const Case& one) const {
    std::vector<float> non_finite = bias_;
    for (index i = 0; i < T_; ++i) {
      for (index j = 0; j < S_; ++j) {
        if (!one.keeps(i, j)) non_finite[static_cast<std::size_t>(i * S_ + j)] = poison_;
      }
    }
    Call<V> good = clean_, bad = clean_;
    Attention<float> attention = one.attention;
    attention.bias = MatrixBias(bias_, S_);
    good.run(attention);
    attention.bias = MatrixBias(non_finite, S_);
    bad.run(attention);
    EXPECT_TRUE(same_results(good, bad)) << "by a masked bias";
  }

  index T_, S_;
  float poison_;
  Call<V> clean_;
  std::vector<float> bias_;
  std::vector<std::uint8_t> dense_;
  std::vector<std::int32_t> key_length_, query_length_, query_offsets_, key_offsets_;
  std::vector<std::int32_t> query_segments_, key_segments_, ids_;
  std::vector<std::int32_t> windows_ = {7, 9, 7, 9, 7, 9, 7, 9};
};

TEST(AttentionPoison, ReachesNobodyThroughAMask) {
#ifdef FOVEA_FEW_PROBLEMS
  const std::vector<std::pair<index, index>> sizes = {{17, 49}, {97, 257}};
  const std::vector<float> poisons = {kNaN};
#else
  const std::vector<float> poisons = {kNaN, kInfinity, -kInfinity};
  const std::vector<std::pair<index, index>> sizes = {{15, 16},  {17, 17},  {47, 49},   {48, 65},
                                                      {63, 95},  {65, 97},  {128, 129}, {129, 255},
                                                      {70, 257}, {130, 300}};
#endif
  // Each instruction set sees every size, and over the sizes every poison.
  std::size_t run = 0;
  for_each_isa([&] {
    for (const auto& [T, S] : sizes) {
      Poisoned<float>(T, S, poisons[run++ % poisons.size()]).expect_harmless();
      if (::testing::Test::HasFailure()) return;
    }
  });
}

TEST(AttentionPoison, ReachesNobodyThroughAMaskInBFloat16) {
#ifdef FOVEA_FEW_PROBLEMS
  const std::vector<std::pair<index, index>> sizes = {{47, 49}};
#else
  const std::vector<std::pair<index, index>> sizes = {{15, 16}, {47, 49}, {65, 97}, {129, 257}};
#endif
  for (const float poison : {kNaN, kInfinity, -kInfinity}) {
    for (const auto& [T, S] : sizes) {
      Poisoned<BFloat16>(T, S, poison).expect_harmless();
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// Where nothing is masked, poison is passed on: silence would hide a diverging model.
TEST(AttentionPoison, ReachesWhoKeepsIt) {
  Call<float> call({.T = 3, .S = 100, .D = 4, .Dv = 4}, 2);
  call.k_row(0, 60, 0)[1] = kNaN;
  call.forward({});
  EXPECT_TRUE(std::all_of(call.o.begin(), call.o.end(), [](float x) { return std::isnan(x); }));
}

TEST(AttentionPoison, ReachesTheGradientsOfWhoKeepsIt) {
  const auto gradients = [](Method method, bool in_query) {
    Call<float> call({.T = 3, .S = 20, .D = 4, .Dv = 4}, 2);
    (in_query ? call.q[5] : call.k_row(0, 7, 0)[1]) = kNaN;
    call.run({}, method);
    std::vector<bool> non_finite;
    for (const auto* values : {&call.o, &call.dq, &call.dk, &call.dv}) {
      for (const float x : *values) non_finite.push_back(std::isnan(x));
    }
    return non_finite;
  };
  for (const bool in_query : {false, true}) {
    const std::vector<bool> expected = gradients(Method::kReference, in_query);
    EXPECT_TRUE(std::count(expected.begin(), expected.end(), true) > 0);
    for_each_isa([&] { EXPECT_EQ(gradients(Method::kFused, in_query), expected); });
  }
}

}  // namespace
}  // namespace fovea::testing

// SPDX-License-Identifier: Apache-2.0
// Scores of any finite size: the weights that the backward makes of lse are those of the forward,
// with lse_low and without.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "fovea/attention/fused/backward.h"
#include "tests/attention/support/call.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

constexpr index kKeys = 66;

// Key j has the score q k[j % k.size()].
struct Scores {
  double q;
  std::vector<double> k;
};

template <class V>
Call<V> call_of(const Scores& scores) {
  Call<V> call({.T = 5, .S = kKeys, .D = 1, .Dv = 20}, 1);
  std::fill(call.q.begin(), call.q.end(), static_cast<V>(static_cast<float>(scores.q)));
  for (std::size_t j = 0; j < call.k.size(); ++j) {
    call.k[j] = static_cast<V>(static_cast<float>(scores.k[j % scores.k.size()]));
  }
  return call;
}

template <class V>
void backward_without_low(Call<V>& call, const Attention<V>& attention, int threads = 1) {
  AttentionSaved<V> saved = call.saved();
  saved.lse_low = {};
  attention_backward<V>(Context(threads), attention, call.in(), saved, call.gradients());
}

template <class V>
void expect_near(const Call<V>& call, const Call<double>& exact, double bound) {
  const auto expect = [bound](const char* name, const std::vector<V>& fused,
                              const std::vector<double>& of, double size) {
    EXPECT_LE(largest_difference({fused.begin(), fused.end()}, of), bound * size) << name;
  };
  // With equal keys dq is 0: a sum of terms as large as the keys, which cancel.
  expect("dq", call.dq, exact.dq, largest_magnitude(exact.k));
  expect("dk", call.dk, exact.dk, largest_magnitude(exact.dk));
  expect("dv", call.dv, exact.dv, largest_magnitude(exact.dv));
}

template <class V>
void expect_right(const Scores& scores) {
  SCOPED_TRACE(fmt::format("scores of {}", scores.q * scores.k[0]));
  std::vector<V> sink = {static_cast<V>(static_cast<float>(scores.q * scores.k[0]))}, dsink = {0};
  std::vector<double> exact_sink = {sink.begin(), sink.end()}, exact_dsink = {0};
  for (const bool sinks : {false, true}) {
    Attention<V> attention;
    Attention<double> of_exact;
    if (sinks) {
      attention.sink = {{sink.data(), 1}, {dsink.data(), 1}};
      of_exact.sink = {{exact_sink.data(), 1}, {exact_dsink.data(), 1}};
    }
    Call<double> exact = call_of<double>(scores);
    exact.run(of_exact, Method::kReference);
    Call<V> call = call_of<V>(scores);
    call.run(attention);
    expect_near(call, exact, 16 * static_cast<double>(std::numeric_limits<V>::epsilon()));
    EXPECT_NEAR(static_cast<double>(dsink[0]), exact_dsink[0], 1e-5);
    backward_without_low(call, attention);
    expect_near(call, exact, 1e-4);
  }
}

TEST(SavedLse, WeightsAreRightForScoresOfAnySize) {
  const float most = std::numeric_limits<float>::max();
  for_each_isa([&] {
    for (const Scores& scores :
         {Scores{1, {3}}, Scores{1e4, {1}}, Scores{1e7, {1}}, Scores{1e15, {1e15}},
          Scores{1e15, {-1e15}}, Scores{1, {most / 2}}, Scores{-1, {most / 2}}, Scores{-1, {most}},
          Scores{1e15, {1e15, 1e15, -1e15, 0, 1}}, Scores{1e15, {-1e15, -1e15, -1e16}},
          Scores{1e4, {1, 1 + 0x1p-13, 1 - 0x1p-13}}}) {
      expect_right<float>(scores);
      expect_right<double>(scores);
    }
  });
}

// Rows of small scores do not change beside rows of large ones; nor do any with the threads.
TEST(SavedLse, ARowHasTheBitsThatItHasByItself) {
  const Sizes sizes{.B = 2, .T = 90, .S = 300, .H = 2, .G = 1, .D = 8, .Dv = 8};
  Call<float> small(sizes, 2), large = small;
  std::fill_n(large.q_row(1, 0, 0), sizes.T * sizes.H * sizes.D, 1e4f);
  small.forward({});
  large.forward({});
  backward_without_low(small, {});
  backward_without_low(large, {});
  const std::ptrdiff_t row = sizes.T * sizes.H * sizes.D, key_row = sizes.S * sizes.D;
  EXPECT_TRUE(std::equal(small.dq.begin(), small.dq.begin() + row, large.dq.begin()));
  EXPECT_TRUE(std::equal(small.dk.begin(), small.dk.begin() + key_row, large.dk.begin()));
  Call<float> threads = large;
  backward_without_low(threads, {}, 8);
  EXPECT_TRUE(same_results(threads, large));
}

// The scores that are computed again are those of the forward: turned, with biases, and masked.
TEST(SavedLse, EveryPartOfTheScoreCounts) {
  std::vector<float> slopes = {0.5f}, table = normals<float>(3, 5 * 8);
  float entropy[90];
  Attention<float> attention{
      .score = score::Cosine{5e4},
      .bias = bias::Alibi<float>({slopes.data(), 1}),
      .mask = mask::Causal(),
      .dropout = {.probability = 0.2},
      .values = values::Shaw<float>({table.data(), 5, 8}),
      .observe = observe::Entropy<float>(RowView<float>::contiguous(entropy, 1, 1, 90)),
      .rotary = {RotaryPairs::kHalves, 100}};
  Call<float> call({.T = 90, .S = 90, .D = 8, .Dv = 8}, 4);
  call.run(attention);
  std::fill(std::begin(entropy), std::end(entropy), -77.0f);
  Call<float> without = call;
  backward_without_low(without, attention);
  EXPECT_EQ(std::count(std::begin(entropy), std::end(entropy), -77.0f), 90) << "seen twice";
  EXPECT_LE(difference(without.dv, call.dv), 1e-4);
  EXPECT_LE(difference(without.dq, call.dq), 1e-4 * 5e4);
}

}  // namespace
}  // namespace fovea::testing

// SPDX-License-Identifier: Apache-2.0
// Observers against their definition, and what they must not do.
#include "fovea/attention/fused/observed_tile.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/attention/support/call.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

// The key that each query looks at most, and its weight: row() and clear() alone, as one writes it
// outside the library.
class Favourite final : public Observer<float> {
 public:
  Favourite(RowView<float> key, RowView<float> weight) : key_(key), weight_(weight) {}
  void row(const ObservedRow<float>& row) const override {
    const float* most = std::max_element(row.weights.begin(), row.weights.end());
    const bool any = most != row.weights.end() && *most > 0;
    const index i = row.sequence.query_row + row.i;
    key_.at(row.sequence.batch, row.head, i) =
        any ? static_cast<float>(most - row.weights.begin()) : -1;
    weight_.at(row.sequence.batch, row.head, i) = any ? *most : 0;
  }
  void clear() const override {
    for (index n = 0; n < key_.batch * key_.heads * key_.length; ++n) {
      key_.data[n] = -1;
      weight_.data[n] = 0;
    }
  }
  std::string name() const override { return "favourite"; }

 private:
  RowView<float> key_, weight_;
};

struct Seen {
  std::vector<float> key, weight, entropy, maximum, distance;
};

Seen observe(const Attention<float>& attention, Call<float>& call, Method method, int threads = 2) {
  Seen seen;
  const auto rows = [&](std::vector<float>& values) {
    values.assign(static_cast<std::size_t>(call.B * call.H * call.T), -77.0f);
    return RowView<float>::contiguous(values.data(), call.B, call.H, call.T);
  };
  Attention<float> observed = attention;
  observed.observe =
      Favourite(rows(seen.key), rows(seen.weight)) + observe::Entropy<float>(rows(seen.entropy));
  observed.observe = observed.observe + observe::Maximum<float>(rows(seen.maximum)) +
                     observe::Distance<float>(rows(seen.distance));
  EXPECT_EQ(observed.observe.name(), "favourite + entropy + maximum + distance");
  call.forward(observed, method, threads);
  return seen;
}

TEST(Observers, AreTheirDefinition) {
  const std::int32_t key_lengths[] = {300, 0}, query_lengths[] = {130, 70};
  const Attention<float> attention{.mask = mask::Window(150, 20) &
                                           mask::KeyLengths({key_lengths, 2}) &
                                           mask::QueryLengths({query_lengths, 2}),
                                   .dropout = {.probability = 0.4}};
  Call<float> call({.B = 2, .T = 130, .S = 300, .H = 4, .G = 2, .D = 8, .Dv = 5});
  const Seen exact = observe(attention, call, Method::kReference);
  for_each_isa([&] {
    const Seen seen = observe(attention, call, Method::kFused);
    EXPECT_EQ(seen.key, exact.key);
    EXPECT_LE(difference(seen.weight, exact.weight), 1e-5);
    EXPECT_LE(difference(seen.entropy, exact.entropy), 1e-4);
    EXPECT_LE(difference(seen.maximum, exact.maximum), 1e-5);
    EXPECT_LE(difference(seen.distance, exact.distance), 1e-3);
  });
  // The second batch row has no key at all.
  EXPECT_EQ(exact.key.back(), -1);
  EXPECT_EQ(exact.entropy.back(), 0);
  EXPECT_EQ(exact.maximum.back(), -std::numeric_limits<float>::infinity());
}

TEST(Observers, ChangeNoResult) {
  const Attention<float> attention{.mask = mask::Causal(), .dropout = {.probability = 0.1}};
  Call<float> alone({.T = 200, .S = 200, .H = 2, .G = 1, .D = 16, .Dv = 16}), watched = alone;
  alone.run(attention);
  observe(attention, watched, Method::kFused);
  watched.backward(attention);
  EXPECT_TRUE(same_results(alone, watched));
}

// Two equal scores: entropy log 2, whatever the scores are; the largest is that score.
TEST(Observers, KnowTwoEqualKeys) {
  for (const float score : {0.0f, 3.0f, -2e38f}) {
    Call<float> call({.T = 1, .S = 2});
    call.q = {1};
    call.k = {score, score};
    const Seen seen = observe({}, call, Method::kFused);
    EXPECT_NEAR(seen.entropy[0], std::log(2.0), 1e-6);
    EXPECT_EQ(seen.maximum[0], score);
    EXPECT_NEAR(seen.distance[0], 0.5, 1e-6) << "the query stands at key 1";
  }
}

TEST(Observers, PassPoisonOn) {
  for (const Method method : {Method::kReference, Method::kFused}) {
    Call<float> call({.T = 2, .S = 100, .D = 4});
    call.q[1] = std::numeric_limits<float>::quiet_NaN();
    const Seen seen = observe({}, call, method);
    EXPECT_TRUE(std::isnan(seen.entropy[0]) && std::isnan(seen.maximum[0]) &&
                std::isnan(seen.distance[0]));
    EXPECT_FALSE(std::isnan(seen.entropy[1]) || std::isnan(seen.maximum[1]));
  }
}

// A score that overflows has no softmax: the maximum says so in the same way as the rest does.
TEST(Observers, PassOverflowOn) {
  for (const Method method : {Method::kReference, Method::kFused}) {
    for (const index key : {0, 99, 250}) {  // in the first block of keys, and in a later one
      Call<float> call({.T = 2, .S = 300});
      call.q = {3e38f, 0};
      *call.k_row(0, key, 0) = 3e38f;
      const Seen seen = observe({}, call, method);
      EXPECT_TRUE(std::isnan(call.lse[0]) && std::isnan(seen.maximum[0]) &&
                  std::isnan(seen.entropy[0]));
      EXPECT_EQ(seen.maximum[1], 0);
    }
  }
}

TEST(Observers, ViewsAreChecked) {
  Call<float> call({.B = 2, .T = 4, .S = 4, .H = 3, .G = 3});
  std::vector<float> values(24);
  const auto with = [&](RowView<float> view) {
    call.forward({.observe = observe::Entropy<float>(view)});
  };
  with(RowView<float>::contiguous(values.data(), 2, 3, 4));
  EXPECT_THROWS(with(RowView<float>::contiguous(values.data(), 2, 3, 5)), kShape,
                "entropy must be [B=2, H=3, T=4]");
  EXPECT_THROWS(with(RowView<float>::contiguous(nullptr, 2, 3, 4)), kShape, "no data");
  EXPECT_THROWS(with({values.data(), 2, 3, 4, 0, 4, 1}), kShape, "must not overlap");
  EXPECT_THROWS(Observe<float>(std::shared_ptr<const Observer<float>>()), kShape,
                "an observer was given as a null pointer");
}

}  // namespace
}  // namespace fovea::testing

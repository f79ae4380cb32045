// SPDX-License-Identifier: Apache-2.0
// A row that keeps one key has the weight 1, whatever its score: the gradient of that score is
// exactly 0 under every part, on every instruction set, and so is all that follows from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/attention/support/table.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

constexpr index kT = 70, kWidth = 4;

template <class V>
bool all_zero(const std::vector<V>& values) {
  return std::all_of(values.begin(), values.end(), [](V x) { return x == V{0}; });
}

// One call whose rows keep one key each.
template <class V>
class OneKey {
 public:
  explicit OneKey(index S)
      : parts_{.most = S, .queries = kT},
        call_({.T = kT, .S = S, .H = 2, .G = 1, .D = kWidth, .Dv = PartData<V>::kDv}, 6) {
    keep_.assign(static_cast<std::size_t>(kT * S), 0);
    for (index i = 0; i < kT; ++i) keep_[static_cast<std::size_t>(i * S + 7 * i % S)] = 1;
  }

  void expect_zero(Attention<V> attention, bool with_low = true) {
    attention.mask =
        mask::Keep(ScoreView<const std::uint8_t>::contiguous(keep_.data(), 1, 1, kT, call_.S));
    call_.forward(attention);
    for (auto& bias : parts_.biases) std::fill(bias.dx.begin(), bias.dx.end(), V{0});
    parts_.dlearned = {};
    AttentionSaved<V> saved = call_.saved();
    if (!with_low) saved.lse_low = {};
    attention_backward<V>(Context(1), attention, call_.in(), saved, call_.gradients());
    EXPECT_TRUE(all_zero(call_.dq)) << "dq";
    EXPECT_TRUE(all_zero(call_.dk)) << "dk";
    for (const auto& bias : parts_.biases) {
      EXPECT_TRUE(all_zero(bias.dx)) << "d" << bias.part().tensor;
    }
    EXPECT_TRUE(all_zero(parts_.dw)) << "dw of the score";
    EXPECT_EQ(parts_.dlearned, (std::array<V, 2>{}));
    EXPECT_FALSE(all_zero(call_.dv)) << "the weight is not 0";
  }
  PartData<V>& parts() { return parts_; }

 private:
  PartData<V> parts_;
  Call<V> call_;
  std::vector<std::uint8_t> keep_;
};

template <class V>
void expect_zero_gradients(index S) {
  OneKey<V> one(S);
  for (const auto& values : value_table<V>()) {
    for (const double dropout : {0.0, 0.3}) {
      for (const auto& bias : bias_table<V>()) {
        SCOPED_TRACE(std::string(values.name) + ", " + bias.name);
        one.expect_zero({.bias = bias.make(one.parts()),
                         .dropout = {.probability = dropout},
                         .values = values.make(one.parts())});
      }
      one.expect_zero({.values = values.make(one.parts())}, false);
    }
  }
}

TEST(OneKey, GradientOfItsScoreIsZero) {
  for_each_isa([] {
    for (const index S : {1, 140, 270}) {
      SCOPED_TRACE(S);
      expect_zero_gradients<float>(S);
    }
    expect_zero_gradients<double>(140);
  });
}

TEST(OneKey, GradientOfItsScoreIsZeroHoweverItIsMade) {
  for_each_isa([] {
    for (const auto& score : score_table<float>()) {
      SCOPED_TRACE(score.name);
      OneKey<float> one(140);
      Attention<float> attention{.values = value_table<float>().back().make(one.parts())};
      score.set(attention, one.parts(), kWidth);
      one.expect_zero(attention);
    }
  });
}

// The first query of a causal sequence sees one key, the others see more.
TEST(OneKey, TheFirstRowUnderACausalMask) {
  for_each_isa([] {
    Call<float> call({.T = 200, .S = 200, .H = 2, .G = 2, .D = 16, .Dv = PartData<float>::kDv}, 7);
    for (const auto& values : value_table<float>()) {
      SCOPED_TRACE(values.name);
      PartData<float> parts;
      call.run({.mask = mask::Causal(), .values = values.make(parts)});
      EXPECT_TRUE(
          std::all_of(call.dq.begin(), call.dq.begin() + 2 * 16, [](float x) { return x == 0; }));
      EXPECT_FALSE(all_zero(call.dq));
    }
  });
}

// A diverging model is noticed.
TEST(OneKey, AGradientThatIsNoNumberIsNotTakenForZero) {
  for_each_isa([] {
    Call<float> call({.T = 8, .S = 1, .D = 4, .Dv = PartData<float>::kDv}, 8);
    call.d_o[0] = std::numeric_limits<float>::quiet_NaN();
    PartData<float> parts;
    call.run({.values = value_table<float>().back().make(parts)});
    EXPECT_TRUE(std::isnan(call.dq[0]));
    EXPECT_EQ(call.dq[4], 0) << "of the next row";
  });
}

}  // namespace
}  // namespace fovea::testing

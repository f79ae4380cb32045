// SPDX-License-Identifier: Apache-2.0
// The fused backward: golden gradients, dropout, and what is not asked for.
#include <gtest/gtest.h>

#include "fovea/attention/call.h"
#include "tests/attention/support/golden.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

TEST(AttentionBackward, MatchesGoldenGradients) {
  for_each_isa([] {
    golden::expect_backward<double>(Method::kFused);
    golden::expect_backward<float>(Method::kFused);
  });
}

// Saturated: one weight is 1, the rest 0 in float. Every gradient of a score is then exactly 0.
TEST(AttentionBackward, ASaturatedRowHasNoGradientOfItsScores) {
  for_each_isa([] {
    Call<float> call({.T = 5, .S = 130, .D = 3, .Dv = 20}, 1);
    for (float& x : call.q) x = 100;
    for (index j = 0; j < 130; ++j) std::fill_n(call.k_row(0, j, 0), 3, j == 77 ? 50.0f : -50.0f);
    call.run({});
    EXPECT_EQ(call.dq, std::vector<float>(15, 0.0f));
    EXPECT_EQ(call.dk, std::vector<float>(390, 0.0f));
  });
}

TEST(AttentionBackward, GradientsThatAreNotWantedMayBeLeftOut) {
  Call<float> all({.B = 2, .T = 40, .S = 70, .H = 4, .G = 2, .D = 8, .Dv = 4}, 2);
  all.run({});
  for (int wanted = 0; wanted < 8; ++wanted) {
    Call<float> some = all;
    some.dq.assign(some.dq.size(), -77);
    some.dk.assign(some.dk.size(), -77);
    some.dv.assign(some.dv.size(), -77);
    AttentionGradients<float> gradients;
    if (wanted & 1) gradients.dq = some.gradients().dq;
    if (wanted & 2) gradients.dk = some.gradients().dk;
    if (wanted & 4) gradients.dv = some.gradients().dv;
    attention_backward<float>(Context(1), {}, some.in(), some.saved(), gradients);
    EXPECT_EQ(some.dq, wanted & 1 ? all.dq : std::vector<float>(all.dq.size(), -77));
    EXPECT_EQ(some.dk, wanted & 2 ? all.dk : std::vector<float>(all.dk.size(), -77));
    EXPECT_EQ(some.dv, wanted & 4 ? all.dv : std::vector<float>(all.dv.size(), -77));
  }
}

// Without lse_low the weights of large scores are less exact, those of small ones are as good.
TEST(AttentionBackward, LowPartOfLseIsOptional) {
  for (const double magnitude : {1.0, 30.0}) {
    Call<float> with({.T = 64, .S = 300, .D = 16, .Dv = 16}, 3);
    for (float& x : with.q) x *= static_cast<float>(magnitude);
    Call<double> exact({.T = 64, .S = 300, .D = 16, .Dv = 16}, 3);
    exact.q.assign(with.q.begin(), with.q.end());
    exact.run({}, Method::kReference);
    with.forward({});
    Call<float> without = with;
    with.backward({});
    AttentionSaved<float> saved = without.saved();
    saved.lse_low = {};
    attention_backward<float>(Context(1), {}, without.in(), saved, without.gradients());
    const auto error = [&](const Call<float>& call) {
      return largest_difference({call.dv.begin(), call.dv.end()}, exact.dv);
    };
    EXPECT_LE(error(with), 1e-5 * largest_magnitude(exact.dv));
    EXPECT_LE(error(without), 1e-5 * magnitude * largest_magnitude(exact.dv));
  }
}

// Spec A18. Values of 1: o is the share of the weights that stays, times 1 / (1 - p).
TEST(AttentionDropout, ScalesWhatItKeeps) {
  const double p = 0.25;
  for_each_isa([&] {
    Call<float> call({.T = 300, .S = 512, .D = 4, .Dv = 1}, 4);
    std::fill(call.q.begin(), call.q.end(), 0.0f);
    std::fill(call.v.begin(), call.v.end(), 1.0f);
    call.want_weights();
    call.forward({.dropout = {.probability = p, .seed = 1}});
    double mean = 0;
    for (const float o : call.o) {
      const double kept = static_cast<double>(o) * 512 * (1 - p);
      EXPECT_NEAR(kept, std::round(kept), 1e-3) << "not a count of equal weights";
      mean += static_cast<double>(o) / 300;
    }
    // 300 x 512 weights of 1 / 512: the mean has deviation sqrt(p / (1 - p) / (300 x 512)).
    EXPECT_NEAR(mean, 1, 4 * std::sqrt(p / (1 - p) / (300 * 512)));
    EXPECT_EQ(call.weights[5], 1.0f / 512) << "weights are those before dropout";
    EXPECT_NEAR(call.lse[7], std::log(512.0), 1e-6) << "dropout changes no log-sum-exp";
  });
}

TEST(AttentionDropout, ExpectedOutputIsTheOutput) {
  Call<float> call({.T = 4, .S = 60, .D = 8, .Dv = 3}, 5), dropped = call;
  call.forward({});
  std::vector<double> mean(call.o.size());
  constexpr int kSteps = 4000;
  for (int step = 0; step < kSteps; ++step) {
    dropped.forward(
        {.dropout = {.probability = 0.1, .seed = 3, .step = static_cast<std::uint64_t>(step)}});
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] += static_cast<double>(dropped.o[i]) / kSteps;
  }
  for (std::size_t i = 0; i < mean.size(); ++i)
    EXPECT_NEAR(mean[i], static_cast<double>(call.o[i]), 0.02);
}

// One score in 65536 is decided by more than its sixteen bits: the same in tiles and by definition.
TEST(AttentionDropout, TiesAreThoseOfTheDefinition) {
  const Attention<double> attention{.dropout = {.probability = 1.0 / 3, .seed = 2}};
  const Sequence sequence{.queries = 700, .keys = 700};
  const DropoutStream stream = dropout_stream(attention.dropout, sequence, 0);
  const DropoutRule rule = dropout_rule(attention.dropout);
  index kept = 0, dropped = 0;
  for (index n = 0; n < 700 * 700; ++n) {
    if (dropout_bits(stream, n / 700, n % 700) != rule.threshold) continue;
    ++(drops(rule, stream, n / 700, n % 700) ? dropped : kept);
  }
  ASSERT_GT(std::min(kept, dropped), 0) << "no ties, no test";
  Call<double> reference({.T = 700, .S = 700, .D = 2, .Dv = 2}, 8);
  reference.run(attention, Method::kReference);
  for_each_isa([&] {
    Call<double> fused({.T = 700, .S = 700, .D = 2, .Dv = 2}, 8);
    fused.run(attention);
    EXPECT_LE(difference(fused.o, reference.o), 1e-12);
    EXPECT_LE(difference(fused.dv, reference.dv), 1e-12);
    EXPECT_LE(difference(fused.dk, reference.dk), 1e-12);
  });
}

// A mask follows from seed, step, layer, sample and head, each of them, and from nothing else.
TEST(AttentionDropout, MaskIsAFunctionOfItsNames) {
  const auto run = [](const Dropout& dropout) {
    Call<float> call({.B = 2, .T = 20, .S = 30, .H = 2, .G = 1, .D = 4, .Dv = 4}, 6);
    call.forward({.dropout = dropout});
    return call.o;
  };
  const Dropout base{.probability = 0.5, .seed = 1, .step = 2, .layer = 3};
  const auto o = run(base);
  EXPECT_EQ(o, run(base));
  for (const auto change :
       {+[](Dropout& d) { d.seed += std::uint64_t{1} << 32; },
        +[](Dropout& d) { d.step += std::uint64_t{1} << 32; }, +[](Dropout& d) { d.seed ^= 1; },
        +[](Dropout& d) { d.step ^= 1; }, +[](Dropout& d) { d.layer ^= 1; }}) {
    Dropout other = base;
    change(other);
    EXPECT_NE(o, run(other));
  }
  const std::uint64_t in_order[] = {0, 1}, far[] = {0, std::uint64_t{1} << 32};
  Dropout numbered = base;
  numbered.samples = {in_order, 2};
  EXPECT_EQ(o, run(numbered)) << "samples are 0, 1, 2, ... unless numbered";
  numbered.samples = {far, 2};
  EXPECT_NE(o, run(numbered));
}

TEST(AttentionDropout, ZeroIsNone) {
  Call<float> call({.T = 20, .S = 30, .D = 4, .Dv = 4}, 7), none = call;
  call.run({});
  none.run({.dropout = {.probability = 0, .seed = 5}});
  EXPECT_TRUE(same_results(call, none));
}

}  // namespace
}  // namespace fovea::testing

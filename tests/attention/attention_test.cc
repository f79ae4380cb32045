// SPDX-License-Identifier: Apache-2.0
// The fused kernels against the definition, on every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "fovea/attention/fused/query_tiles.h"
#include "fovea/attention/fused/scratch_sizes.h"
#include "fovea/base/profile.h"
#include "tests/attention/support/call.h"
#include "tests/attention/support/problem.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

// Under the sanitizers the first problems only.
#ifdef FOVEA_FEW_PROBLEMS
constexpr std::uint64_t kProblems = 40;
#else
constexpr std::uint64_t kProblems = 500;
#endif

// In parts, so that several run at once.
class FusedProblems : public ::testing::TestWithParam<std::uint64_t> {};
constexpr std::uint64_t kParts = 5;

TEST_P(FusedProblems, ErrorIsAtMostTwiceThatOfThePlainFloat) {
  for (std::uint64_t seed = GetParam(); seed < kProblems; seed += kParts) {
    const Problem problem(draw_shape(seed));
    SCOPED_TRACE(problem.shape.text());
    const Results exact = problem.run<double>(Method::kReference);
    PlainErrors plain(problem, exact);
    for_each_isa([&] { EXPECT_TRUE(plain.no_worse(problem.run<float>(Method::kFused))); });
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, FusedProblems, ::testing::Range<std::uint64_t>(0, kParts));

// How often an error is beyond twice another one.
struct Beyond {
  int fused = 0, plain = 0;

  void count(const Results& fast, const Results& loops, const Results& exact) {
    for (const auto of : {&Results::o, &Results::weights, &Results::dq, &Results::dk, &Results::dv,
                          &Results::dslopes, &Results::dt5, &Results::ddense, &Results::dshaw_k}) {
      const double fast_error = largest_difference(fast.*of, exact.*of);
      const double loops_error = largest_difference(loops.*of, exact.*of);
      fused += no_worse_than_plain("", fast.*of, loops_error, exact.*of) ? 0 : 1;
      plain += no_worse_than_plain("", loops.*of, fast_error, exact.*of) ? 0 : 1;
    }
  }
};

// Up to four columns have so few orders that the largest error of the plain loops is luck, where
// few rows have two large weights: the bound of the problems says nothing then. What can be said is
// that the plain loops are beyond twice the error of the kernels at least as often as the reverse.
TEST(FusedAttention, OfFewColumnsThePlainFloatIsAsWrong) {
  std::map<Isa, Beyond> beyond;
  for (std::uint64_t seed = 3000; seed < 3000 + kProblems / 12; ++seed) {
    for (const std::int64_t D : {1, 2, 3, 4}) {
      ProblemShape shape = draw_shape(seed);
      shape.D = D;
      const Problem problem(shape);
      const Results exact = problem.run<double>(Method::kReference);
      const Results loops = problem.run<float>(Method::kReference);
      for_each_isa(
          [&] { beyond[current_isa()].count(problem.run<float>(Method::kFused), loops, exact); });
    }
  }
  for (const auto& [isa, counts] : beyond) EXPECT_LE(counts.fused, counts.plain) << isa_name(isa);
}

void expect_close(const char* name, const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_LE(largest_difference(a, b), 1e-12 * (1 + largest_magnitude(b))) << name;
}

TEST(FusedAttention, DoubleGoesThroughTheSameCode) {
  for (std::uint64_t seed = 1000; seed < 1000 + kProblems / 5; ++seed) {
    ProblemShape shape = draw_shape(seed);
    shape.deviation = 1;
    if (seed % 7 == 0) shape.D = 1;
    if (seed % 5 == 0) shape.Dv = 1;
    const Problem problem(shape);
    SCOPED_TRACE(problem.shape.text());
    const Results exact = problem.run<double>(Method::kReference);
    for_each_isa([&] {
      const Results fast = problem.run<double>(Method::kFused);
      for (const auto& [name, of] : kResults) expect_close(name, fast.*of, exact.*of);
    });
  }
}

TEST(FusedAttention, SameBitsForAnyNumberOfThreads) {
  for (std::uint64_t seed = 2000; seed < 2000 + kProblems / 10; ++seed) {
    const Problem problem(draw_shape(seed));
    SCOPED_TRACE(problem.shape.text());
    const Results one = problem.run<float>(Method::kFused, 1);
    for (const int threads : {2, 3, 8, 64}) {
      const Results many = problem.run<float>(Method::kFused, threads);
      for (const auto& [name, of] : kResults) EXPECT_EQ(one.*of, many.*of) << name;
    }
  }
}

// With few threads, each has several tiles of such a sequence, which run together; with many, each
// has one.
TEST(FusedAttention, TilesMayRunTogether) {
  constexpr index T = 770, kWindow = 740, kSeen = T - 30;  // by the last tile, which has two
  constexpr index kWidestPanel = 32;                       // of doubles
  Call<double> call({.T = T, .S = T, .H = 2, .G = 2, .D = 64, .Dv = 64}), exact = call,
                                                                          alone = call;
  ASSERT_GT(detail::query_tiles_together<double>(64, 64, kSeen, 0, kWidestPanel), 1);
  ASSERT_GT(detail::key_tiles_together<double>({64, 64, 64, 64}, kSeen), 1);
  std::vector<double> slopes = {0.01, 0.02}, dslopes = {0, 0};
  const Attention<double> attention{
      .bias = bias::Alibi<double>({slopes.data(), 2}, {dslopes.data(), 2}),
      .mask = mask::Window(kWindow, kWindow)};
  exact.run(attention, Method::kReference);
  const std::vector<double> dslopes_exact = dslopes;
  for_each_isa([&] {
    call.run(attention, Method::kFused, 1);
    expect_close("o", call.o, exact.o);
    expect_close("lse", call.lse, exact.lse);
    expect_close("dq", call.dq, exact.dq);
    expect_close("dk", call.dk, exact.dk);
    expect_close("dv", call.dv, exact.dv);
    EXPECT_LE(largest_difference(dslopes, dslopes_exact),
              1e-10 * (1 + largest_magnitude(dslopes_exact)));
    const std::vector<double> dslopes_together = dslopes;
    alone.run(attention, Method::kFused, 64);
    EXPECT_EQ(call.o, alone.o);
    EXPECT_EQ(call.lse, alone.lse);
    EXPECT_EQ(call.dq, alone.dq);
    EXPECT_EQ(call.dk, alone.dk);
    EXPECT_EQ(call.dv, alone.dv);
    EXPECT_EQ(dslopes_together, dslopes);
  });
}

// With one thread, a run of tiles reads a copy of all keys; with many threads, runs are shorter and
// read the keys where they are.
TEST(FusedAttention, ManyQueriesReadACopyOfTheKeys) {
  constexpr index T = 1100;
  Call<float> copied({.B = 2, .T = T, .S = T, .H = 4, .G = 2, .D = 24, .Dv = 40}),
      in_place = copied, exact = copied;
  for (const Mask& mask : {Mask(mask::All()), Mask(mask::Causal())}) {
    const Attention<float> attention{.mask = mask};
    const AttentionInputs<float> in = copied.in();
    const auto sequences = detail::make_sequences(attention, in);
    const detail::QueryTiles tiles(sequences, 4, detail::tile_flops(sequences, in), 1);
    ASSERT_EQ(tiles.items(), 9) << "of 144 tiles";
    const detail::KernelCall<float> kernel_call(attention, in);
    const detail::QueryRun run{sequences[0], 0, T - 16 * 64, T};
    const auto head = detail::keys_of_run(kernel_call, run);
    exact.run(attention, Method::kReference);
    for_each_isa([&] {
      const auto lanes = detail::lane_counts<float>();
      EXPECT_EQ(detail::schedule_of(kernel_call, run, head, lanes).kv.all, lanes.panel == 64);
      copied.run(attention, Method::kFused, 1);
      in_place.run(attention, Method::kFused, 64);
      for (std::size_t i = 0; i < exact.o.size(); ++i) {
        ASSERT_NEAR(copied.o[i], exact.o[i], 1e-5);
      }
      EXPECT_EQ(copied.o, in_place.o);
      EXPECT_EQ(copied.lse, in_place.lse);
    });
  }
}

// A window whose tiles read few of the keys that its run reads is not worth a copy.
TEST(FusedAttention, AWindowReadsTheKeysWhereTheyAre) {
  constexpr index T = 1024;
  Call<float> call({.T = T, .S = T, .H = 2, .G = 2});
  const AttentionInputs<float> in = call.in();
  const auto copies = [&](const Mask& mask) {
    const Attention<float> attention{.mask = mask};
    const auto sequences = detail::make_sequences(attention, in);
    const detail::KernelCall<float> kernel_call(attention, in);
    const detail::QueryRun run{sequences[0], 0, 0, T};
    return detail::copies_all_keys(kernel_call, run, detail::keys_of_run(kernel_call, run));
  };
  EXPECT_TRUE(copies(mask::All()));
  EXPECT_TRUE(copies(mask::Causal()));
  EXPECT_FALSE(copies(mask::Window(64, 0)));
}

// FLOPs that a profile of the forward and the backward of a call shows.
std::pair<double, double> profiled_flops(const Attention<float>& attention, index T) {
  Call<float> call({.B = 2, .T = T, .S = T, .H = 3, .G = 1, .D = 8, .Dv = 16});
  Profile profile;
  const Context ctx = Context(1).profiled(profile);
  attention_forward(ctx, attention, call.in(), call.out());
  attention_backward(ctx, attention, call.in(), call.saved(), call.gradients());
  const auto& parts = profile.parts();
  EXPECT_EQ(parts.size(), 2u);
  return {parts.at(0).work.flops, parts.at(1).work.flops};
}

// As in the tables of speeds: not the scores of the tiles that are computed.
TEST(FusedAttention, AProfileCountsTheScoresThatAreKept) {
  constexpr index T = 100, kHeads = 2 * 3;
  const auto expect = [&](const Attention<float>& attention, double scores) {
    const auto [forward, backward] = profiled_flops(attention, T);
    EXPECT_DOUBLE_EQ(forward, kHeads * scores * 2 * (8 + 16));
    EXPECT_DOUBLE_EQ(backward, kHeads * scores * (6 * 8 + 4 * 16));
  };
  expect({}, T * T);
  expect({.mask = mask::Causal()}, T * (T + 1) / 2);
  expect({.mask = mask::Window(9, 0)}, 10 * T - 45);
}

}  // namespace
}  // namespace fovea::testing

// SPDX-License-Identifier: Apache-2.0
// Attention of bfloat16 rows: kernels that multiply pairs where the processor has them, float32
// elsewhere.
#include "fovea/attention/bfloat16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fovea/attention/reference.h"
#include "fovea/attention/score/rotary.h"
#include "fovea/base/profile.h"
#include "fovea/simd/isa.h"
#include "tests/attention/support/call.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

#ifdef FOVEA_FEW_PROBLEMS
constexpr std::uint64_t kProblems = 30;
#else
constexpr std::uint64_t kProblems = 300;
#endif

// Calls with another score than the dot product are converted on every processor.
Problem draw(std::uint64_t seed) {
  ProblemShape shape = draw_shape(seed);
  shape.watch = static_cast<Watch>(seed % 3);
  return Problem(shape).rounded();
}

// The results of a forward in float32.
constexpr std::vector<double> Results::*kOfScores[] = {
    &Results::lse,      &Results::weights,     &Results::entropy,    &Results::maximum,
    &Results::distance, &Results::topk_weight, &Results::column_mass};

TEST(BFloat16Attention, ErrorIsAtMostTwiceThatOfPlainRounding) {
  for (std::uint64_t seed = 0; seed < kProblems; ++seed) {
    const Problem problem = draw(seed);
    const Results exact = problem.run<double>(Method::kReference);
    PlainErrors errors(problem, exact, PlainErrors::Plain::kBFloat16);
    for_each_isa([&] {
      Results fast = problem.run<BFloat16>(Method::kFused);
      // The names of converted calls are the ones of float32: see the next test.
      if (!has_bfloat16_products()) {
        for (const auto of : kOfScores) fast.*of = exact.*of;
      }
      EXPECT_TRUE(errors.no_worse(fast)) << problem.shape.text();
    });
  }
}

TEST(BFloat16Attention, AConvertedCallIsOneOfFloat32) {
  for (std::uint64_t seed = 0; seed < kProblems / 3; ++seed) {
    const Problem problem = draw(seed);
    for_each_isa([&] {
      if (has_bfloat16_products()) return;
      const Results converted = problem.run<BFloat16>(Method::kFused);
      Results wide = problem.run<float>(Method::kFused);
      for (double& x : wide.o) x = to_float(to_bfloat16(static_cast<float>(x)));
      EXPECT_EQ(converted.o, wide.o) << problem.shape.text();
      for (const auto of : kOfScores) EXPECT_EQ(converted.*of, wide.*of) << problem.shape.text();
    });
  }
}

template <class T>
std::vector<Profile::Part> profiled(const Attention<float>& attention) {
  Call<T> call({.B = 2, .T = 40, .S = 40, .H = 2, .G = 2, .D = 8, .Dv = 16});
  Profile profile;
  const Context ctx = Context(1).profiled(profile);
  attention_forward(ctx, attention, call.in(), call.out());
  attention_backward(ctx, attention, call.in(), call.saved(), call.gradients());
  return profile.parts();
}

// As one of float32, but for the bytes of its rows, whether it is converted or not.
TEST(BFloat16Attention, AProfileCountsACallOnce) {
  for (const Score<float>& score : {Score<float>(score::Dot()), Score<float>(score::Cosine())}) {
    for_each_isa([&] {
      const auto wide = profiled<float>({.score = score});
      const auto rounded = profiled<BFloat16>({.score = score});
      ASSERT_EQ(rounded.size(), 2u);
      for (const std::size_t n : {0, 1}) {
        EXPECT_EQ(rounded[n].calls, 1);
        EXPECT_EQ(rounded[n].work.flops, wide[n].work.flops);
        EXPECT_EQ(2 * rounded[n].work.bytes, wide[n].work.bytes);
      }
    });
  }
}

TEST(BFloat16Attention, BitsDoNotDependOnThreads) {
  for (std::uint64_t seed = 0; seed < kProblems / 5; ++seed) {
    const Problem problem = draw(seed);
    const Results one = problem.run<BFloat16>(Method::kFused, 1);
    for (const int threads : {2, 3, 8}) {
      const Results more = problem.run<BFloat16>(Method::kFused, threads);
      for (const NamedResult& result : kResults) {
        EXPECT_EQ(one.*result.values, more.*result.values)
            << result.name << ", " << threads << " threads, " << problem.shape.text();
      }
    }
  }
}

TEST(BFloat16Attention, BitsDoNotDependOnWhatIsObserved) {
  for (std::uint64_t seed = 0; seed < kProblems / 5; ++seed) {
    ProblemShape shape = draw_shape(seed);
    shape.watch = Watch::kNothing;
    const Results unseen = Problem(shape).rounded().run<BFloat16>(Method::kFused);
    for (const Watch watch : {Watch::kRows, Watch::kAll}) {
      shape.watch = watch;
      const Results seen = Problem(shape).rounded().run<BFloat16>(Method::kFused);
      EXPECT_EQ(seen.o, unseen.o) << shape.text();
      EXPECT_EQ(seen.lse, unseen.lse) << shape.text();
    }
  }
}

// The rows [from, from + count) of one sequence of the first head.
std::vector<BFloat16> rows(const std::vector<BFloat16>& all, index width, index from, index count) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(count * width)};
}

// A sequence alone, as the second of a packed call, and with padding.
TEST(BFloat16Attention, BitsDoNotDependOnPackingOrPadding) {
  constexpr index kBefore = 37, kLength = 171, kWidth = 24;
  const Sizes sizes{.T = kBefore + kLength, .S = kBefore + kLength, .D = kWidth, .Dv = kWidth};
  const std::vector<std::int32_t> offsets = {0, kBefore, kBefore + kLength}, length = {kLength};
  for (const Mask& mask : {Mask(mask::Causal()), Mask(mask::Window(20, 3)), Mask()}) {
    Call<BFloat16> packed(sizes, 3), padded(sizes),
        alone({.T = kLength, .S = kLength, .D = kWidth, .Dv = kWidth});
    for (auto of :
         {&Call<BFloat16>::q, &Call<BFloat16>::k, &Call<BFloat16>::v, &Call<BFloat16>::d_o}) {
      alone.*of = rows(packed.*of, kWidth, kBefore, kLength);
      std::copy((alone.*of).begin(), (alone.*of).end(), (padded.*of).begin());
    }
    alone.run({.mask = mask});
    packed.run({.mask = mask, .packed = {view_of(offsets), view_of(offsets)}});
    const Mask lengths = mask::KeyLengths(view_of(length)) & mask::QueryLengths(view_of(length));
    padded.run({.mask = mask & lengths});
    for (auto of :
         {&Call<BFloat16>::o, &Call<BFloat16>::dq, &Call<BFloat16>::dk, &Call<BFloat16>::dv}) {
      EXPECT_EQ(rows(packed.*of, kWidth, kBefore, kLength), alone.*of) << mask.name();
      EXPECT_EQ(rows(padded.*of, kWidth, 0, kLength), alone.*of) << mask.name();
    }
  }
}

TEST(BFloat16Attention, ObserversChangeNoBit) {
  const Sizes sizes{.T = 70, .S = 150, .H = 2, .G = 1, .D = 16, .Dv = 9};
  Call<BFloat16> alone(sizes), seen(sizes);
  std::vector<float> largest(2 * 70);
  seen.want_weights();
  alone.run({.mask = mask::Causal()});
  seen.run(
      {.mask = mask::Causal(),
       .observe = observe::Maximum<float>(RowView<float>::contiguous(largest.data(), 1, 2, 70))});
  alone.weights = seen.weights;
  EXPECT_TRUE(same_results(alone, seen));
}

// With one weight of 1 in a row, the gradient of its score is exactly 0.
TEST(BFloat16Attention, AWholeWeightHasNoGradient) {
  for (const double dropout : {0.0, 0.4}) {
    Call<BFloat16> call({.T = 70, .S = 70, .D = 20, .Dv = 12});
    call.run({.mask = mask::Window(0, 0), .dropout = {.probability = dropout}});
    for (const BFloat16 x : call.dq) EXPECT_EQ(to_float(x), 0);
    for (const BFloat16 x : call.dk) EXPECT_EQ(to_float(x), 0);
  }
}

TEST(BFloat16Attention, DropoutDropsTheSameWeightsAsInFloat32) {
  const Sizes sizes{.T = 130, .S = 130, .H = 2, .D = 16, .Dv = 16};
  Call<BFloat16> call(sizes);
  Call<float> wide(sizes);
  const auto widened = [](const std::vector<BFloat16>& from) {
    std::vector<float> to;
    for (const BFloat16 x : from) to.push_back(to_float(x));
    return to;
  };
  wide.q = widened(call.q), wide.k = widened(call.k), wide.v = widened(call.v);
  wide.d_o = widened(call.d_o);
  const Attention<float> attention{.mask = mask::Causal(),
                                   .dropout = {.probability = 0.5, .seed = 7}};
  call.run(attention);
  wide.run(attention);
  EXPECT_LE(difference(widened(call.o), wide.o), 0.03);
  EXPECT_LE(difference(widened(call.dq), wide.dq), 0.03);
  EXPECT_LE(difference(widened(call.dk), wide.dk), 0.05);
  EXPECT_LE(difference(widened(call.dv), wide.dv), 0.05);
}

TEST(BFloat16Attention, ThePlanSaysWhatComputes) {
  const Call<BFloat16> call({.T = 10, .S = 10, .D = 8, .Dv = 8});
  const Context ctx(1);
  const auto kernel = [&](const Attention<float>& attention) {
    return attention_plan(ctx, attention, call.in()).kernel;
  };
  const bool pairs = has_bfloat16_products();
  const char* const of_pairs = has_tiles() ? "fused bfloat16 on AMX" : "fused bfloat16";
  EXPECT_EQ(kernel({}), pairs ? of_pairs : "fused float32, converted from bfloat16");
  EXPECT_EQ(kernel({.rotary = {RotaryPairs::kHalves}}), kernel({}));
  EXPECT_EQ(kernel({.score = score::Cosine{}}), "fused float32, converted from bfloat16");
  EXPECT_EQ(kernel({.mask = mask::Causal(), .norm = norm::None{}}),
            "linear float32, converted from bfloat16");
}

// Turns the rows [length, heads, width] by their positions, or back, and rounds them.
std::vector<BFloat16> turned(const std::vector<BFloat16>& rows, index heads, index width,
                             const Rotary& rotary, bool back) {
  const index count = std::ssize(rows) / width;
  const detail::RotaryTable<float> table(Context(1), rotary, width, 0, count / heads);
  std::vector<BFloat16> to;
  std::vector<float> wide(static_cast<std::size_t>(width)), made = wide;
  for (index row = 0; row < count; ++row) {
    std::transform(rows.begin() + row * width, rows.begin() + (row + 1) * width, wide.begin(),
                   to_float);
    if (back) {
      table.turn_back(wide.data(), row / heads, made.data());
    } else {
      table.turn(wide.data(), row / heads, made.data());
    }
    for (const float x : made) to.push_back(to_bfloat16(x));
  }
  return to;
}

// Where pairs are multiplied, rows are turned in float32 and rounded once, and so are gradients.
TEST(BFloat16Attention, RotaryPositionsAreThoseOfRowsThatAreTurnedBefore) {
  if (!has_bfloat16_products()) GTEST_SKIP() << "this processor multiplies no bfloat16";
  constexpr Sizes kSizes{.T = 70, .S = 70, .H = 4, .G = 2, .D = 24, .Dv = 16};
  for (const RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kInterleaved}) {
    const Rotary rotary{.pairs = pairs, .base = 1000};
    Call<BFloat16> call(kSizes), before(kSizes);
    before.q = turned(call.q, kSizes.H, kSizes.D, rotary, false);
    before.k = turned(call.k, kSizes.G, kSizes.D, rotary, false);
    call.run({.mask = mask::Causal(), .rotary = rotary});
    before.run({.mask = mask::Causal()});
    EXPECT_EQ(call.o, before.o);
    EXPECT_EQ(call.lse, before.lse);
    EXPECT_EQ(call.dv, before.dv);
    EXPECT_EQ(call.dq, turned(before.dq, kSizes.H, kSizes.D, rotary, true));
    EXPECT_EQ(call.dk, turned(before.dk, kSizes.G, kSizes.D, rotary, true));
  }
}

TEST(BFloat16Attention, ChecksItsViews) {
  Call<BFloat16> call({.T = 10, .S = 10, .D = 8, .Dv = 8});
  AttentionOutputs<BFloat16> out = call.out();
  out.o.data = call.q.data();
  try {
    attention_forward(Context(1), {}, call.in(), out);
    FAIL() << "an overlap was not found";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("q"), std::string::npos);
  }
  AttentionInputs<BFloat16> in = call.in();
  in.k.width = 7;
  EXPECT_THROW(attention_forward(Context(1), {}, in, call.out()), Error);
}

}  // namespace
}  // namespace fovea::testing

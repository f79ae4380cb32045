// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/linear/linear.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "tests/attention/support/gradients.h"
#include "tests/attention/support/problem.h"
#include "tests/attention/support/table.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

template <class T>
Attention<T> unnormalised(const Mask& mask = {}) {
  return {.mask = mask, .norm = norm::None()};
}

std::vector<Mask> masks() { return {mask::All(), mask::Causal(), mask::Causal(Align::kTopLeft)}; }

// The sums of the definition, in another order. Values are sums of hundreds of scores.
template <class T>
void expect_definition(const Sizes& sizes, const Attention<T>& attention, T bound) {
  Call<T> fast(sizes, 3), plain = fast;
  fast.run(attention, Method::kFused, 2);
  plain.run(attention, Method::kReference);
  const auto compare = [&](const char* name, const auto& a, const auto& b) {
    T largest = 1;
    for (const T x : b) largest = std::max(largest, std::abs(x));
    EXPECT_LE(difference(a, b), bound * largest) << name << ", " << attention.mask.name();
  };
  compare("o", fast.o, plain.o);
  compare("dq", fast.dq, plain.dq);
  compare("dk", fast.dk, plain.dk);
  compare("dv", fast.dv, plain.dv);
}

TEST(Linear, IsTheDefinitionOnEveryInstructionSet) {
  for_each_isa([] {
    for (const Mask& mask : masks()) {
      for (const auto& [T, S] :
           {std::pair<index, index>{150, 300}, {300, 150}, {1, 140}, {140, 1}}) {
        expect_definition<double>({.B = 1, .T = T, .S = S, .H = 4, .G = 2, .D = 5, .Dv = 9},
                                  unnormalised<double>(mask), 1e-13);
        expect_definition<float>({.B = 1, .T = T, .S = S, .H = 4, .G = 2, .D = 5, .Dv = 9},
                                 unnormalised<float>(mask), 1e-5f);
      }
    }
  });
}

// The bound of every fast result, with states of more than a segment.
TEST(Linear, ErrorIsAtMostTwiceThatOfPlainLoops) {
  const Sizes sizes{.T = 1100, .S = 1300, .D = 20, .Dv = 24};
  for (const Mask& mask : masks()) {
    Call<float> plain(sizes, 3);
    Call<double> exact(sizes, 3);
    plain.run(unnormalised<float>(mask), Method::kReference);
    exact.run(unnormalised<double>(mask), Method::kReference);
    for_each_isa([&] {
      Call<float> fast(sizes, 3);
      fast.run(unnormalised<float>(mask), Method::kFused, 2);
      const auto expect = [&](const char* name, const auto& f, const auto& p, const auto& e) {
        const std::vector<double> now(f.begin(), f.end()), before(p.begin(), p.end());
        EXPECT_TRUE(no_worse_than_plain(name, now, largest_difference(before, e), e));
      };
      expect("o", fast.o, plain.o, exact.o);
      expect("dq", fast.dq, plain.dq, exact.dq);
      expect("dk", fast.dk, plain.dk, exact.dk);
      expect("dv", fast.dv, plain.dv, exact.dv);
    });
  }
}

// Blocks of 128 rows, segments of 1024, and widths beyond which a state does not pay.
TEST(Linear, IsTheDefinitionOverSegments) {
  for (const Mask& mask : masks()) {
    expect_definition<double>({.B = 1, .T = 1200, .S = 2200, .H = 1, .G = 1, .D = 3, .Dv = 2},
                              unnormalised<double>(mask), 1e-12);
    expect_definition<double>({.B = 1, .T = 2100, .S = 1025, .H = 1, .G = 1, .D = 3, .Dv = 2},
                              unnormalised<double>(mask), 1e-12);
    expect_definition<double>({.B = 1, .T = 140, .S = 260, .H = 1, .G = 1, .D = 260, .Dv = 300},
                              unnormalised<double>(mask), 1e-12);
  }
}

TEST(Linear, RowsThatAreMadeAreProductsToo) {
  Attention<double> attention = unnormalised<double>(mask::Causal());
  attention.score = score::Cosine{3};
  attention.rotary = {RotaryPairs::kHalves, 100};
  expect_definition<double>({.B = 2, .T = 200, .S = 300, .H = 2, .G = 1, .D = 6, .Dv = 4},
                            attention, 1e-13);
}

TEST(Linear, GradientsAreThoseOfTheForward) {
  for (const Mask& mask : masks()) {
    Call<double> call({.B = 1, .T = 131, .S = 135, .H = 1, .G = 1, .D = 2, .Dv = 1}, 5);
    // A sum of a hundred scores: a small scale keeps the rounding of the differences small, too.
    expect_gradients(call, {.score = score::Dot{0.02}, .mask = mask, .norm = norm::None()});
  }
}

// A sequence has the same bits for any number of threads, padded, packed and alone.
TEST(Linear, BitsAreThoseOfTheSequenceAlone) {
  const std::int32_t lengths[] = {1500, 300};
  Call<float> padded({.B = 2, .T = 1500, .S = 1500, .H = 2, .G = 1, .D = 8, .Dv = 8}, 9);
  const Attention<float> causal = unnormalised<float>(mask::Causal());
  const Attention<float> cut = unnormalised<float>(mask::Causal() & mask::lengths({lengths, 2}));
  padded.run(cut);
  for (const int threads : {2, 3, 8, 64}) {
    Call<float> again = padded;
    again.run(cut, Method::kFused, threads);
    EXPECT_EQ(again.o, padded.o);
    EXPECT_EQ(again.dq, padded.dq);
    EXPECT_EQ(again.dk, padded.dk);
    EXPECT_EQ(again.dv, padded.dv);
  }
  Call<float> alone({.B = 1, .T = 300, .S = 300, .H = 2, .G = 1, .D = 8, .Dv = 8});
  std::copy_n(padded.q_row(1, 0, 0), alone.q.size(), alone.q.begin());
  std::copy_n(padded.k_row(1, 0, 0), alone.k.size(), alone.k.begin());
  std::copy_n(padded.v_row(1, 0, 0), alone.v.size(), alone.v.begin());
  std::copy_n(padded.d_o_row(1, 0, 0), alone.d_o.size(), alone.d_o.begin());
  alone.run(causal, Method::kFused, 2);
  EXPECT_TRUE(std::equal(alone.o.begin(), alone.o.end(), padded.o_row(1, 0, 0)));
  EXPECT_TRUE(std::equal(alone.dk.begin(), alone.dk.end(), padded.dk.begin() + 1500 * 8));
}

TEST(Linear, PoisonThatIsNotKeptIsNotSeen) {
  for (const index non_finite : {130, 299}) {
    Call<float> clean({.T = 300, .S = 300, .D = 8, .Dv = 8}, 3);
    Call<float> call = clean;
    std::fill_n(call.k_row(0, non_finite, 0), 8, NAN);
    std::fill_n(call.v_row(0, non_finite, 0), 8, INFINITY);
    call.run(unnormalised<float>(mask::Causal()));
    clean.run(unnormalised<float>(mask::Causal()));
    EXPECT_TRUE(std::equal(clean.o.begin(), clean.o.begin() + non_finite * 8, call.o.begin()));
    EXPECT_TRUE(std::equal(clean.dq.begin(), clean.dq.begin() + non_finite * 8, call.dq.begin()));
    EXPECT_TRUE(std::isnan(call.o_row(0, non_finite, 0)[0]));
    Call<float> later = clean;
    std::fill_n(later.q_row(0, 299 - non_finite, 0), 8, NAN);
    std::fill_n(later.d_o_row(0, 299 - non_finite, 0), 8, NAN);
    later.run(unnormalised<float>(mask::Causal()));
    const auto first = (300 - non_finite) * 8;
    EXPECT_TRUE(std::equal(clean.dk.begin() + first, clean.dk.end(), later.dk.begin() + first));
    EXPECT_TRUE(std::equal(clean.dv.begin() + first, clean.dv.end(), later.dv.begin() + first));
  }
}

TEST(Linear, ThePlanSaysSo) {
  Call<float> call({.B = 1, .T = 4096, .S = 4096, .H = 1, .G = 1, .D = 16, .Dv = 16});
  const AttentionPlan plan =
      attention_plan(Context(1), unnormalised<float>(mask::Causal()), call.in());
  EXPECT_EQ(plan.kernel, "linear float32");
  const AttentionPlan fused =
      attention_plan<float>(Context(1), {.mask = mask::Causal()}, call.in());
  EXPECT_LT(plan.forward_flops, fused.forward_flops / 10);
  EXPECT_LT(plan.scratch_bytes, 2e6);
}

// Two for each multiplication with its addition, by hand. Few rows meet each other one by one, and
// so do those of a block; the others meet a sum of products.
TEST(Linear, ThePlanCountsWhatIsDone) {
  const auto plan = [](const Mask& mask, const Sizes& sizes) {
    return attention_plan(Context(1), unnormalised<float>(mask), Call<float>(sizes).in());
  };
  const Sizes one{.T = 1, .S = 4096, .D = 64, .Dv = 64};
  EXPECT_EQ(plan({}, one).forward_flops, 2 * 4096 * (64 + 64));
  EXPECT_EQ(plan({}, one).backward_flops, 3 * plan({}, one).forward_flops);
  const Sizes few{.T = 100, .S = 100, .D = 8, .Dv = 8};
  EXPECT_EQ(plan({}, few).forward_flops, 2 * 100 * 100 * (8 + 8));
  // Of two groups of two heads: keys join a sum for each group, and queries take it for each head;
  // backward, queries join those of dk and dv.
  const Sizes many{.T = 4096, .S = 4096, .H = 4, .G = 2, .D = 16, .Dv = 16};
  EXPECT_EQ(plan({}, many).forward_flops, 2 * (2 + 4) * 4096 * 16 * 16);
  EXPECT_EQ(plan({}, many).backward_flops, 2 * ((2 + 4) + 2 * (4 + 2)) * 4096 * 16 * 16);
  // Segments of 8 blocks of 128: each query meets its block of keys; all but the first block take a
  // sum, and within a segment 7 blocks join a running one.
  const Sizes long_one{.T = 4096, .S = 4096, .D = 16, .Dv = 16};
  EXPECT_EQ(plan(mask::Causal(), long_one).forward_flops,
            2 * 4096 * 128 * (16 + 16) + 2 * (4096 + 4096 - 128 + 4 * 7 * 128) * 16 * 16);
}

}  // namespace
}  // namespace fovea::testing

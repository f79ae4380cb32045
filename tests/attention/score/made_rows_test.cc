// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/made_rows.h"

#include <gtest/gtest.h>

#include "tests/attention/support/table.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

struct FloatResults {
  Call<float> call;
  PartData<float> parts;
};

FloatResults run_float(const ScoreRow<float>& row, const Sizes& sizes, Method method, int threads) {
  FloatResults results{Call<float>(sizes, 3), {}};
  Attention<float> attention{.mask = mask::Causal()};
  row.set(attention, results.parts, sizes.D);
  results.call.run(attention, method, threads);
  return results;
}

template <class V>
std::vector<double> doubles(const std::vector<V>& values) {
  return {values.begin(), values.end()};
}

TEST(MadeRows, ErrorIsAtMostTwiceThatOfPlainLoops) {
  const Sizes sizes{.B = 2, .T = 190, .S = 210, .H = 2, .G = 1, .D = 40, .Dv = 24};
  for (std::size_t n = 0; n < score_table<float>().size(); ++n) {
    Call<double> exact(sizes, 3);
    PartData<double> parts;
    Attention<double> attention{.mask = mask::Causal()};
    score_table<double>()[n].set(attention, parts, sizes.D);
    exact.run(attention, Method::kReference);
    const ScoreRow<float>& row = score_table<float>()[n];
    const FloatResults plain = run_float(row, sizes, Method::kReference, 1);
    for_each_isa([&] {
      SCOPED_TRACE(row.name);
      const FloatResults fast = run_float(row, sizes, Method::kFused, 1);
      const auto expect = [&](const char* name, const auto& f, const auto& p, const auto& e) {
        const double error = largest_difference(doubles(p), doubles(e));
        EXPECT_TRUE(no_worse_than_plain(name, doubles(f), error, doubles(e)));
      };
      expect("o", fast.call.o, plain.call.o, exact.o);
      expect("lse", fast.call.lse, plain.call.lse, exact.lse);
      expect("dq", fast.call.dq, plain.call.dq, exact.dq);
      expect("dk", fast.call.dk, plain.call.dk, exact.dk);
      expect("dv", fast.call.dv, plain.call.dv, exact.dv);
      expect("dw", fast.parts.dw, plain.parts.dw, parts.dw);
    });
  }
}

TEST(MadeRows, SameBitsForAnyNumberOfThreads) {
  const Sizes sizes{.B = 3, .T = 300, .S = 600, .H = 2, .G = 2, .D = 8, .Dv = 8};
  for (const ScoreRow<float>& row : score_table<float>()) {
    SCOPED_TRACE(row.name);
    const FloatResults one = run_float(row, sizes, Method::kFused, 1);
    for (const int threads : {2, 3, 8}) {
      const FloatResults many = run_float(row, sizes, Method::kFused, threads);
      EXPECT_TRUE(same_results(one.call, many.call));
      EXPECT_EQ(one.parts.dw, many.parts.dw);
    }
  }
}

// Two sequences behind one another, and in the rows of a batch of unequal lengths.
TEST(MadeRows, PackedAndPaddedHaveTheSameBits) {
  for (const ScoreRow<float>& row : score_table<float>()) {
    SCOPED_TRACE(row.name);
    const std::vector<std::int32_t> lengths = {3, 5}, offsets = {0, 3, 8};
    Call<float> padded({.B = 2, .T = 5, .S = 5, .H = 2, .G = 1, .D = 4, .Dv = 2}, 1);
    Call<float> packed({.B = 1, .T = 8, .S = 8, .H = 2, .G = 1, .D = 4, .Dv = 2}, 2);
    const auto place = [&](std::vector<float>& to, const std::vector<float>& from, index width) {
      for (index n = 0; n < 8 * width; ++n) {
        const index source = n < 3 * width ? n : n + 2 * width;
        to[static_cast<std::size_t>(n)] = from[static_cast<std::size_t>(source)];
      }
    };
    place(packed.q, padded.q, 8);
    place(packed.k, padded.k, 4);
    place(packed.v, padded.v, 2);
    place(packed.d_o, padded.d_o, 4);
    PartData<float> of_padded, of_packed;
    Attention<float> one{.mask = mask::Causal() & mask::lengths(view_of(lengths))};
    Attention<float> other{.mask = mask::Causal(), .packed = {view_of(offsets), view_of(offsets)}};
    row.set(one, of_padded, 4);
    row.set(other, of_packed, 4);
    padded.run(one);
    packed.run(other);
    const auto expect = [&](const std::vector<float>& b, const std::vector<float>& a, index width) {
      std::vector<float> moved(b.size());
      place(moved, a, width);
      EXPECT_EQ(moved, b);
    };
    expect(packed.o, padded.o, 4);
    expect(packed.dq, padded.dq, 8);
    expect(packed.dk, padded.dk, 4);
    expect(packed.dv, padded.dv, 2);
    EXPECT_EQ(of_packed.dw, of_padded.dw);
  }
}

// Keys that are masked and rows of padding may hold anything.
TEST(MadeRows, PoisonReachesNobody) {
  for (const ScoreRow<float>& row : score_table<float>()) {
    SCOPED_TRACE(row.name);
    const std::vector<std::int32_t> lengths = {60};
    const auto run = [&](float poison) {
      FloatResults results{Call<float>({.T = 70, .S = 90, .H = 2, .G = 1, .D = 4, .Dv = 2}, 1), {}};
      Call<float>& call = results.call;
      std::fill_n(call.k_row(0, 33, 0), 4, poison);
      std::fill_n(call.v_row(0, 33, 0), 2, poison);
      std::fill_n(call.q_row(0, 65, 0), 8, poison);
      Attention<float> attention{.mask = mask::QueryLengths(view_of(lengths)) &
                                         mask::Where([](const ScoreSite& s) { return s.j != 33; })};
      row.set(attention, results.parts, 4);
      call.run(attention);
      return results;
    };
    const FloatResults clean = run(1), bad = run(std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(same_results(clean.call, bad.call));
    EXPECT_EQ(clean.parts.dw, bad.parts.dw);
  }
}

TEST(MadeRows, PlanTellsScoreAndCopies) {
  Call<float> call({.B = 2, .T = 10, .S = 20, .H = 2, .G = 1, .D = 4, .Dv = 2});
  const Attention<float> plain,
      cosine{.score = score::Cosine(), .rotary = {RotaryPairs::kInterleaved}};
  const AttentionPlan a = attention_plan(Context(1), plain, call.in());
  const AttentionPlan b = attention_plan(Context(1), cosine, call.in());
  EXPECT_EQ(a.score, "dot");
  EXPECT_EQ(b.score, "cosine with rotary positions");
  const index turned = 20 * 4;  // a turn for each position and pair of columns
  const index rows = 2 * (10 * 2 + 20) * 4;
  EXPECT_EQ(b.scratch_bytes - a.scratch_bytes, (2 * rows + turned) * sizeof(float));
}

}  // namespace
}  // namespace fovea::testing

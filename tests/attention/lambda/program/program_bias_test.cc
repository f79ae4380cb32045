// SPDX-License-Identifier: Apache-2.0
// Programs by vectors, on every instruction set, beside their definition; and in whole calls.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fovea/attention/lambda/program/planned_program.h"
#include "fovea/attention/lambda/program/program_parts.h"
#include "tests/attention/support/programs.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

using detail::ProgramBias;

const AttentionSizes kSizes{.B = 2, .T = 90, .S = 150, .H = 3, .G = 3, .D = 4, .Dv = 4};

template <class V>
double limit() {
  return std::is_same_v<V, float> ? 2e-5 : 1e-12;
}

// Sums of a head, and the gradients of tables that tiles add to.
template <class V>
struct Gradients {
  std::vector<double> sums;
  std::vector<std::vector<V>> tables;
};

template <class V>
void expect_near(const Gradients<V>& got, const Gradients<V>& expected) {
  for (std::size_t n = 0; n < expected.sums.size(); ++n) {
    ASSERT_NEAR(got.sums[n], expected.sums[n], 40 * limit<V>()) << "sum " << n;
  }
  for (std::size_t t = 0; t < expected.tables.size(); ++t) {
    for (std::size_t n = 0; n < expected.tables[t].size(); ++n) {
      ASSERT_NEAR(got.tables[t][n], expected.tables[t][n], 40 * limit<V>()) << "table " << t;
    }
  }
}

// A tile by vectors and score by score.
template <class V>
void expect_tile(TestProgram<V>& one, const TileSite& site, TileLanes lanes) {
  const auto plan = one.plan(kSizes);
  const ProgramBias<V> part(plan);
  const index stride = 64;
  const index rows = lanes == TileLanes::kQueries ? site.keys : site.queries;
  std::vector<V> scores = normals<V>(11, rows * stride), dscores = normals<V>(12, rows * stride);
  const std::vector<V> before = scores, dbefore = dscores;
  const ScoreTile<V> tile{scores.data(), stride, lanes}, dtile{dscores.data(), stride, lanes};
  std::vector<V> old = before, dold = dbefore;
  const ScoreTile<V> old_tile{old.data(), stride, lanes}, dold_tile{dold.data(), stride, lanes};
  const auto sums = static_cast<std::size_t>(part.gradient_size());
  Gradients<V> got{std::vector<double>(sums), {}}, expected = got;
  ASSERT_NE(detail::lanes_of<V>(*plan, detail::LanesFor::kGradients, site.sequence, site.head),
            nullptr);
  part.start_gradient(Context(1));
  part.apply(site, {}, tile);
  part.pull(site, {}, old_tile, dtile, {{}, {}, got.sums.data()});
  got.tables = one.gradients;
  part.start_gradient(Context(1));
  for (index r = 0; r < site.queries; ++r) {
    for (index c = 0; c < site.keys; ++c) {
      const V value = part.apply_one(site.at(r, c), {}, old_tile.at(r, c));
      ASSERT_NEAR(tile.at(r, c), value, limit<V>() * (1 + std::abs(value))) << r << ", " << c;
      const V slope = part.pull_one(site.at(r, c), {}, old_tile.at(r, c), dold_tile.at(r, c),
                                    {{}, {}, expected.sums.data()});
      ASSERT_NEAR(dtile.at(r, c), slope, 4 * limit<V>() * (1 + std::abs(slope))) << r << ", " << c;
    }
  }
  expected.tables = one.gradients;
  expect_near(got, expected);
}

template <class V>
void expect_tiles() {
  const Sequence sequence{.number = 1, .batch = 1, .queries = kSizes.T, .keys = kSizes.S};
  for (auto& one : test_programs<V>(kSizes)) {
    SCOPED_TRACE(one.name);
    for (const TileLanes lanes : {TileLanes::kQueries, TileLanes::kKeys}) {
      expect_tile<V>(one, {sequence, 2, 0, 64, 64, 64}, lanes);
      expect_tile<V>(one, {sequence, 1, 64, 26, 128, 19}, lanes);
    }
  }
}

TEST(ProgramBias, TilesAreTheDefinition) {
  for_each_isa([] {
    expect_tiles<float>();
    expect_tiles<double>();
  });
}

// Short axes are read from registers, others from memory; a negative index counts from the end.
TEST(ProgramBias, AnAxisMayHaveAnySize) {
  const Sequence sequence{.number = 1, .batch = 1, .queries = kSizes.T, .keys = kSizes.S};
  for (const index size : {1, 2, 15, 16, 17, 31, 32, 33, 64, 100}) {
    SCOPED_TRACE(size);
    TestProgram<float> one;
    one.numbers = {{normals<float>(5, kSizes.H * size), {kSizes.H, size}}};
    one.whole = {{std::vector<std::int32_t>(kSizes.T * kSizes.S), {kSizes.T, kSizes.S}}};
    index n = 0;
    for (std::int32_t& kind : one.whole[0].first) {
      kind = static_cast<std::int32_t>(n++ * 7 % (2 * size) - size);
    }
    Steps& s = one.steps;
    s.op(TapeOp::kAdd, s.score(), s.read(0, {s.head(), s.read(1, {s.query(), s.key()})}));
    for_each_isa([&] {
      for (const TileLanes lanes : {TileLanes::kQueries, TileLanes::kKeys}) {
        expect_tile<float>(one, {sequence, 1, 64, 26, 128, 19}, lanes);
      }
    });
  }
}

TEST(ProgramBias, WholeCallsAreTheDefinition) {
  const Sizes sizes{.B = 2, .T = 90, .S = 300, .H = 4, .G = 2, .D = 8, .Dv = 8};
  const AttentionSizes call_sizes{.B = 2, .T = 90, .S = 300, .H = 4, .G = 2, .D = 8, .Dv = 8};
  for (auto& one : test_programs<double>(call_sizes)) {
    SCOPED_TRACE(one.name);
    Call<double> fused(sizes, 3), plain(sizes, 3);
    const Attention<double> attention{
        .bias = Bias<double>(std::make_shared<const ProgramBias<double>>(one.plan(call_sizes)))};
    plain.run(attention, Method::kReference);
    const auto expected = one.gradients;
    for (const int threads : {1, 3}) {
      fused.run(attention, Method::kFused, threads);
      const auto near = [](const char* name, const auto& a, const auto& b) {
        for (std::size_t n = 0; n < a.size(); ++n) ASSERT_NEAR(a[n], b[n], 1e-10) << name;
      };
      near("o", fused.o, plain.o);
      near("dq", fused.dq, plain.dq);
      near("dk", fused.dk, plain.dk);
      near("dv", fused.dv, plain.dv);
      for (std::size_t n = 0; n < expected.size(); ++n)
        near("table", one.gradients[n], expected[n]);
    }
  }
}

TEST(ProgramBias, ALongProgramRunsScoreByScore) {
  TestProgram<float> one;
  Steps& s = one.steps;
  int sum = s.score();
  for (int n = 0; n < 400; ++n)
    sum = s.op(TapeOp::kSin, s.op(TapeOp::kMul, sum, s.constant(n + 1.5)));
  const auto plan = one.plan(kSizes);
  const ProgramBias<float> part(plan);
  EXPECT_EQ(part.name(), "traced (score by score: it takes too many steps)");
  const Sequence sequence{.queries = 90, .keys = 150};
  std::vector<float> scores(64, 0.5F);
  part.apply({sequence, 0, 0, 1, 0, 64}, {}, {scores.data(), 64, TileLanes::kKeys});
  EXPECT_EQ(scores[63], part.apply_one({sequence, 0, 0, 63}, {}, 0.5F));
}

TEST(ProgramBias, AnIndexThatTurnsOutToBeBeyondItsAxisIsAnError) {
  // table[ids[k]], of which one is too large: the bounds allow the others.
  TestProgram<float> one;
  one.numbers = {{std::vector<float>(5), {5}}};
  one.whole = {{std::vector<std::int32_t>(150), {150}}};
  one.whole[0].first[77] = 5;
  Steps& s = one.steps;
  s.op(TapeOp::kAdd, s.score(), s.read(0, {s.read(1, {s.key()})}));
  const ProgramBias<float> part(one.plan(kSizes));
  const Sequence sequence{.queries = 90, .keys = 150};
  std::vector<float> scores(64 * 64);
  const ScoreTile<float> tile{scores.data(), 64, TileLanes::kKeys};
  EXPECT_NO_THROW(part.apply({sequence, 0, 0, 64, 0, 64}, {}, tile));
  EXPECT_THROWS((part.apply({sequence, 0, 0, 64, 64, 64}, {}, tile)), kShape,
                "captured tensor 0, [5]");
}

TEST(ProgramBias, WhatCannotBePlannedIsAnError) {
  TestProgram<float> beyond;
  beyond.numbers = {{std::vector<float>(5), {5}}};
  beyond.steps.read(0,
                    {beyond.steps.op(TapeOp::kAdd, beyond.steps.key(), beyond.steps.constant(5))});
  EXPECT_THROWS((beyond.plan(kSizes)), kShape,
                "index 5 is beyond axis 0 of captured tensor 0, [5]");
  TestProgram<float> large;
  large.whole = {{{1 << 25}, {1}}};
  large.steps.read(0, {large.steps.constant(0)});
  EXPECT_THROWS((large.plan(kSizes)), kShape, "33554432");
}

}  // namespace
}  // namespace fovea::testing

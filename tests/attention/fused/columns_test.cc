// SPDX-License-Identifier: Apache-2.0
// The second pass of the forward: sums over queries whose bits depend on the sequence alone.
#include "fovea/attention/fused/columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/attention/support/call.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

constexpr index kHeads = 3;

struct Lengths {
  index queries, keys;
};
const std::vector<Lengths> kBatch = {{65, 97}, {0, 0}, {130, 600}, {7, 0}, {0, 9}, {128, 128}};
constexpr index kMostQueries = 140, kMostKeys = 610;

std::vector<float> mass_of(Call<float>& call, Attention<float> attention, int threads = 2) {
  std::vector<float> mass(static_cast<std::size_t>(call.B * call.H * call.S), -77);
  attention.observe =
      observe::ColumnMass<float>(RowView<float>::contiguous(mass.data(), call.B, call.H, call.S));
  call.forward(attention, Method::kFused, threads);
  return mass;
}

Call<float> one_sequence(const Lengths& lengths) {
  return Call<float>(
      {.T = lengths.queries, .S = lengths.keys, .H = kHeads, .G = 1, .D = 20, .Dv = 12},
      static_cast<std::uint64_t>(lengths.keys));
}

const Mask kMask = mask::Causal() & mask::Window(300, kOpen);

void copy_rows(const std::vector<float>& from, std::vector<float>& to, index row) {
  std::copy(from.begin(), from.end(), to.begin() + row);
}

// Masses of one sequence, [H, S'], in [H, S] from key `row` on.
void expect_same(const std::vector<float>& one, const float* all, index S, index row) {
  const index keys = static_cast<index>(one.size()) / kHeads;
  for (index h = 0; h < kHeads; ++h) {
    for (index j = 0; j < keys; ++j) {
      ASSERT_EQ(one[static_cast<std::size_t>(h * keys + j)], all[h * S + row + j]) << h << ' ' << j;
    }
  }
}

TEST(Columns, PaddedIsAlone) {
  for_each_isa([] {
    const auto B = static_cast<index>(kBatch.size());
    Call<float> call(
        {.B = B, .T = kMostQueries, .S = kMostKeys, .H = kHeads, .G = 1, .D = 20, .Dv = 12});
    std::vector<std::int32_t> queries, keys;
    for (index b = 0; b < B; ++b) {
      const Lengths& lengths = kBatch[static_cast<std::size_t>(b)];
      const Call<float> one = one_sequence(lengths);
      copy_rows(one.q, call.q, b * kMostQueries * kHeads * 20);
      copy_rows(one.k, call.k, b * kMostKeys * 20);
      queries.push_back(static_cast<std::int32_t>(lengths.queries));
      keys.push_back(static_cast<std::int32_t>(lengths.keys));
    }
    const std::vector<float> all = mass_of(
        call,
        {.mask = kMask & mask::QueryLengths(view_of(queries)) & mask::KeyLengths(view_of(keys))});
    for (index b = 0; b < B; ++b) {
      Call<float> one = one_sequence(kBatch[static_cast<std::size_t>(b)]);
      const float* const row = all.data() + b * kHeads * kMostKeys;
      expect_same(mass_of(one, {.mask = kMask}), row, kMostKeys, 0);
      for (index j = one.S; j < kMostKeys; ++j) EXPECT_EQ(row[j], 0) << "padding";
    }
  });
}

TEST(Columns, PackedIsAlone) {
  for_each_isa([] {
    std::vector<std::int32_t> queries = {0}, keys = {0};
    for (const Lengths& lengths : kBatch) {
      queries.push_back(queries.back() + static_cast<std::int32_t>(lengths.queries));
      keys.push_back(keys.back() + static_cast<std::int32_t>(lengths.keys));
    }
    Call<float> call(
        {.T = queries.back(), .S = keys.back(), .H = kHeads, .G = 1, .D = 20, .Dv = 12});
    for (std::size_t n = 0; n < kBatch.size(); ++n) {
      const Call<float> one = one_sequence(kBatch[n]);
      copy_rows(one.q, call.q, queries[n] * kHeads * 20);
      copy_rows(one.k, call.k, keys[n] * 20);
    }
    const std::vector<float> all =
        mass_of(call, {.mask = kMask, .packed = {view_of(queries), view_of(keys)}});
    for (std::size_t n = 0; n < kBatch.size(); ++n) {
      Call<float> one = one_sequence(kBatch[n]);
      expect_same(mass_of(one, {.mask = kMask}), all.data(), call.S, keys[n]);
    }
  });
}

TEST(Columns, AnyNumberOfThreads) {
  Call<float> call({.B = 2, .T = 300, .S = 1100, .H = 2, .G = 1, .D = 16, .Dv = 8});
  for_each_isa([&] {
    const std::vector<float> once = mass_of(call, {}, 1);
    for (const int threads : {2, 3, 8, 64}) EXPECT_EQ(once, mass_of(call, {}, threads));
  });
}

// A query that keeps a key gives away 1 in all.
TEST(Columns, SumUpToTheQueries) {
  Call<float> call({.T = 500, .S = 400, .H = 2, .G = 1, .D = 16, .Dv = 8});
  const std::vector<float> mass = mass_of(call, {.mask = mask::Causal()});
  for (index h = 0; h < 2; ++h) {
    const auto begin = mass.begin() + h * 400;
    // The first hundred queries stand before the first key.
    EXPECT_NEAR(std::accumulate(begin, begin + 400, 0.0), 400, 1e-3);
  }
}

TEST(Columns, ThePlanCountsThem) {
  const Call<float> call({.T = 200, .S = 300, .D = 16, .Dv = 8});
  float mass[300];
  const Attention<float> attention{
      .observe = observe::ColumnMass<float>(RowView<float>::contiguous(mass, 1, 1, 300))};
  const Context ctx(1);
  const AttentionPlan plain = attention_plan<float>(ctx, {}, call.in());
  const AttentionPlan plan = attention_plan(ctx, attention, call.in());
  EXPECT_EQ(plan.forward_flops, plain.forward_flops + plain.kept_scores * 2 * 16);
  EXPECT_EQ(plan.backward_flops, plain.backward_flops);
  EXPECT_FALSE(detail::sees_columns<float>({}));
  EXPECT_TRUE(detail::sees_columns(attention.observe));
  EXPECT_EQ(detail::row_sums_bytes(attention, call.in()), 2 * 200 * sizeof(float));
}

}  // namespace
}  // namespace fovea::testing

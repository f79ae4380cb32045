// SPDX-License-Identifier: Apache-2.0
// The bits of a result depend on the sequence and the instruction set, and on nothing else.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/attention/support/call.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

// Sequences of a batch: {queries, keys}. Sizes straddle the tiles; one has nothing, one no key.
struct Lengths {
  index queries, keys;
};
const std::vector<Lengths> kBatch = {{65, 97}, {0, 0}, {130, 260}, {7, 0}, {1, 33}, {128, 128}};
constexpr index kMostQueries = 140, kMostKeys = 270;
constexpr index kHeads = 4, kGroups = 2, kD = 20, kDv = 12;

constexpr index kBuckets = 10, kShawRows = 19;
const std::vector<float> kSlopes = {0.1f, -0.05f, 0.2f, 0.15f};
const std::vector<float> kTable = normals<float>(90, kBuckets* kHeads);
const std::vector<float> kShawKeys = normals<float>(91, kShawRows* kD);
const std::vector<float> kShawValues = normals<float>(92, kShawRows* kDv);

struct Part {
  Call<float> call;
  std::vector<float> dslopes = kSlopes, dtable = kTable;
  std::vector<float> dshaw_keys = kShawKeys, dshaw_values = kShawValues;
};

Attention<float> attention_of(Part& part, const std::vector<std::uint64_t>& samples) {
  const bias::Alibi<float> alibi(kSlopes, part.dslopes);
  const bias::T5<float> t5(Rows<const float>(kTable.data(), kBuckets, kHeads),
                           Rows<float>(part.dtable.data(), kBuckets, kHeads));
  const bias::Shaw<float> keys({kShawKeys.data(), kShawRows, kD},
                               {part.dshaw_keys.data(), kShawRows, kD});
  return {.bias = keys + bias::Softcap<float>(20) + (alibi + t5),
          .mask = mask::Causal() & mask::Window(100, kOpen),
          .dropout = {.probability = 0.2,
                      .seed = 11,
                      .samples = {samples.data(), static_cast<index>(samples.size())}},
          .values = values::Shaw<float>({kShawValues.data(), kShawRows, kDv},
                                        {part.dshaw_values.data(), kShawRows, kDv})};
}

// Sequence n alone, in a call of its own.
Part alone(std::size_t n) {
  const auto [queries, keys] = kBatch[n];
  Part part{Call<float>({1, queries, keys, kHeads, kGroups, kD, kDv}, 100 + n)};
  const std::vector<std::uint64_t> samples = {70 + n};
  part.call.run(attention_of(part, samples));
  return part;
}

// Rows [0, n) of one tensor of a call of one sequence, and rows from `row` on of another's.
struct Span {
  const std::vector<float>& one;
  std::vector<float>& other;
  index width, row, n;
};

template <class F>
void for_each_tensor(Call<float>& one, Call<float>& other, index query_row, index key_row, F&& f) {
  f("q", Span{one.q, other.q, kHeads * kD, query_row, one.T});
  f("k", Span{one.k, other.k, kGroups * kD, key_row, one.S});
  f("v", Span{one.v, other.v, kGroups * kDv, key_row, one.S});
  f("d_o", Span{one.d_o, other.d_o, kHeads * kDv, query_row, one.T});
}

void copy_inputs(Call<float>& one, Call<float>& other, index query_row, index key_row) {
  for_each_tensor(one, other, query_row, key_row, [](const char*, Span span) {
    std::copy_n(span.one.begin(), span.n * span.width, span.other.begin() + span.row * span.width);
  });
}

bool same_rows(Span span) {
  return std::equal(span.one.begin(), span.one.begin() + span.n * span.width,
                    span.other.begin() + span.row * span.width);
}

void expect_same_results(Call<float>& one, Call<float>& other, index batch, index query_row,
                         index key_row) {
  const index q = batch * other.T + query_row, k = batch * other.S + key_row;
  EXPECT_TRUE(same_rows({one.o, other.o, kHeads * kDv, q, one.T})) << "o";
  EXPECT_TRUE(same_rows({one.dq, other.dq, kHeads * kD, q, one.T})) << "dq";
  EXPECT_TRUE(same_rows({one.dk, other.dk, kGroups * kD, k, one.S})) << "dk";
  EXPECT_TRUE(same_rows({one.dv, other.dv, kGroups * kDv, k, one.S})) << "dv";
  for (index h = 0; h < kHeads; ++h) {
    for (index i = 0; i < one.T; ++i) {
      EXPECT_EQ(one.lse_at(0, h, i), other.lse_at(batch, h, query_row + i));
    }
  }
}

// The batch in the order given, padded with NaN.
Part padded(const std::vector<std::size_t>& order, int threads) {
  const auto B = static_cast<index>(order.size());
  Part part{Call<float>({B, kMostQueries, kMostKeys, kHeads, kGroups, kD, kDv})};
  Call<float>& call = part.call;
  for (auto* x : {&call.q, &call.k, &call.v, &call.d_o}) std::fill(x->begin(), x->end(), NAN);
  std::vector<std::int32_t> queries, keys;
  std::vector<std::uint64_t> samples;
  for (index b = 0; b < B; ++b) {
    const std::size_t n = order[static_cast<std::size_t>(b)];
    const Lengths lengths = kBatch[n];
    Call<float> one({1, lengths.queries, lengths.keys, kHeads, kGroups, kD, kDv}, 100 + n);
    copy_inputs(one, call, b * kMostQueries, b * kMostKeys);
    queries.push_back(static_cast<std::int32_t>(lengths.queries));
    keys.push_back(static_cast<std::int32_t>(lengths.keys));
    samples.push_back(70 + n);
  }
  Attention<float> attention = attention_of(part, samples);
  attention.mask =
      attention.mask & mask::QueryLengths(view_of(queries)) & mask::KeyLengths(view_of(keys));
  call.run(attention, Method::kFused, threads);
  return part;
}

std::vector<std::int32_t> offsets_of(index Lengths::*which) {
  std::vector<std::int32_t> offsets = {0};
  for (const Lengths& lengths : kBatch) {
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(lengths.*which));
  }
  return offsets;
}

// The batch packed.
Part packed(int threads) {
  const auto queries = offsets_of(&Lengths::queries), keys = offsets_of(&Lengths::keys);
  Part part{Call<float>({1, queries.back(), keys.back(), kHeads, kGroups, kD, kDv})};
  std::vector<std::uint64_t> samples;
  for (std::size_t n = 0; n < kBatch.size(); ++n) {
    Call<float> one({1, kBatch[n].queries, kBatch[n].keys, kHeads, kGroups, kD, kDv}, 100 + n);
    copy_inputs(one, part.call, queries[n], keys[n]);
    samples.push_back(70 + n);
  }
  Attention<float> attention = attention_of(part, samples);
  attention.packed = {view_of(queries), view_of(keys)};
  part.call.run(attention, Method::kFused, threads);
  return part;
}

TEST(AttentionBits, PaddedIsOneCallForEachSequence) {
  for_each_isa([] {
    Part all = padded({0, 1, 2, 3, 4, 5}, 2);
    for (std::size_t n = 0; n < kBatch.size(); ++n) {
      SCOPED_TRACE(n);
      Part one = alone(n);
      expect_same_results(one.call, all.call, static_cast<index>(n), 0, 0);
    }
  });
}

TEST(AttentionBits, PackedIsOneCallForEachSequence) {
  const auto queries = offsets_of(&Lengths::queries), keys = offsets_of(&Lengths::keys);
  for_each_isa([&] {
    Part all = packed(2);
    for (std::size_t n = 0; n < kBatch.size(); ++n) {
      SCOPED_TRACE(n);
      Part one = alone(n);
      expect_same_results(one.call, all.call, 0, queries[n], keys[n]);
    }
  });
}

TEST(AttentionBits, ParametersOfPackedAndPaddedAreTheSame) {
  for_each_isa([] {
    const Part once = padded({0, 1, 2, 3, 4, 5}, 1);
    for (const int threads : {1, 2, 3, 8, 64}) {
      const Part again = packed(threads);
      EXPECT_EQ(once.dslopes, again.dslopes);
      EXPECT_EQ(once.dtable, again.dtable);
      EXPECT_EQ(once.dshaw_keys, again.dshaw_keys);
      EXPECT_EQ(once.dshaw_values, again.dshaw_values);
    }
  });
}

TEST(AttentionBits, OrderOfTheBatchChangesNothing) {
  const std::vector<std::size_t> order = {4, 2, 0, 5, 3, 1};
  Part all = padded(order, 3);
  for (std::size_t b = 0; b < order.size(); ++b) {
    Part one = alone(order[b]);
    expect_same_results(one.call, all.call, static_cast<index>(b), 0, 0);
  }
}

TEST(AttentionBits, PaddingBelongsToNobody) {
  const Part all = padded({2, 0}, 2);
  const Call<float>& call = all.call;
  for (const auto* x : {&call.o, &call.dq, &call.dk, &call.dv}) {
    EXPECT_TRUE(std::none_of(x->begin(), x->end(), [](float y) { return std::isnan(y); }));
  }
  EXPECT_EQ(call.o.back(), 0);
  EXPECT_EQ(call.dq.back(), 0);
  EXPECT_EQ(call.dk.back(), 0);
  EXPECT_EQ(call.dv.back(), 0);
  EXPECT_EQ(call.lse.back(), -std::numeric_limits<float>::infinity());
}

// More threads than heads: the chunks of keys of one head are shared.
void expect_same_bits(const Sizes& sizes, const Mask& mask, double dropout) {
  std::vector<float> slope(static_cast<std::size_t>(sizes.H), 0.01f);
  const auto run = [&](int threads) {
    Part part{Call<float>(sizes, 9), std::vector<float>(slope.size())};
    const Attention<float> attention{
        .bias = bias::Alibi<float>({slope.data(), sizes.H}, {part.dslopes.data(), sizes.H}),
        .mask = mask,
        .dropout = {.probability = dropout, .seed = 1}};
    part.call.run(attention, Method::kFused, threads);
    return part;
  };
  const Part once = run(1);
  for (const int threads : {2, 3, 8, 64}) {
    const Part again = run(threads);
    EXPECT_TRUE(same_results(once.call, again.call)) << threads << " threads";
    EXPECT_EQ(once.dslopes, again.dslopes) << threads << " threads";
  }
}

#ifdef FOVEA_FEW_PROBLEMS
constexpr index kLong = 600, kLonger = 1300;
#else
constexpr index kLong = 1024, kLonger = 4096;
#endif

TEST(AttentionBits, OneHeadIsSharedByAnyNumberOfThreads) {
  const Sizes sizes{.T = kLong, .S = kLong, .D = 16, .Dv = 16};
  for_each_isa([&] {
    expect_same_bits(sizes, mask::Causal(), 0.1);
    expect_same_bits(sizes, {}, 0);
  });
}

TEST(AttentionBits, OddHeadsAreSharedByAnyNumberOfThreads) {
  expect_same_bits({.B = 3, .T = 70, .S = 600, .H = 9, .G = 3, .D = 9, .Dv = 17}, {}, 0.3);
}

TEST(AttentionBits, LongWindowsAreSharedByAnyNumberOfThreads) {
  expect_same_bits({.T = kLonger, .S = kLonger, .D = 16, .Dv = 16}, mask::Window(64, 0), 0);
}

}  // namespace
}  // namespace fovea::testing

// SPDX-License-Identifier: Apache-2.0
// How the backward is cut, and many callers at once.
#include "fovea/attention/fused/backward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "fovea/attention/fused/backward_chunk.h"
#include "tests/attention/support/call.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

// Chunks depend on the length alone.
TEST(BackwardWork, ChunksAreWholeTiles) {
  for (index keys = 1; keys < 5000; keys += 77) {
    EXPECT_EQ(detail::key_chunk(keys) % kLaneTile, 0);
    EXPECT_GE(detail::key_chunk(keys), detail::key_chunk(1));
  }
}

// In the order of a product, to the bit: a row with one weight of 1 has a gradient of exactly 0.
template <class T>
void expect_dots_in_order(index rows, index columns, index stride) {
  const auto a = normals<T>(1, rows * stride), b = normals<T>(2, rows * stride);
  std::vector<T> dots(static_cast<std::size_t>(rows));
  detail::backward_kernels<T>().row_dots({a.data(), rows, columns, stride},
                                         {b.data(), rows, columns, stride}, dots.data());
  const bool fuses = current_isa() >= Isa::kAvx2;
  for (index r = 0; r < rows; ++r) {
    T sum = 0;
    for (index c = 0; c < columns; ++c) {
      const T x = a[static_cast<std::size_t>(r * stride + c)];
      const T y = b[static_cast<std::size_t>(r * stride + c)];
      const T product = x * y;
      sum = fuses ? std::fma(x, y, sum) : sum + product;
    }
    ASSERT_EQ(dots[static_cast<std::size_t>(r)], sum) << rows << " x " << columns << ", row " << r;
  }
}

TEST(BackwardWork, RowDotsAreSummedInOrder) {
  for_each_isa([] {
    for (const index columns : {1, 3, 16, 17, 64, 65}) {
      for (const index rows : {1, 16, 19, 40}) {
        expect_dots_in_order<float>(rows, columns, columns + 3);
        expect_dots_in_order<double>(rows, columns, columns);
      }
    }
  });
}

// The first products of a tile write the sums of all its keys, also of those that no query keeps.
template <class V>
void expect_zero_for_keys_beyond(const Mask& mask, index queries, index first_left_out) {
  Call<V> call({.T = queries, .S = 64, .D = 16, .Dv = 8}, 3);
  call.run({});  // leaves other sums in the memory of the tiles
  call.run({.mask = mask});
  for (index j = 0; j < 64; ++j) {
    const auto sum = [&](const V* row, index width) {
      double all = 0;
      for (index c = 0; c < width; ++c) all += std::fabs(static_cast<double>(widen(row[c])));
      return all;
    };
    const bool kept = j < first_left_out;
    ASSERT_EQ(sum(call.row(call.dk, 16, j), 16) > 0, kept) << "key " << j;
    ASSERT_EQ(sum(call.row(call.dv, 8, j), 8) > 0, kept) << "key " << j;
  }
}

TEST(AttentionBackward, KeysThatNobodyKeepsHaveGradientZero) {
  for_each_isa([] {
    for (const index queries : {2, 16, 17, 40}) {
      const Mask causal = mask::Causal(Align::kTopLeft);
      expect_zero_for_keys_beyond<float>(causal, queries, queries);
      expect_zero_for_keys_beyond<double>(causal, queries, queries);
      expect_zero_for_keys_beyond<BFloat16>(causal, queries, queries);
    }
  });
}

// Any number of threads may call at once: each sees what it would see alone.
TEST(AttentionCallers, DoNotSeeEachOther) {
  const Sizes sizes{.B = 2, .T = 70, .S = 300, .H = 2, .G = 1, .D = 16, .Dv = 8};
  const Attention<float> attention{.mask = mask::Causal(), .dropout = {.probability = 0.1}};
  Call<float> alone(sizes);
  alone.run(attention);
  std::vector<Call<float>> calls(4, Call<float>(sizes));
  std::vector<std::thread> callers;
  for (Call<float>& call : calls) {
    callers.emplace_back([&] {
      for (int n = 0; n < 3; ++n) call.run(attention, Method::kFused, 3);
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const Call<float>& call : calls) EXPECT_TRUE(same_results(alone, call));
}

}  // namespace
}  // namespace fovea::testing

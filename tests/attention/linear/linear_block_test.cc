// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/linear/linear_block.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "tests/attention/support/call.h"
#include "tests/isa.h"

namespace fovea::testing {
namespace {

constexpr index kX = 5, kY = 7, kD = 3, kW = 6;

index padded(index n, index lanes) { return (n + lanes - 1) / lanes * lanes; }

TEST(LinearBlock, BothOrdersAreOneSum) {
  for_each_isa([] {
    const detail::LinearKernels<double> kernels = detail::linear_kernels<double>();
    const index width = padded(kW, kernels.lanes);
    const auto a = normals<double>(1, kX * kD), b = normals<double>(2, kY * kD);
    const auto c = normals<double>(3, kY * kW);
    std::vector<double> state(kD * width), by_state(kX * width), direct(by_state);
    const Rows<const double> x(a.data(), kX, kD), y(b.data(), kY, kD), values(c.data(), kY, kW);
    kernels.add_to_state(y, values, {state.data(), kD, width});
    kernels.take_state(x, {state.data(), kD, width}, {by_state.data(), kX, width});
    kernels.add_direct({x, y, values, 0, true}, {direct.data(), kX, width});
    std::vector<double> out(kX * kW);
    kernels.store_scaled({direct.data(), kX, width}, 2, {out.data(), kX, kW});
    for (index r = 0; r < kX; ++r) {
      for (index n = 0; n < kW; ++n) {
        double sum = 0;
        for (index j = 0; j < kY; ++j) {
          double score = 0;
          for (index d = 0; d < kD; ++d) score += x[r][d] * y[j][d];
          sum += score * values[j][n];
        }
        EXPECT_NEAR(direct[static_cast<std::size_t>(r * width + n)], sum, 1e-14);
        EXPECT_NEAR(by_state[static_cast<std::size_t>(r * width + n)], sum, 1e-14);
        EXPECT_NEAR(out[static_cast<std::size_t>(r * kW + n)], 2 * sum, 1e-13);
      }
    }
  });
}

// Row r keeps the first r - 1 of y; y 3 is non_finite.
TEST(LinearBlock, WhatIsNotKeptMayBeAnything) {
  for_each_isa([] {
    const detail::LinearKernels<float> kernels = detail::linear_kernels<float>();
    const index width = padded(kW, kernels.lanes);
    const auto a = normals<float>(1, kX * kD);
    auto b = normals<float>(2, kY * kD), c = normals<float>(3, kY * kW);
    std::vector<float> clean(kX * width), non_finite(clean);
    const Rows<const float> x(a.data(), kX, kD), y(b.data(), kY, kD), values(c.data(), kY, kW);
    kernels.add_direct({x, y, values, -1, false}, {clean.data(), kX, width});
    b[3 * kD] = NAN;
    c[3 * kW + 1] = INFINITY;
    kernels.add_direct({x, y, values, -1, false}, {non_finite.data(), kX, width});
    EXPECT_EQ(clean[1], 0);  // row 0 and row 1 keep nothing
    EXPECT_EQ(non_finite, clean);
    kernels.add_direct({x, y, values, 0, false}, {non_finite.data(), kX, width});
    EXPECT_TRUE(std::isnan(non_finite[static_cast<std::size_t>(4 * width)]));
    EXPECT_FALSE(std::isnan(non_finite[static_cast<std::size_t>(3 * width)]));
  });
}

}  // namespace
}  // namespace fovea::testing

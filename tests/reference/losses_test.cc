// SPDX-License-Identifier: Apache-2.0
// The reference against values by hand.
#include "fovea/reference/kernels.h"
#include "tests/reference/support.h"

namespace fovea {
namespace {

TEST(ReferenceLosses, CrossEntropyOfAProjectionByHand) {
  // One feature of 1, weights (0, ln 2, ln 5): the softmax is (1, 2, 5) / 8; the target is the
  // last.
  const auto x = row({1});
  Matrix<double> weight(3, 1), losses(1, 1), dx(1, 1), dweight(3, 1), dbias(1, 3);
  weight.at(1, 0) = std::log(2);
  weight.at(2, 0) = std::log(5);
  const std::int32_t target = 2;
  const auto result = reference::linear_cross_entropy<double>({.x = x.view(),
                                                               .weight = weight.view(),
                                                               .targets = {{&target, 1}},
                                                               .losses = losses.vec(),
                                                               .dx = dx.view(),
                                                               .dweight = dweight.view(),
                                                               .dbias = dbias.vec()});
  EXPECT_NEAR(result.total, std::log(1.6), 1e-12);
  expect_near(dbias, {0.125, 0.25, -0.375});
  expect_near(dweight, {0.125, 0.25, -0.375});
  expect_near(dx, {0.25 * std::log(2) - 0.375 * std::log(5)});
}

}  // namespace
}  // namespace fovea

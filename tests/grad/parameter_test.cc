// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/parameter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/support/vectors.h"

namespace fovea {
namespace {

using testing::Each;

Parameter ones(index rows, index columns) {
  Parameter p;
  p.value = Tensor::of<float>({rows, columns},
                              std::vector<float>(static_cast<std::size_t>(rows * columns), 1));
  return p;
}

const PackedMatrix<float>& packed(Parameter& p, Form form) {
  return p.packed.get<float>(Context(1), p.value.rows<float>(), form, p.version);
}

TEST(Parameter, FinishedGradientIsZeroWhereNothingReachedIt) {
  Parameter p = ones(2, 2);
  EXPECT_THAT(to_vector(p.finished_gradient().vec<float>()), Each(0));
  p.gradient.vec<float>()[3] = 5;
  p.clear_gradient();
  EXPECT_THAT(to_vector(p.finished_gradient().vec<float>()), Each(0));
}

TEST(PackedWeight, IsPackedAgainWhenTheVersionChangesAndOnlyThen) {
  Parameter p = ones(3, 2);
  EXPECT_EQ(packed(p, Form::kPlain).panels().panel(0)[0], 1);
  p.value.vec<float>()[0] = 7;
  EXPECT_EQ(packed(p, Form::kPlain).panels().panel(0)[0], 1);
  ++p.version;
  EXPECT_EQ(packed(p, Form::kPlain).panels().panel(0)[0], 7);
}

TEST(PackedWeight, KeepsBothForms) {
  Parameter p = ones(3, 2);
  EXPECT_EQ(packed(p, Form::kPlain).columns(), 2);
  EXPECT_EQ(packed(p, Form::kTransposed).columns(), 3);
  EXPECT_EQ(packed(p, Form::kPlain).rows(), 3);
}

TEST(PackedWeight, MayBeAskedForByManyThreadsAtOnce) {
  Parameter p = ones(64, 64);
  std::vector<std::thread> threads;
  std::vector<const PackedMatrix<float>*> seen(8);
  for (auto& one : seen) threads.emplace_back([&p, &one] { one = &packed(p, Form::kTransposed); });
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(seen, Each(seen[0]));
  EXPECT_EQ(seen[0]->panels().panel(0)[0], 1);
}

}  // namespace
}  // namespace fovea

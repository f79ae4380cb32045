// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

const Init kNormal = Init::normal(1);

TEST(ParameterSet, NamesParametersByTheirPlaceAndKeepsTheirOrder) {
  ParameterSet set({});
  const ParameterScope root(set);
  root["blocks"][2]["attention"].add("weight", {3, 2}, kNormal);
  root.add("bias", {4}, Init::zeros(), Decay::kNo);
  ASSERT_EQ(set.parameters().size(), 2u);
  EXPECT_EQ(set.parameters()[0]->name, "blocks.2.attention.weight");
  EXPECT_EQ(set.parameters()[1]->name, "bias");
  EXPECT_EQ(set.parameters()[1]->decay, Decay::kNo);
  EXPECT_EQ(set.find("bias"), set.parameters()[1]);
  EXPECT_EQ(set.find("weight"), nullptr);
  EXPECT_EQ(set.size(), 10);
}

TEST(ParameterSet, ValuesFollowFromSeedAndNumber) {
  const auto second = [](std::uint64_t seed, index size_of_first) {
    ParameterSet set({.seed = seed});
    const ParameterScope root(set);
    root.add("a", {size_of_first}, kNormal);
    return to_vector(root.add("b", {5}, kNormal).value.vec<float>());
  };
  EXPECT_EQ(second(1, 3), second(1, 300));
  EXPECT_NE(second(1, 3), second(2, 3));
}

TEST(ParameterSet, CountsWithoutMemory) {
  ParameterSet set({.memory = ParameterMemory::kShapesOnly});
  ParameterScope(set).add("huge", {1 << 30, 1 << 30}, kNormal);
  EXPECT_EQ(set.size(), index{1} << 60);
  EXPECT_FALSE(set.parameters()[0]->value.defined());
}

TEST(ParameterSet, RefusesWhatCannotBeCounted) {
  ParameterSet set({.memory = ParameterMemory::kShapesOnly});
  const ParameterScope root(set);
  root.add("a", {index{1} << 62}, kNormal);
  EXPECT_THROWS(root.add("b", {index{1} << 62}, kNormal), kShape, "more than can be counted");
}

TEST(ParameterSet, RefusesANameTwice) {
  ParameterSet set({});
  const ParameterScope root(set);
  root.add("a", {1}, kNormal);
  EXPECT_THROWS(root.add("a", {1}, kNormal), kUsage, "two are called 'a'");
}

}  // namespace
}  // namespace fovea

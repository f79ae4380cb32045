// SPDX-License-Identifier: Apache-2.0
#include "fovea/config/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace fovea {
namespace {

const std::vector<std::string> kOptions = {"--layers", "--heads", "--kv-heads", "--width", "--lr"};

TEST(Suggest, FindsWhatWasMeant) {
  EXPECT_EQ(closest("--layrs", kOptions), "--layers");
  EXPECT_EQ(closest("--laeyrs", kOptions), "--layers");
  EXPECT_EQ(closest("--LAYERS", kOptions), "--layers");
  EXPECT_EQ(closest("--kv_heads", kOptions), "--kv-heads");
  EXPECT_EQ(closest("--head", kOptions), "--heads");
  EXPECT_EQ(closest("--lf", kOptions), "--lr");
}

TEST(Suggest, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(closest("--temperature", kOptions), "");
  EXPECT_EQ(closest("", kOptions), "");
  EXPECT_EQ(closest(std::string(1000000, 'x'), kOptions), "");
  EXPECT_EQ(closest("--layers", {}), "");
}

TEST(Suggest, ANeighbourSwapCountsOnce) {
  const std::vector<std::string> names = {"abcd"};
  EXPECT_EQ(closest("abdc", names), "abcd");
  EXPECT_EQ(closest("badc", names), "");
}

TEST(Suggest, AsksAQuestion) {
  EXPECT_EQ(did_you_mean("--widht", kOptions), "did you mean --width?");
  EXPECT_EQ(did_you_mean("--zzzzzz", kOptions), "");
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/adapters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fovea/nn/linear.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(Adapters, CountAsTheirOptionsSay) {
  AdaptableBase options;
  options.lora = 4;
  EXPECT_EQ(alpha_of(options), 8);
  EXPECT_EQ(adapter_scale(options), 2);
  options.lora_alpha = 3;
  EXPECT_EQ(adapter_scale(options), 0.75);
  options.lora_rs = true;
  EXPECT_EQ(adapter_scale(options), 1.5);
}

TEST(Adapters, ProductsByTheirNames) {
  AdaptedProducts some("q,mlp_in");
  EXPECT_TRUE(some.wants("q_proj", "q"));
  EXPECT_FALSE(some.wants("k_proj", "k"));
  EXPECT_THROWS(some.require_all_found(), kOptionValue,
                "no products 'mlp_in'; it has k_proj, q_proj");
  EXPECT_TRUE(some.wants("mlp_in"));
  some.require_all_found();
  AdaptedProducts all("all");
  EXPECT_TRUE(all.wants("k_proj", "k"));
  all.require_all_found();
  for (const char* const text : {"", "all,q"}) {
    EXPECT_THROWS(AdaptedProducts(text).require_all_found(), kOptionValue,
                  "expected names, or all");
  }
}

TEST(Adapters, WhatTheyDoNotGoWith) {
  AdaptableBase options;
  options.freeze = "0";
  check_adapters(options);
  options.lora = 2;
  EXPECT_THROWS(check_adapters(options), kOptionValue, "--lora, --freeze");
  options.freeze.clear();
  options.layer_lr_decay = 0.5;
  EXPECT_THROWS(check_adapters(options), kOptionValue, "--lora, --layer-lr-decay");
}

TEST(Adapters, TheirValues) {
  ParameterSet set({.seed = 1});
  const Linear layer({.in = 3, .out = 5}, ParameterScope(set)["x"]);
  const std::vector<LowRankTarget> targets = {{"one", set.find("x.weight"), 0, 2},
                                              {"two", set.find("x.weight"), 2, 3}};
  AdaptableBase options;
  options.lora = 2;
  EXPECT_EQ(adapter_values(targets, options), 2 * (2 + 3) + 2 * (3 + 3));
  for (const bool dora : {false, true}) {
    options.dora = dora;
    const auto adapters =
        make_adapters(set.parameters(), targets, options, 1, ParameterMemory::kUnwritten);
    index values = 0;
    for (const Parameter* const one : adapters->parameters()) values += one->value.size();
    EXPECT_EQ(adapter_values(targets, options), values) << dora;
  }
}

TEST(Adapters, ABaseThatIsNotThere) {
  AdaptableBase options;
  options.base = "/there/is/nothing";
  EXPECT_THROWS(require_same_base(options), kModelMissing,
                "the base of these adapters is not there");
  EXPECT_THROWS(weights_checksum(options.base), kModelMissing, "no weights");
  EXPECT_THAT(bases_of(options), testing::ElementsAre("/there/is/nothing"));
  EXPECT_THROWS(require_adapters("run", options, "train lm"), kModelWrongKind, "holds no adapters");
}

}  // namespace
}  // namespace fovea

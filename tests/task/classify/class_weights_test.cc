// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/task/classify/read_texts.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

const LabelSet kLabelSet({"good", "a=b", "bad"});  // in order: a=b, bad, good

std::vector<double> weights(const std::string& option, bool multi_label = false) {
  return class_weights(option, kLabelSet,
                       {.counts = {10, 30, 60}, .texts = 100, .multi_label = multi_label});
}

TEST(ClassWeights, AreNoneBalancedOrSaid) {
  EXPECT_TRUE(weights("none").empty());
  EXPECT_THAT(weights("balanced"),
              ElementsAre(DoubleEq(100.0 / 30), DoubleEq(100.0 / 90), DoubleEq(100.0 / 180)));
  EXPECT_THAT(weights("balanced", true),
              ElementsAre(DoubleEq(9), DoubleEq(70.0 / 30), DoubleEq(40.0 / 60)));
  EXPECT_THAT(weights("a=b=2.5,good=.25"), ElementsAre(2.5, 1, 0.25));
}

TEST(ClassWeights, QuoteLabelsWithCommas) {
  const LabelSet labels({"a, b", "say \"x\"=", "z"});
  const auto said = [&](const std::string& option) {
    return class_weights(option, labels, {.counts = {1, 1, 1}, .texts = 3});
  };
  EXPECT_THAT(said("\"a, b\"=2,z=3"), ElementsAre(2, 1, 3));
  EXPECT_THAT(said("z=3,\"say \"\"x\"\"=\"=5"), ElementsAre(1, 5, 3));
  EXPECT_THAT(said("say \"x\"==4"), ElementsAre(1, 4, 1)) << "not in quotes";
  EXPECT_THROWS(said("\"a, b=2"), kOptionValue, "expected LABEL=NUMBER");
  EXPECT_THROWS(said("\"a, b\" =2"), kOptionValue, "expected LABEL=NUMBER");
  EXPECT_THROWS(said("\"a, b\"=2x"), kOptionValue, "expected a number above 0, got '2x'");
  EXPECT_THROWS(said("\""), kOptionValue, "expected LABEL=NUMBER");
}

TEST(ClassWeights, NameWhatIsWrong) {
  EXPECT_THROWS(weights("fair"), kOptionValue, "--class-weights fair: expected LABEL=NUMBER");
  EXPECT_THROWS(weights("ugly=1"), kOptionValue, "no text has the label ugly");
  EXPECT_THROWS(weights("good=-1"), kOptionValue, "expected a number above 0, got '-1'");
  EXPECT_THROWS(weights("good=1x"), kOptionValue, "got '1x'");
  EXPECT_THROWS(weights("good=1,good=7"), kOptionValue, "the label good has two weights");
  EXPECT_THROWS(weights("good=1,"), kOptionValue, "expected LABEL=NUMBER");
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/decide.h"

#include <gmock/gmock.h>

#include <cmath>

#include "fovea/base/random.h"
#include "tests/linear/support.h"

namespace fovea {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatEq;
using testing::FloatNear;

constexpr auto kLabels = ClassifierTask::kMultiLabel;
constexpr auto kClasses = ClassifierTask::kSingleLabel;

// Predictions of one label that are calibrated: a text with p has it with that probability.
struct DrawnLabel {
  std::vector<float> p;
  LabelledSample labelled;
};

DrawnLabel draw_label(index texts, double most) {
  Random random(1, RandomUse::kTest);
  DrawnLabel drawn;
  for (index i = 0; i < texts; ++i) {
    const double p = most * std::pow(random.uniform(), 4);
    drawn.p.push_back(static_cast<float>(p));
    if (random.uniform() < p) {
      drawn.labelled.add("", {0});
    } else {
      drawn.labelled.add("", {});
    }
  }
  return drawn;
}

double f1_at(const DrawnLabel& of, float threshold) {
  double hits = 0, both = 0;
  for (std::size_t i = 0; i < of.p.size(); ++i) {
    const bool has = !of.labelled.truth.labels_of(static_cast<index>(i)).empty();
    const bool said = of.p[i] >= threshold;
    hits += has && said ? 1 : 0;
    both += (has ? 1 : 0) + (said ? 1 : 0);
  }
  return 2 * hits / both;
}

// 1/2 never names a label of which no text is that sure.
TEST(FindThresholds, HaveNearlyTheBestF1OfALabel) {
  for (const double most : {0.3, 0.8}) {
    const DrawnLabel drawn = draw_label(20'000, most);
    const float found =
        find_thresholds(Context(2), kLabels, drawn.p, drawn.labelled.truth, 1).at(0);
    double best = 0;
    for (float t = 0.01F; t < 0.9F; t += 0.01F) best = std::max(best, f1_at(drawn, t));
    EXPECT_GE(f1_at(drawn, found), 0.97 * best) << most;
    EXPECT_NEAR(found, best / 2, 0.02) << most;
    EXPECT_LT(f1_at(drawn, 0.5F), 0.95 * best) << most;
  }
}

TEST(FindThresholds, HoldWhereALabelIsNeverOrAlwaysThere) {
  LabelledSample never, always, one;
  std::vector<float> p;
  for (int i = 0; i < 10; ++i) {
    never.add("", {});
    always.add("", {0});
    one.add("", i == 3 ? std::vector<std::int32_t>{0} : std::vector<std::int32_t>{});
    p.push_back(i == 3 ? 1e-7F : 0);
  }
  EXPECT_THAT(find_thresholds(Context(2), kLabels, p, never.truth, 1), ElementsAre(0.5F));
  for (const auto* set : {&always, &one}) {
    const float found = find_thresholds(Context(2), kLabels, p, set->truth, 1).at(0);
    EXPECT_GT(found, 0);
    EXPECT_LE(found, 0.5F);
  }
}

// 90 texts of class 0 and 10 of class 1, of which none is likelier than class 0.
struct Uneven {
  std::vector<float> p;
  LabelledSample labelled;

  explicit Uneven(index rare) {
    for (index i = 0; i < 100; ++i) {
      const bool is_rare = i < rare;
      labelled.add("", {is_rare ? 1 : 0});
      const float own = is_rare ? 0.3F : 0.05F;
      p.insert(p.end(), {1 - own, own});
    }
  }
};

TEST(FindThresholds, NameRareClasses) {
  const Uneven uneven(10);
  const std::vector<float> found =
      find_thresholds(Context(2), ClassifierTask::kBinary, uneven.p, uneven.labelled.truth, 2);
  EXPECT_EQ(found[0], 1);
  EXPECT_LT(found[1], 0.3 / 0.7);    // 0.7 / 1 < 0.3 / threshold
  EXPECT_GT(found[1], 0.05 / 0.95);  // and the others stay what they are
}

TEST(FindThresholds, LeaveEvenClassesToTheLikeliest) {
  const Uneven even(45);
  EXPECT_THAT(find_thresholds(Context(2), ClassifierTask::kBinary, even.p, even.labelled.truth, 2),
              Each(1.0F));
}

// A class without texts is not made likely by its lack of them.
TEST(FindThresholds, LeaveClassesWithoutTextsAlone) {
  const Uneven uneven(10);
  std::vector<float> p;
  for (std::size_t i = 0; i < 100; ++i) {
    p.insert(p.end(), {uneven.p[2 * i] - 0.001F, uneven.p[2 * i + 1], 0.001F});
  }
  EXPECT_EQ(find_thresholds(Context(2), kClasses, p, uneven.labelled.truth, 3).at(2), 1);
}

TEST(FindThresholds, AreNoneOfNumbers) {
  LabelledSample numbers;
  numbers.add_number("", 1);
  EXPECT_TRUE(find_thresholds(Context(2), ClassifierTask::kRegression, std::vector<float>{1},
                              numbers.truth, 1)
                  .empty());
}

TEST(Decisive, IsAHalfAtTheThresholdOfALabel) {
  const std::vector<float> thresholds = {0.2F, 0.5F, 0.9F};
  EXPECT_THAT(decisive(kLabels, std::vector<float>{0.2F, 0.5F, 0.9F}, thresholds),
              Each(testing::AllOf(testing::Ge(0.5F), FloatNear(0.5F, 1e-6F))));
  const std::vector<float> values =
      decisive(kLabels, std::vector<float>{0.1F, 0.4F, 1}, thresholds);
  EXPECT_THAT(values, ElementsAre(FloatNear(0.1F * 0.8F / (0.1F * 0.8F + 0.9F * 0.2F), 1e-6F),
                                  FloatNear(0.4F, 1e-6F), FloatEq(1)));
  EXPECT_THAT(decisive(kLabels, std::vector<float>{0, 1, 0}, std::vector<float>{1, 1, 1}),
              ElementsAre(0, testing::Ge(0.5F), 0));
  for (const float t : {1e-6F, 0.123F, 0.3F, 0.49F}) {  // never below by rounding
    EXPECT_GE(decisive(kLabels, std::vector<float>{t}, std::vector<float>{t})[0], 0.5F) << t;
  }
}

TEST(Decisive, WeighsClassesByTheirThresholds) {
  const std::vector<float> p = {0.8F, 0.15F, 0.05F};
  EXPECT_THAT(decisive(kClasses, p, std::vector<float>{1, 0.1F, 0.1F}),
              ElementsAre(FloatEq(0.8F / 2.8F), FloatEq(1.5F / 2.8F), FloatEq(0.5F / 2.8F)));
  EXPECT_EQ(decisive(kClasses, p, {}), p);
  std::vector<float> two = p;
  two.insert(two.end(), {0.1F, 0.2F, 0.7F});
  const std::vector<float> rows = decisive_rows(kClasses, two, std::vector<float>{1, 0.1F, 0.1F});
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0], 0.8F / 2.8F);
  EXPECT_EQ(decisive_rows(kClasses, two, {}), two);
}

// 10 texts by their probability of the label; it is wrong of the third, and of those from the
// seventh on.
struct Ranked10 {
  std::vector<float> p, of_two;
  LabelledSample labels, classes;

  Ranked10() {
    for (int i = 0; i < 10; ++i) {
      const bool has = i != 2 && i < 6;
      labels.add("", has ? std::vector<std::int32_t>{0} : std::vector<std::int32_t>{});
      classes.add("", {has ? 1 : 0});
      p.push_back(0.95F - 0.1F * static_cast<float>(i));
      of_two.insert(of_two.end(), {1 - p.back(), p.back()});
    }
  }
};

TEST(FindThresholds, ReachAPrecisionWithTheMostTexts) {
  const Ranked10 set;
  const auto at = [&](double precision) {
    return find_thresholds(Context(2), kLabels, set.p, set.labels.truth, 1,
                           {.rule = {ThresholdGoal::kPrecision, precision}})
        .at(0);
  };
  EXPECT_NEAR(at(1), 0.80, 1e-6);     // two texts, both right
  EXPECT_NEAR(at(0.83), 0.40, 1e-6);  // five of six
  EXPECT_NEAR(at(0.8), 0.40, 1e-6);   // not four of five, which have fewer
}

TEST(FindThresholds, ReachARecallWithTheFewestTexts) {
  const Ranked10 set;
  const auto at = [&](double recall) {
    return find_thresholds(Context(2), kLabels, set.p, set.labels.truth, 1,
                           {.rule = {ThresholdGoal::kRecall, recall}})
        .at(0);
  };
  EXPECT_NEAR(at(0.4), 0.80, 1e-6);
  EXPECT_NEAR(at(0.41), 0.60, 1e-6);  // the third adds nothing
  EXPECT_NEAR(at(1), 0.40, 1e-6);
}

TEST(FindThresholds, OfTwoClassesAreThoseOfTheSecond) {
  const Ranked10 set;
  for (const auto& [rule, expected] : {std::pair{ThresholdRule{ThresholdGoal::kPrecision, 1}, 0.8},
                                       {ThresholdRule{ThresholdGoal::kGiven, 0.3}, 0.3}}) {
    const auto found = find_thresholds(Context(2), ClassifierTask::kBinary, set.of_two,
                                       set.classes.truth, 2, {.rule = rule});
    EXPECT_NEAR(threshold_of(ClassifierTask::kBinary, found, 1), expected, 1e-6);
    const auto d = decisive_rows(ClassifierTask::kBinary, set.of_two, found);
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(d[2 * i + 1] > d[2 * i], set.of_two[2 * i + 1] > expected) << i;
    }
  }
}

TEST(FindThresholds, SayWhichPrecisionsAreMissed) {
  const Ranked10 set;
  const auto missed = [&](double precision) {
    const ThresholdRule rule{ThresholdGoal::kPrecision, precision};
    const auto found =
        find_thresholds(Context(1), kLabels, set.p, set.labels.truth, 1, {.rule = rule});
    return missed_precisions(kLabels, set.p, set.labels.truth, found, rule);
  };
  EXPECT_TRUE(missed(1).empty());  // the first two are right
  LabelledSample wrong;            // the likeliest text has no label, the next one has
  wrong.add("", {});
  wrong.add("", {0});
  const std::vector<float> p = {0.9F, 0.6F};
  const ThresholdRule rule{ThresholdGoal::kPrecision, 0.95};
  const auto found = find_thresholds(Context(1), kLabels, p, wrong.truth, 1, {.rule = rule});
  const auto missed_there = missed_precisions(kLabels, p, wrong.truth, found, rule);
  ASSERT_EQ(missed_there.size(), 1U);
  EXPECT_EQ(missed_there[0].precision, 0.5);
  EXPECT_TRUE(missed_precisions(kLabels, p, wrong.truth, found, {}).empty());
}

TEST(FindThresholds, EndWhereTheyAreInterrupted) {
  const Ranked10 set;
  EXPECT_TRUE(find_thresholds(Context(2), kLabels, set.p, set.labels.truth, 1,
                              {.interrupted = [] { return true; }})
                  .empty());
}

TEST(ParseThreshold, ReadsRules) {
  EXPECT_EQ(parse_threshold("f1").goal, ThresholdGoal::kF1);
  EXPECT_EQ(parse_threshold("precision=.95").value, .95);
  EXPECT_EQ(parse_threshold("recall=1").goal, ThresholdGoal::kRecall);
  EXPECT_EQ(parse_threshold("0.3").goal, ThresholdGoal::kGiven);
  for (const char* text : {"", "1", "0", "-.5", "precision", "precision=", "recall=0", "f2",
                           "precision=2", ".5x", "nan", "recall=inf"}) {
    EXPECT_THROW(parse_threshold(text), Error) << text;
  }
}

}  // namespace
}  // namespace fovea

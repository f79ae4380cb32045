// SPDX-License-Identifier: Apache-2.0
// Every number of every report, against scikit-learn and SciPy.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "fovea/metrics/classification.h"
#include "fovea/metrics/probabilities.h"
#include "fovea/metrics/regression.h"
#include "tests/metrics/metrics_golden.h"
#include "tests/support/draws.h"

namespace fovea {
namespace {

using golden::Case;

Draws draws_of(const Case& of) { return Draws(static_cast<std::uint64_t>(of.arguments[0])); }

bool contains(const std::vector<index>& all, index one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::vector<std::int32_t> without(index classes, const std::vector<index>& never) {
  std::vector<std::int32_t> rest;
  for (index k = 0; k < classes; ++k) {
    if (!contains(never, k)) rest.push_back(static_cast<std::int32_t>(k));
  }
  return rest;
}

std::int32_t one_of(Draws& draws, const std::vector<std::int32_t>& classes) {
  return classes[static_cast<std::size_t>(draws.below(static_cast<index>(classes.size())))];
}

template <class Report>
void expect_numbers(const Report& report, const Case& of) {
  std::size_t at = 0;
  Report::visit_numbers(report, [&](const NumberName& name, double number) {
    ASSERT_LT(at, of.numbers.size());
    const double expected = of.numbers[at++];
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(number)) << name.name << " of case " << of.arguments[0];
    } else {
      EXPECT_NEAR(number, expected, 1e-12 * std::max(1.0, std::abs(expected)))
          << name.name << ' ' << name.label << " of case " << of.arguments[0];
    }
  });
  EXPECT_EQ(at, of.numbers.size());
  EXPECT_EQ(report.examples, of.arguments[1]);
}

TEST(MetricsGolden, Classification) {
  for (const Case& of : golden::kClassificationCases) {
    Draws draws = draws_of(of);
    const index classes = of.arguments[2];
    const auto true_classes = without(classes, of.never_true);
    const auto predicted_classes = without(classes, of.never_predicted);
    std::vector<std::int32_t> truth, predicted;
    for (index n = 0; n < of.arguments[1]; ++n) {
      truth.push_back(one_of(draws, true_classes));
      const bool agrees = draws.below(100) < of.arguments[3];
      predicted.push_back(one_of(draws, predicted_classes));
      if (agrees && !contains(of.never_predicted, truth.back())) predicted.back() = truth.back();
    }
    const ConfusionMatrix confusion = confusion_matrix(truth, predicted, classes);
    expect_numbers(classification_report(confusion), of);
    const Scores macro = classification_report(confusion, AbsentClasses::kAsZero).macro;
    EXPECT_NEAR(macro.precision, of.macro_of_all[0], 1e-12);
    EXPECT_NEAR(macro.recall, of.macro_of_all[1], 1e-12);
    EXPECT_NEAR(macro.f1, of.macro_of_all[2], 1e-12);
  }
}

TEST(MetricsGolden, Multilabel) {
  for (const Case& of : golden::kMultilabelCases) {
    Draws draws = draws_of(of);
    const index N = of.arguments[1], L = of.arguments[2];
    std::vector<std::uint8_t> truth, predicted;
    for (index i = 0; i < N * L; ++i) {
      const bool t = draws.below(100) < of.arguments[3] && !contains(of.never_true, i % L);
      const bool agrees = draws.below(100) < of.arguments[4];
      const bool p = draws.below(100) < of.arguments[3];
      truth.push_back(t);
      predicted.push_back((agrees ? t : p) && !contains(of.never_predicted, i % L));
    }
    const Rows<const std::uint8_t> t(truth.data(), N, L), p(predicted.data(), N, L);
    expect_numbers(multilabel_report(t, p), of);
  }
}

TEST(MetricsGolden, Probability) {
  for (const Case& of : golden::kProbabilityCases) {
    Draws draws = draws_of(of);
    const index N = of.arguments[1], K = of.arguments[2];
    std::vector<double> rows;
    std::vector<std::int32_t> truth;
    for (index n = 0; n < N; ++n) {
      std::vector<double> weights;
      double sum = 1;
      for (index k = 0; k < K; ++k) {
        weights.push_back(static_cast<double>(draws.below(of.arguments[3] + 1)));
        sum += weights.back();
      }
      weights[static_cast<std::size_t>(draws.below(K))] += 1;
      for (const double weight : weights) rows.push_back(weight / sum);
      truth.push_back(static_cast<std::int32_t>(draws.below(K)));
    }
    const Rows<const double> probabilities(rows.data(), N, K);
    expect_numbers(probability_report(probabilities, truth, of.arguments[4]), of);
  }
}

TEST(MetricsGolden, Binary) {
  for (const Case& of : golden::kBinaryCases) {
    Draws draws = draws_of(of);
    const index steps = of.arguments[2];
    std::vector<double> p;
    std::vector<std::uint8_t> truth;
    for (index n = 0; n < of.arguments[1]; ++n) {
      truth.push_back(draws.below(100) < of.arguments[3]);
      index score = draws.below(steps);
      if (truth.back() != 0) score += draws.below(steps);
      p.push_back(static_cast<double>(score) / static_cast<double>(2 * steps));
    }
    const BinaryReport report = binary_report<double>(p, truth, of.arguments[4]);
    expect_numbers(report, of);
    EXPECT_EQ(report.positives, std::count(truth.begin(), truth.end(), 1));
  }
}

TEST(MetricsGolden, Regression) {
  for (const Case& of : golden::kRegressionCases) {
    Draws draws = draws_of(of);
    const index noise = of.arguments[3];
    std::vector<double> truth, predicted;
    for (index n = 0; n < of.arguments[1]; ++n) {
      truth.push_back(static_cast<double>(draws.below(of.arguments[2])) / 8);
      predicted.push_back(static_cast<double>(of.arguments[4]) * truth.back() +
                          static_cast<double>(draws.below(noise) - noise / 2) / 16 + 3);
    }
    expect_numbers(regression_report<double>(truth, predicted), of);
  }
}

}  // namespace
}  // namespace fovea

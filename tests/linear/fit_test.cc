// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/fit.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/linear/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(LinearFit, LearnsWhatWordsSay) {
  for (const index classes : {index{2}, index{5}}) {
    const Fitted how{.task = classes == 2 ? ClassifierTask::kBinary : ClassifierTask::kSingleLabel,
                     .classes = classes};
    const LinearFit found = fit(drawn_texts(400, classes, 4), how);
    EXPECT_GT(accuracy(found.model, drawn_texts(400, classes, 4, 2)), 0.93) << classes;
  }
}

// The bits of what is stored do not depend on the threads.
TEST(LinearFit, HasTheSameBitsForAnyNumberOfThreads) {
  const LabelledSample drawn = drawn_texts(300, 3, 6);
  const auto bits = [&](int threads) {
    const LinearFit found =
        fit(drawn, {.task = ClassifierTask::kSingleLabel, .classes = 3, .threads = threads});
    std::pair<std::vector<float>, std::vector<float>> all{found.model.weights().weights,
                                                          found.unseen};
    all.first.insert(all.first.end(), found.model.weights().prior.begin(),
                     found.model.weights().prior.end());
    for (const LinearTrial& trial : found.trials) {
      all.second.push_back(static_cast<float>(trial.loss));
    }
    return all;
  };
  const auto one = bits(1);
  for (const int threads : {2, 3, 8}) EXPECT_EQ(bits(threads), one) << threads;
}

// The loss that it says of a setting is that of texts it has never seen, and the least is chosen.
TEST(LinearFit, ChoosesByTextsThatItHasNotSeen) {
  const LinearFit nothing = fit(drawn_texts(300, 2, 1'000'000), {});
  EXPECT_NEAR(nothing.trials[nothing.chosen].loss, std::log(2), 0.03);
  const LinearFit found = fit(drawn_texts(1000, 2, 12), {});
  const LabelledSample test = drawn_texts(2000, 2, 12, 2);
  double loss = 0;
  for (std::size_t i = 0; i < test.texts.size(); ++i) {
    const auto label = static_cast<std::size_t>(test.truth.labels_of(static_cast<index>(i))[0]);
    loss -= std::log(double{predict(found.model, test.texts[i])[label]}) / 2000;
  }
  EXPECT_NEAR(found.trials[found.chosen].loss, loss, 0.03);
  for (const LinearTrial& trial : found.trials) {
    EXPECT_GE(trial.loss, found.trials[found.chosen].loss);
  }
}

// Each text stands there three times: if folds shared them, labels of pure chance would be known.
TEST(LinearFit, KeepsEqualTextsInOneFold) {
  Draws draws(3);
  LabelledSample drawn;
  for (int i = 0; i < 100; ++i) {
    const std::string text = draw_words(draws, 8, 1'000'000);
    const auto label = static_cast<std::int32_t>(draws.below(2));
    for (int n = 0; n < 3; ++n) drawn.add(text, {label});
  }
  const LinearFit found = fit(drawn, {});
  EXPECT_GT(found.trials[found.chosen].loss, 0.6);
}

// The fewer texts there are, the smaller is the share that the models of cross-validation lack.
TEST(LinearFit, IsCalibratedByMoreFoldsOfFewTexts) {
  const auto folds = [](index texts, index given = 0) {
    const LinearFit found = fit(drawn_texts(texts, 2, 4), {.options = {.c = 1, .folds = given}});
    return *std::max_element(found.fold.begin(), found.fold.end()) + 1;
  };
  EXPECT_EQ(folds(40), 5);
  EXPECT_EQ(folds(100), 10);
  EXPECT_EQ(folds(600), 20);
  EXPECT_EQ(folds(600, 4), 4);
  EXPECT_EQ(folds(5500), 10);
  EXPECT_EQ(folds(20100), 3);
}

TEST(LinearFit, GivesThePriorsToATextWithoutKnownNgrams) {
  LabelledSample drawn;
  for (const LabelledSample some = drawn_texts(400, 4, 4); drawn.texts.size() < 400;) {
    const std::size_t i = drawn.texts.size();
    drawn.add(some.texts[i], {i % 4 == 0 ? 1 : 0});
  }
  EXPECT_NEAR(predict(fit(drawn, {}).model, "zzz")[1], 0.25, 0.01);
}

// Words of which one class has more, so that few texts are certain.
LabelledSample tilted_texts(index texts, std::uint64_t seed) {
  Draws draws(seed);
  LabelledSample all;
  for (index i = 0; i < texts; ++i) {
    const index label = draws.below(2);
    std::string text;
    for (int n = 0; n < 12; ++n) {
      const index a = draws.below(60), b = draws.below(60);
      const index word = draws.below(3) > 0 ? a : label == 1 ? std::max(a, b) : std::min(a, b);
      text += "w" + std::to_string(word) + " ";
    }
    all.add(text, {static_cast<std::int32_t>(label)});
  }
  return all;
}

// A loss that is less by luck alone does not choose between weightings.
TEST(LinearFit, TakesRatiosUnlessTheyAreClearlyWorse) {
  int by_luck = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const LinearFit found = fit(tilted_texts(200, seed), {});
    const auto least = [&](bool ratios) {
      double loss = 1e9;
      for (const LinearTrial& trial : found.trials) {
        if (has_ratios(trial.weighting) == ratios) loss = std::min(loss, trial.loss);
      }
      return loss;
    };
    if (has_ratios(found.trials[found.chosen].weighting)) {
      by_luck += least(false) < least(true) ? 1 : 0;
    } else {
      EXPECT_LT(least(false), least(true)) << seed;
    }
  }
  EXPECT_GE(by_luck, 1);
}

// The ends of words tell the class; most words occur once, and the others tell nothing.
LabelledSample ends_of_words(index texts, index classes, std::uint64_t seed) {
  Draws draws(seed);
  LabelledSample all;
  for (index i = 0; i < texts; ++i) {
    const index label = draws.below(classes);
    std::string text = draw_words(draws, 8, 200);
    for (int n = 0; n < 3; ++n) {
      const index end = draws.below(3) > 0 ? label : draws.below(classes);
      text += std::to_string(draws.below(1'000'000)) + "x" + std::to_string(end) + " ";
    }
    all.add(text, {static_cast<std::int32_t>(label)});
  }
  return all;
}

TEST(LinearFit, LeavesOutWordsThatTellNothing) {
  for (const index classes : {index{2}, index{70}}) {  // 70: sixteen side by side
    Fitted how{.task = classes == 2 ? ClassifierTask::kBinary : ClassifierTask::kSingleLabel,
               .classes = classes,
               .rules = rules_of("1-2", "1-4")};
    const LabelledSample drawn = ends_of_words(15 * classes + 1000, classes, 1);
    const auto weight_of_words = [&](const LinearFit& found) {
      double sum = 0;
      const auto& weights = found.model.weights().weights;
      const index words = found.model.features().blocks[0].names.size();
      for (std::size_t n = 0; n < static_cast<std::size_t>(words * logit_count(how.task, classes));
           ++n) {
        sum += std::abs(double{weights[n]});
      }
      return sum;
    };
    const LinearFit all = fit(drawn, how);
    EXPECT_FALSE(all.trials[all.chosen].without_words);
    EXPECT_GT(weight_of_words(all), 0);
    how.options.leave_out = NgramsLeftOut::kWords;
    const LinearFit found = fit(drawn, how);
    EXPECT_TRUE(found.trials[found.chosen].without_words) << classes;
    EXPECT_EQ(weight_of_words(found), 0) << classes;
    const LabelledSample test = ends_of_words(1000, classes, 2);
    EXPECT_GT(accuracy(found.model, test), accuracy(all.model, test) - 0.01) << classes;
    how.threads = 3;
    EXPECT_EQ(fit(drawn, how).model.weights().weights, found.model.weights().weights);
  }
}

TEST(LinearFit, KeepsWordsThatTellSomething) {
  Draws draws(1);
  LabelledSample drawn;  // in which the order of two words tells the class
  for (int i = 0; i < 1000; ++i) {
    const auto label = static_cast<std::int32_t>(draws.below(2));
    const std::string pair = label == 1 ? "before after " : "after before ";
    drawn.add(draw_words(draws, 4, 50) + pair + draw_words(draws, 4, 50), {label});
  }
  Fitted how{.rules = rules_of("1-2", "1-4")};
  how.options.leave_out = NgramsLeftOut::kWords;
  const LinearFit found = fit(drawn, how);
  EXPECT_GT(accuracy(found.model, drawn), 0.99);
  EXPECT_FALSE(found.trials[found.chosen].without_words);
  const auto is_tried = [&](const LabelledSample& sample) {
    const LinearFit tried = fit(sample, how);
    return std::any_of(tried.trials.begin(), tried.trials.end(),
                       [](const LinearTrial& trial) { return trial.without_words; });
  };
  EXPECT_TRUE(is_tried(drawn));
  EXPECT_FALSE(is_tried(ends_of_words(900, 2, 1)));  // which are few
  how.rules = rules_of("1-2", "0");                  // without those of words there is nothing
  EXPECT_FALSE(is_tried(drawn));
}

TEST(LinearFit, MayLeaveOutTheWordsOfShortTexts) {
  const auto left_out = [](const std::string& text, const LinearFitOptions& options = {}) {
    const std::vector<std::string> texts(20, text);
    return choose_ngrams(texts, options, WordSplit::kPunctuation, true).leave_out;
  };
  const std::string longer(300, 'x');
  EXPECT_EQ(left_out("a few words"), NgramsLeftOut::kWords);
  EXPECT_EQ(left_out(longer), NgramsLeftOut::kNone);
  EXPECT_EQ(left_out("a few words", {.word_ngrams = "1-2"}), NgramsLeftOut::kNone);
  EXPECT_EQ(left_out(longer, {.leave_out = NgramsLeftOut::kWords}), NgramsLeftOut::kWords);
  EXPECT_EQ(left_out("a few words", {.leave_out = NgramsLeftOut::kNone}), NgramsLeftOut::kNone);
}

TEST(LinearFit, GivesProbabilitiesThatMeanSomething) {
  for (const std::uint64_t seed : {1u, 7u}) {
    const LinearFit found = fit(tilted_texts(2000, seed), {});
    const LabelledSample test = tilted_texts(4000, seed + 1);
    constexpr int kBins = 10;
    double sure[kBins] = {}, right[kBins] = {};
    for (std::size_t i = 0; i < test.texts.size(); ++i) {
      const double p = double{predict(found.model, test.texts[i])[1]};
      const double top = std::max(p, 1 - p);
      const auto bin = std::min(kBins - 1, static_cast<int>(top * kBins));
      sure[bin] += top;
      right[bin] += (p > 0.5) == (test.truth.labels_of(static_cast<index>(i))[0] == 1) ? 1 : 0;
    }
    double error = 0;
    for (int bin = 0; bin < kBins; ++bin) error += std::abs(sure[bin] - right[bin]) / 4000;
    EXPECT_LT(error, 0.03) << seed;
  }
}

TEST(LinearFit, LearnsSeveralLabels) {
  const auto draw = [](std::uint64_t seed) {
    Draws draws(seed);
    LabelledSample all;
    for (int i = 0; i < 400; ++i) {
      std::string text = draw_words(draws, 6, 40);
      std::vector<std::int32_t> labels;
      for (std::int32_t label = 0; label < 3; ++label) {
        if (draws.below(label == 2 ? 12 : 3) != 0) continue;
        labels.push_back(label);
        text += "label" + std::to_string(label) + " ";
      }
      all.add(text, labels);
    }
    return all;
  };
  const LinearFit found = fit(draw(1), {.task = ClassifierTask::kMultiLabel, .classes = 3});
  const LabelledSample test = draw(2);
  int wrong = 0;
  for (std::size_t i = 0; i < test.texts.size(); ++i) {
    const std::vector<float> p = predict(found.model, test.texts[i]);
    const auto labels = test.truth.labels_of(static_cast<index>(i));
    for (std::int32_t label = 0; label < 3; ++label) {
      const bool has = std::find(labels.begin(), labels.end(), label) != labels.end();
      wrong += (p[static_cast<std::size_t>(label)] >= 0.5F) != has ? 1 : 0;
    }
  }
  EXPECT_LE(wrong, 12);
}

// Of 95 % of one class, the others are named, and probabilities stay what they are.
TEST(LinearFit, NamesRareClasses) {
  const auto draw = [](std::uint64_t seed) {
    LabelledSample some = drawn_texts(600, 2, 25, seed), all;
    for (std::size_t i = 0; i < some.texts.size(); ++i) {
      const std::int32_t label = some.truth.labels_of(static_cast<index>(i))[0];
      if (label == 0 || i % 20 == 1) all.add(some.texts[i], {label});
    }
    return all;
  };
  const LinearFit found = fit(draw(1), {});
  ASSERT_EQ(found.model.weights().thresholds.size(), 2U);
  EXPECT_EQ(found.model.weights().thresholds[0], 1);
  EXPECT_LE(found.model.weights().thresholds[1], 1);
  const LinearFit weighted = fit(draw(1), {.class_weights = {0.6, 5}});
  EXPECT_TRUE(weighted.model.weights().thresholds.empty());
}

// Numbers that texts do not tell: each larger C is worse, and the largest are not tried.
TEST(LinearFit, LeavesAPathThatBecomesWorse) {
  Draws draws(5);
  LabelledSample noise;
  for (int i = 0; i < 200; ++i) {
    noise.add_number(draw_words(draws, 8, 40), static_cast<float>(draws.below(3)) - 1);
  }
  const LinearFit nothing = fit(noise, {.task = ClassifierTask::kRegression, .classes = 1});
  ASSERT_GE(nothing.trials.size(), 2U);
  EXPECT_LT(nothing.trials.size(), 5U);
  EXPECT_EQ(nothing.chosen, 0U);
  EXPECT_GT(nothing.trials.back().loss, 1.01 * nothing.trials[0].loss);
}

TEST(LinearFit, LearnsNumbers) {
  const auto draw = [](std::uint64_t seed) {
    Draws draws(seed);
    LabelledSample all;
    for (int i = 0; i < 400; ++i) {
      const index good = draws.below(5), bad = draws.below(5);
      std::string text = draw_words(draws, 4, 30);
      for (index n = 0; n < good; ++n) text += "good ";
      for (index n = 0; n < bad; ++n) text += "bad ";
      all.add_number(text, 0.5F * static_cast<float>(good - bad));
    }
    return all;
  };
  const Fitted how{.task = ClassifierTask::kRegression, .classes = 1};
  const LinearFit found = fit(draw(1), how);
  const LabelledSample test = draw(2);
  double error = 0;
  for (std::size_t i = 0; i < test.texts.size(); ++i) {
    const double off =
        double{predict(found.model, test.texts[i])[0]} - double{test.truth.numbers[i]};
    error += off * off / 400;
  }
  EXPECT_LT(error, 0.2);  // of a variance of 1
}

TEST(LinearFit, HeedsTheWeightsOfClasses) {
  LabelledSample drawn;
  for (const LabelledSample some = drawn_texts(400, 2, 40); drawn.texts.size() < 400;) {
    const std::size_t i = drawn.texts.size();
    drawn.add(some.texts[i], {i % 10 == 1 ? 1 : 0});
  }
  const auto mean = [&](std::vector<double> weights) {
    const LinearFit found = fit(drawn, {.class_weights = std::move(weights)});
    double sum = 0;
    for (const std::string& text : drawn.texts) sum += double{predict(found.model, text)[1]};
    return sum / 400;
  };
  EXPECT_NEAR(mean({}), 0.1, 0.03);
  EXPECT_NEAR(mean({0.5, 4.5}), 0.5, 0.1);
}

TEST(LinearFit, TakesAFixedCWithoutAChoice) {
  Fitted how;
  how.options.c = 3;
  how.options.weighting = NgramWeighting::kRatio;
  const LinearFit found = fit(drawn_texts(60, 2, 4), how);
  EXPECT_EQ(found.trials[found.chosen].c, 3);
  EXPECT_EQ(found.trials[found.chosen].weighting, NgramWeighting::kRatio);
  EXPECT_EQ(found.trials.size(), 1U);  // measured, for the calibration
}

// Sets on which there is little to learn: a model that is finite, whatever it says.
TEST(LinearFit, TakesOddSets) {
  const auto check_fit = [](const char* name, const LabelledSample& of, index classes,
                            ClassifierTask task) {
    SCOPED_TRACE(name);
    const LinearFit found = fit(of, {.task = task, .classes = classes});
    for (const float w : found.model.weights().weights) ASSERT_TRUE(std::isfinite(w));
    for (const std::string text : {"a", "zzz", ""}) {
      for (const float p : predict(found.model, text)) {
        EXPECT_TRUE(std::isfinite(p));
        if (task != ClassifierTask::kRegression) {
          EXPECT_TRUE(p >= 0 && p <= 1) << p;
        }
      }
    }
  };
  LabelledSample equal, one_class, alone, empty, few, none, numbers;
  for (std::int32_t i = 0; i < 40; ++i) {
    equal.add("a b c", {i % 2});
    one_class.add("a b " + std::to_string(i), {0});
    alone.add("a b " + std::to_string(i), {i == 7 ? 2 : i % 2});
    empty.add(i % 4 ? "" : "a b", {i % 2});
    none.add("a b", {});
    numbers.add_number("a b", 0);
  }
  few.add("a", {0});
  few.add("b", {1});
  check_fit("equal texts", equal, 2, ClassifierTask::kBinary);
  check_fit("one class", one_class, 2, ClassifierTask::kBinary);
  check_fit("a class with one text", alone, 3, ClassifierTask::kSingleLabel);
  check_fit("a class without texts", alone, 4, ClassifierTask::kSingleLabel);
  check_fit("empty texts", empty, 2, ClassifierTask::kBinary);
  check_fit("two texts", few, 2, ClassifierTask::kBinary);
  check_fit("no labels", none, 3, ClassifierTask::kMultiLabel);
  check_fit("equal numbers", numbers, 1, ClassifierTask::kRegression);
}

// Of more than kMostMeasured labels some choose C for all; those that are chosen by say the same
// loss of the others.
TEST(LinearFit, ChoosesCOfManyLabelsBySomeOfThem) {
  constexpr index kLabels = 80;
  LabelledSample drawn;
  for (const LabelledSample some = drawn_texts(640, kLabels, 3); drawn.texts.size() < 640;) {
    const auto i = static_cast<std::int32_t>(drawn.texts.size());
    drawn.add(some.texts[drawn.texts.size()], {i % static_cast<std::int32_t>(kLabels)});
  }
  Fitted how{.task = ClassifierTask::kMultiLabel, .classes = kLabels, .rules = rules_of("1", "0")};
  const LinearFit found = fit(drawn, how);
  how.threads = 3;
  const LinearFit threaded = fit(drawn, how);
  EXPECT_EQ(found.model.weights().weights, threaded.model.weights().weights);
  EXPECT_EQ(found.model.weights().thresholds, threaded.model.weights().thresholds);
  ASSERT_EQ(found.unseen.size(), 640U * kLabels);
  double loss = 0, named = 0;
  for (index i = 0; i < 640; ++i) {
    for (index k = 0; k < kLabels; ++k) {
      const double p = double{found.unseen[static_cast<std::size_t>(i * kLabels + k)]};
      loss -= std::log(k == i % kLabels ? p : 1 - p) / (640.0 * kLabels);
      named += k == i % kLabels &&
                       p >= double{found.model.weights().thresholds[static_cast<std::size_t>(k)]}
                   ? 1
                   : 0;
    }
  }
  EXPECT_GT(named, 0.8 * 640);
  // Measured with a factor alone, and told of the calibrated ones: close, and of all labels.
  EXPECT_NEAR(loss / found.trials[found.chosen].loss, 1, 0.1);
  for (const LinearTrial& trial : found.trials) {
    EXPECT_GE(trial.loss, found.trials[found.chosen].loss);
  }
}

TEST(LinearFit, ChoosesCOfManyClassesBySomeOfThem) {
  constexpr index kClasses = 70;
  Fitted how{
      .task = ClassifierTask::kSingleLabel, .classes = kClasses, .rules = rules_of("1", "0")};
  const LabelledSample drawn = drawn_texts(700, kClasses, 3);
  const LinearFit found = fit(drawn, how);
  how.threads = 3;
  const LinearFit threaded = fit(drawn, how);
  EXPECT_EQ(found.model.weights().weights, threaded.model.weights().weights);
  EXPECT_EQ(found.unseen, threaded.unseen);
  EXPECT_GT(accuracy(found.model, drawn_texts(700, kClasses, 3, 2)), 0.9);
  double loss = 0;
  for (index i = 0; i < 700; ++i) {
    const index label = drawn.truth.labels_of(i)[0];
    loss -= std::log(double{found.unseen[static_cast<std::size_t>(i * kClasses + label)]}) / 700;
  }
  // Measured with a factor alone, and told of shifts, too.
  EXPECT_NEAR(loss / found.trials[found.chosen].loss, 0.9, 0.1);
}

// The problem of a label is the same among many, which are solved sixteen at a time.
TEST(LinearFit, ALabelAmongManyHasTheWeightsThatItHasAmongFew) {
  constexpr index kMany = 70, kFew = 5;
  const LabelledSample drawn = drawn_texts(420, kMany, 3);
  LabelledSample few;
  for (std::size_t i = 0; i < drawn.texts.size(); ++i) {
    const std::int32_t label = drawn.truth.labels_of(static_cast<index>(i))[0];
    few.add(drawn.texts[i],
            label < kFew ? std::vector<std::int32_t>{label} : std::vector<std::int32_t>{});
  }
  Fitted how{.task = ClassifierTask::kMultiLabel, .classes = kMany};
  how.options.c = 4;
  how.options.calibrate = CalibrationKind::kNone;
  for (const NgramWeighting weighting : {NgramWeighting::kTfidf, NgramWeighting::kRatio}) {
    for (const double weight : {1.0, 3.0}) {
      how.options.weighting = weighting;
      how.classes = kMany, how.class_weights.assign(kMany, weight);
      const LinearModel many = fit(drawn, how).model;
      how.classes = kFew, how.class_weights.assign(kFew, weight);
      const LinearModel some = fit(few, how).model;
      ASSERT_EQ(many.features().columns(), some.features().columns());
      for (index f = 0; f < some.features().columns(); ++f) {
        for (index k = 0; k < kFew; ++k) {
          const auto at = static_cast<std::size_t>(f);
          EXPECT_NEAR(many.weights().weights[at * kMany + static_cast<std::size_t>(k)],
                      some.weights().weights[at * kFew + static_cast<std::size_t>(k)], 0.03)
              << many.features().name(f) << " " << k;
        }
      }
    }
  }
}

// One fold has all texts, so no text is left for the map that it is measured with.
TEST(LinearFit, EqualTextsHaveIsotonicMaps) {
  LabelledSample drawn = drawn_texts(100, 3, 12);
  std::fill(drawn.texts.begin(), drawn.texts.end(), "one text");
  Fitted how{.task = ClassifierTask::kSingleLabel, .classes = 3};
  how.options.calibrate = CalibrationKind::kIsotonic;
  const LinearFit found = fit(drawn, how);
  ASSERT_EQ(found.unseen.size(), 300U);
  for (const float p : found.unseen) EXPECT_NEAR(p, 1.0 / 3, 0.05);
}

TEST(LinearFit, IsotonicMapsAreMeasuredOnTextsThatTheyHaveNotSeen) {
  const LabelledSample drawn = drawn_texts(300, 2, 12);
  Fitted how;
  const LinearFit platt = fit(drawn, how);
  how.options.calibrate = CalibrationKind::kIsotonic;
  const LinearFit steps = fit(drawn, how);
  EXPECT_EQ(steps.model.weights().weights, platt.model.weights().weights);
  ASSERT_EQ(steps.model.weights().isotonic.size(), 1U);
  EXPECT_NE(steps.unseen, platt.unseen);
  const auto loss = [&](const LinearFit& of) {
    double sum = 0;
    for (index i = 0; i < 300; ++i) {
      sum -= std::log(double{of.unseen[static_cast<std::size_t>(2 * i + i % 2)]});
    }
    return sum / 300;
  };
  // Of so few texts steps know less than the sigmoid that the texts follow. Measured on the texts
  // that they come from, they would seem to know more.
  EXPECT_GT(loss(steps), loss(platt));
  EXPECT_LT(loss(steps), loss(platt) + 0.1);
}

TEST(LinearFit, StopsWhenAskedAndSaysHowFarItIs) {
  const LabelledSample drawn = drawn_texts(200, 2, 4);
  double last = 0;
  FitObserver observer;
  observer.works = [&](std::string_view what, double fraction) {
    EXPECT_FALSE(what.empty());
    EXPECT_GE(fraction, last);
    last = fraction;
  };
  EXPECT_TRUE(try_fit(drawn, {.observer = observer}).has_value());
  EXPECT_EQ(last, 1);
  int asked = 0;
  observer = {};
  observer.interrupted = [&] { return ++asked == 20; };  // once is enough
  EXPECT_FALSE(try_fit(drawn, {.observer = observer}).has_value());
  EXPECT_GE(asked, 20);
}

TEST(ChooseNgrams, LooksAtTheTexts) {
  const auto chosen = [](const std::string& text, std::size_t texts,
                         LinearFitOptions options = {}) {
    const std::vector<std::string> all(texts, text);
    const NgramRules rules = choose_ngrams(all, options, WordSplit::kPunctuation, true).rules;
    return to_string(rules.words) + " " + to_string(rules.characters);
  };
  std::string review;
  for (int n = 0; n < 200; ++n) review += "word ";
  EXPECT_EQ(chosen("short text", 100), "1-2 1-5");
  EXPECT_EQ(chosen(review, 100), "1-2 2-5");
  EXPECT_EQ(chosen(review, 20'000), "1-3 0");
  EXPECT_EQ(chosen("我们都是好人", 100), "0 1-3");
  EXPECT_EQ(chosen("short text", 100, {.word_ngrams = "2", .char_ngrams = "0"}), "2 0");
  EXPECT_THROWS(chosen("a", 1, {.word_ngrams = "x"}), kOptionValue, "--word-ngrams");
}

}  // namespace
}  // namespace fovea

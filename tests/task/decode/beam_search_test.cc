// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/decode/beam_search.h"

#include <gmock/gmock.h>

#include "tests/support/throws.h"
#include "tests/task/decode/table_model.h"

namespace fovea {
namespace {

constexpr token kEnd = 1, kBegin = 0;
const std::vector<index> kLongestOfEach = {4, 5, 1, 3};

SearchTask task_of(const std::vector<index>& longest = kLongestOfEach) {
  return {
      .begin = kBegin, .end = kEnd, .forbidden = {true, false, false, false}, .longest = longest};
}

std::vector<std::vector<Hypothesis>> search(const SearchOptions& options, double deviation = 2,
                                            int threads = 2) {
  TableModel model(4, deviation);
  return beam_search(Context(threads), model, task_of(), options);
}

// A beam that holds all hypotheses must find the best.
void expect_all_found(const SearchTask& task, const SearchOptions& options, double deviation) {
  TableModel model(4, deviation);
  const auto found = beam_search(Context(2), model, task, options);
  for (index s = 0; s < std::ssize(task.longest); ++s) {
    const auto all = all_hypotheses(model, s, task, options);
    const auto& best = found[static_cast<std::size_t>(s)];
    ASSERT_EQ(best.size(), std::min<std::size_t>(7, all.size()));
    for (std::size_t n = 0; n < best.size(); ++n) {
      EXPECT_EQ(best[n].tokens, all[n].tokens) << deviation << " " << s;
      EXPECT_EQ(best[n].has_end, all[n].has_end) << deviation << " " << s;
      EXPECT_NEAR(best[n].score, all[n].score, 1e-5);
      EXPECT_NEAR(best[n].log_probability, all[n].log_probability, 1e-5);
    }
  }
}

// Every penalty, form and number of results.
TEST(BeamSearch, FindsWhatTryingAllFinds) {
  for (const LengthNorm norm : {LengthNorm::kGnmt, LengthNorm::kMarian}) {
    for (const double penalty : {0.0, 0.6, 1.0, 2.0, -0.5}) {
      for (const double deviation : {0.3, 3.0}) {
        expect_all_found(task_of(),
                         {.beam = 256,
                          .nbest = 7,
                          .length_penalty = penalty,
                          .length_norm = norm,
                          .patience = 0},
                         deviation);
      }
    }
  }
}

TEST(BeamSearch, CoverageCountsAsWhereAllAreTried) {
  for (const double coverage : {0.2, 1.0, 5.0}) {
    for (const double deviation : {0.3, 3.0}) {
      expect_all_found(task_of(),
                       {.beam = 256, .nbest = 7, .coverage_penalty = coverage, .patience = 0},
                       deviation);
    }
  }
  // It changes what is best.
  EXPECT_NE(search({.beam = 256, .coverage_penalty = 5, .patience = 0}, 0.3)[1][0].tokens,
            search({.beam = 256, .patience = 0}, 0.3)[1][0].tokens);
}

// A beam that holds all that go on, however many of these end.
TEST(BeamSearch, SeveralTokensMayEndAHypothesis) {
  for (const double deviation : {0.3, 3.0}) {
    SearchTask task = task_of();
    task.more_ends = {3};
    expect_all_found(task, {.beam = 64, .nbest = 7, .patience = 0, .open_end = true}, deviation);
  }
  // Two of the four tokens end it; a beam of one still has one that goes on.
  const std::vector<index> longest = {6};
  SearchTask task = task_of(longest);
  task.more_ends = {3};
  for (std::uint64_t seed = 1; seed < 30; ++seed) {
    TableModel model(4, 2, seed);
    const auto found = beam_search(
        Context(1), model, task,
        {.beam = 1, .patience = 0, .prospect = Prospect::kOfBeamAtThisLength, .open_end = true});
    std::vector<index> path = {0, kBegin};
    token best = 0;
    std::vector<token> written;
    while (written.size() < 6 && best != kEnd && best != 3) {
      std::vector<float> logits = model.logits_of(path);
      best =
          static_cast<token>(std::max_element(logits.begin() + 1, logits.end()) - logits.begin());
      if (best != kEnd) written.push_back(best);
      path.push_back(best);
    }
    ASSERT_EQ(found[0].size(), 1u);
    EXPECT_EQ(found[0][0].tokens, written) << seed;
    EXPECT_EQ(found[0][0].has_end, best == kEnd) << seed;
  }
}

// As transformers has it where its generation_config.json says so.
TEST(BeamSearch, AForcedEndMayCostNothing) {
  const std::vector<index> longest = {1, 2};
  const SearchTask task = task_of(longest);
  for (const bool free_end : {false, true}) {
    TableModel model(4, 2);
    const auto found = beam_search(Context(1), model, task, {.beam = 8, .free_end = free_end});
    EXPECT_EQ(found[0][0].log_probability == 0, free_end);
    EXPECT_TRUE(found[0][0].tokens.empty());
    EXPECT_LT(found[1][0].log_probability, 0);
  }
}

TEST(BeamSearch, ForbiddenTokensMayHaveNoProbability) {
  const std::vector<index> longest = {1};
  for (const double deviation : {0.1, 2.0, 20.0}) {
    TableModel model(4, deviation);
    const auto logits = model.logits_of({0, kBegin});
    double allowed = 0;
    for (std::size_t id = 1; id < logits.size(); ++id) allowed += std::exp(double{logits[id]});
    const auto found =
        beam_search(Context(1), model, task_of(longest), {.beam = 2, .shares_rest = true});
    EXPECT_NEAR(found[0][0].log_probability, logits[kEnd] - std::log(allowed), 1e-6) << deviation;
  }
}

// A beam of one ends with the first end; others wait until as many have ended, and find no worse.
TEST(BeamSearch, SearchesOfTransformersWaitForTheBeam) {
  using enum Prospect;
  for (const Prospect prospect : {kOfBeamAtBestLength, kOfBeamAtThisLength}) {
    const auto greedy = search({.beam = 1});
    const auto one = search({.beam = 1, .patience = 0, .prospect = prospect});
    const auto first = search({.beam = 2}), all = search({.beam = 2, .patience = 0});
    const auto waited = search({.beam = 2, .patience = 0, .prospect = prospect});
    for (std::size_t s = 0; s < kLongestOfEach.size(); ++s) {
      EXPECT_EQ(one[s][0].tokens, greedy[s][0].tokens);
      EXPECT_GE(waited[s][0].score, first[s][0].score);
      EXPECT_LE(waited[s][0].score, all[s][0].score);
      EXPECT_EQ(waited[s].size(), 1u);
    }
  }
}

TEST(BeamSearch, CoverageIsThatOfTheSource) {
  const SearchOptions options{.coverage_penalty = 2};
  EXPECT_EQ(coverage_score(options, std::vector<double>{1, 3, 1.5}), 0);
  EXPECT_NEAR(coverage_score(options, std::vector<double>{0.5, 2, 0.25}), -2 * std::log(8.0),
              1e-12);
  EXPECT_NEAR(coverage_score(options, std::vector<double>{0}), 2 * std::log(1e-9), 1e-9);
  EXPECT_EQ(coverage_score({}, std::vector<double>{0.5}), 0);
}

// A model that knows no end writes as much as it may.
TEST(BeamSearch, WithoutAnEndHypothesesAreAsLongAsMayBe) {
  SearchTask task = task_of();
  task.end = kNoToken;
  for (const double penalty : {0.0, 1.0}) {
    expect_all_found(task, {.beam = 256, .nbest = 7, .length_penalty = penalty, .patience = 0}, 2);
  }
}

// As transformers has it where its generation_config.json forces no end.
TEST(BeamSearch, WhereThereIsNoMoreRoomAHypothesisMayLackItsEnd) {
  for (const double penalty : {0.0, 1.0}) {
    expect_all_found(
        task_of(),
        {.beam = 256, .nbest = 7, .length_penalty = penalty, .patience = 0, .open_end = true}, 2);
  }
  index open = 0;
  for (const auto& best : search({.beam = 256, .nbest = 7, .patience = 0, .open_end = true})) {
    for (const Hypothesis& one : best) open += one.has_end ? 0 : 1;
  }
  EXPECT_GT(open, 3);
}

// It stops as soon as none of the unfinished can win, and not before: the results are those of a
// search to the end.
TEST(BeamSearch, StopsWhenNoneCanWin) {
  const std::vector<index> longest = {40};
  const auto run = [&](double penalty, index nbest) {
    TableModel model(4, 4);
    const SearchOptions options{
        .beam = 3, .nbest = nbest, .length_penalty = penalty, .patience = 0};
    const auto found = beam_search(Context(1), model, task_of(longest), options);
    return std::pair(found, model.rows().size());
  };
  const auto [one, steps_of_one] = run(0, 1);
  const auto [three, steps_of_three] = run(0, 3);
  EXPECT_LT(steps_of_one, 40u);
  EXPECT_LE(steps_of_one, steps_of_three);
  EXPECT_EQ(one[0][0].tokens, three[0][0].tokens);
}

TEST(BeamSearch, PatienceEndsIt) {
  const std::vector<index> longest = {40};
  const auto steps = [&](double patience) {
    TableModel model(4, 0.2);
    beam_search(
        Context(1), model, task_of(longest),
        {.beam = 4, .length_penalty = 1, .length_norm = LengthNorm::kMarian, .patience = patience});
    return model.rows().size();
  };
  EXPECT_LT(steps(1), steps(2));
  EXPECT_LT(steps(2), steps(0));
}

TEST(BeamSearch, ABeamOfOneIsGreedy) {
  const auto found = search({.beam = 1});
  const TableModel model(4, 2);
  for (index s = 0; s < 4; ++s) {
    std::vector<index> path = {s, kBegin};
    std::vector<token> tokens;
    while (static_cast<index>(tokens.size()) + 1 < kLongestOfEach[static_cast<std::size_t>(s)]) {
      const auto logits = model.logits_of(path);
      const auto best = std::max_element(logits.begin() + 1, logits.end()) - logits.begin();
      if (best == kEnd) break;
      tokens.push_back(static_cast<token>(best));
      path.push_back(best);
    }
    EXPECT_EQ(found[static_cast<std::size_t>(s)][0].tokens, tokens);
  }
}

// Sentences leave the batch; what is left is no larger than the beams of those that stay.
TEST(BeamSearch, FinishedSentencesLeaveTheBatch) {
  TableModel model(4, 0.1);
  beam_search(Context(1), model, task_of(), {.beam = 2, .nbest = 2, .patience = 0});
  const std::vector<index>& rows = model.rows();
  EXPECT_EQ(rows[0], 4);
  EXPECT_EQ(rows[1], 6);  // one of at most one token has ended
  for (std::size_t n = 1; n < rows.size(); ++n) {
    const auto longer = [&](index longest) { return longest > static_cast<index>(n); };
    EXPECT_LE(rows[n], 2 * std::count_if(kLongestOfEach.begin(), kLongestOfEach.end(), longer));
  }
}

TEST(BeamSearch, NothingDependsOnOtherSentencesOrThreads) {
  const SearchOptions options{.beam = 3, .nbest = 2};
  const auto all = search(options, 2, 1);
  EXPECT_EQ(all.size(), 4u);
  const auto other = search(options, 2, 3);
  for (std::size_t s = 0; s < 4; ++s) {
    // The first sentence alone has the number that the table knows it by; others are masked by
    // asking for them with those before them.
    TableModel model(4, 2);
    const std::vector<index> some(kLongestOfEach.begin(),
                                  kLongestOfEach.begin() + static_cast<long>(s) + 1);
    const auto part = beam_search(Context(1), model, task_of(some), options);
    for (std::size_t n = 0; n < all[s].size(); ++n) {
      EXPECT_EQ(part[s][n].tokens, all[s][n].tokens);
      EXPECT_EQ(part[s][n].log_probability, all[s][n].log_probability);
      EXPECT_EQ(other[s][n].score, all[s][n].score);
    }
  }
}

TEST(BeamSearch, NamesWhatIsOutOfRange) {
  EXPECT_THROWS(check_options(SearchOptions{.beam = 0}), kOptionValue, "--beam");
  EXPECT_THROWS(check_options(SearchOptions{.beam = 2, .nbest = 3}), kOptionValue, "--nbest");
  EXPECT_THROWS(check_options(SearchOptions{.length_penalty = NAN}), kOptionValue,
                "--length-penalty");
  EXPECT_THROWS(check_options(SearchOptions{.coverage_penalty = -1}), kOptionValue,
                "--coverage-penalty");
  EXPECT_THROWS(check_options(SearchOptions{.patience = -1}), kOptionValue, "--patience");
  TableModel model(4, NAN);
  EXPECT_THROWS(beam_search(Context(1), model, task_of(), {}), kModelDamaged, "no token");
  EXPECT_EQ(length_divisor({.length_penalty = 1}, 7), 2);
  EXPECT_EQ(length_divisor({.length_penalty = 2, .length_norm = LengthNorm::kMarian}, 3), 9);
}

}  // namespace
}  // namespace fovea

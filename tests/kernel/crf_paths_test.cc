// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/crf.h"
#include "tests/kernel/crf_problem.h"

namespace fovea {
namespace {

const Context kContext(2);

template <class T>
std::vector<std::int32_t> viterbi(const CrfProblem<T>& p, const Context& ctx = kContext) {
  std::vector<std::int32_t> tags(static_cast<std::size_t>(p.emissions.rows()));
  crf_viterbi<T>(ctx, p.scores(), p.rows(), tags);
  return tags;
}

template <class T>
std::vector<std::vector<CrfPath>> best(const CrfProblem<T>& p, index count) {
  return crf_best_paths<T>(kContext, p.scores(), p.rows(), count);
}

/// Whole numbers, so that many paths have equal scores.
template <class T>
void make_ties(CrfProblem<T>& p) {
  for (Matrix<T>* m : {&p.transitions, &p.start, &p.end, &p.emissions}) {
    for (index r = 0; r < m->rows(); ++r)
      for (index c = 0; c < m->columns(); ++c) m->at(r, c) = std::round(m->at(r, c));
  }
}

template <class T>
void expect_brute_force(const CrfProblem<T>& p, index count) {
  const auto paths = best(p, count);
  const auto tags = viterbi(p);
  std::vector<double> scores(static_cast<std::size_t>(p.sequences()));
  std::vector<std::int32_t> same(tags.size());
  crf_viterbi<T>(kContext, p.scores(), p.rows(), same, scores);
  EXPECT_EQ(same, tags);
  for (index s = 0; s < p.sequences(); ++s) {
    const auto at = static_cast<std::size_t>(s);
    auto all = p.all_paths(s);
    EXPECT_TRUE(std::equal(all[0].tags.begin(), all[0].tags.end(), tags.begin() + p.offsets[at]))
        << s;
    EXPECT_EQ(scores[at], all[0].score);
    all.resize(static_cast<std::size_t>(std::min<index>(count, std::ssize(all))));
    EXPECT_EQ(paths[at], all) << s;
  }
}

TEST(CrfPaths, AreTheBestOfAllPathsOneByOne) {
  for (const double forbidden : {0.0, 0.5}) {
    auto p = random_crf<double>(21, {.deviation = 3, .forbidden = forbidden});
    expect_brute_force(p, 12);
    expect_brute_force(p.as<float>(), 12);
  }
}

TEST(CrfPaths, EqualScoresComeInTheOrderOfTheirTags) {
  for (std::uint64_t seed = 30; seed < 34; ++seed) {
    auto p = random_crf<double>(seed, {.tags = 4, .forbidden = seed % 2 == 0 ? 0.3 : 0});
    make_ties(p);
    expect_brute_force(p, 40);
    expect_brute_force(p.as<float>(), 40);
  }
  CrfProblem<float> flat{Matrix<float>(2, 2), Matrix<float>(1, 2), Matrix<float>(1, 2),
                         Matrix<float>(2, 2)};
  flat.offsets = {0, 2};
  const auto paths = best(flat, 9)[0];
  ASSERT_EQ(paths.size(), 4u) << "there are no more";
  EXPECT_THAT(paths[0].tags, testing::ElementsAre(0, 0));
  EXPECT_THAT(paths[1].tags, testing::ElementsAre(1, 0)) << "the lower last tag first";
  EXPECT_THAT(paths[2].tags, testing::ElementsAre(0, 1));
}

TEST(CrfPaths, SameTagsOnEveryInstructionSetForAnyNumberOfThreadsInAnyBatch) {
  auto p = random_crf<float>(22, {.tags = 21, .lengths = {30, 1, 0, 100, 7}, .forbidden = 0.3});
  make_ties(p);
  const auto expected = viterbi(p, Context(1));
  expect_same_for_threads([&](const Context& ctx) { return viterbi(p, ctx); });
  for_each_isa([&] { EXPECT_EQ(viterbi(p), expected); });
  const auto paths = best(p, 1);
  for (std::size_t s = 0; s < paths.size(); ++s) {
    EXPECT_TRUE(std::equal(paths[s][0].tags.begin(), paths[s][0].tags.end(),
                           expected.begin() + p.offsets[s]));
  }
}

TEST(CrfPaths, AreAllowedForManyRowsAndTags) {
  for (const index K : {1, 9, 500}) {
    const auto p = random_crf<float>(
        23, {.tags = K, .lengths = {K < 100 ? 10000 : 50}, .deviation = 100, .forbidden = 0.4});
    const auto tags = viterbi(p);
    EXPECT_TRUE(p.is_path(tags));
    EXPECT_GE(p.score(0, tags), p.score(0, p.tags));
  }
}

TEST(CrfPaths, WhatHasNoBestPathIsNamed) {
  auto p = random_crf<float>(24, {.tags = 2, .lengths = {2, 1}});
  p.may_start = {1, 0};
  p.may_end = {0, 1};
  EXPECT_THROWS(viterbi(p), kOptionValue, "crf_viterbi: sequence 1 has no path that is allowed");
  EXPECT_THROWS(best(p, 2), kOptionValue, "crf_best_paths: sequence 1 has no path that is allowed");
  EXPECT_THROWS(best(p, 0), kOptionValue, "count is 0; it must be at least 1");
  p.may_start.clear();
  p.emissions.at(1, 0) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROWS(viterbi(p), kOptionValue, "a score of sequence 0 is NaN or infinite");
  EXPECT_THROWS(best(p, 2), kOptionValue, "a score of sequence 0 is NaN or infinite");
  p.emissions.at(1, 0) = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(viterbi(p)[1], 1) << "-infinity is forbidden in its row";
  p.start.at(0, 0) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROWS(viterbi(p), kOptionValue, "a score of transitions, start or end is NaN");
}

TEST(CrfPaths, AnEmptySequenceHasOnePath) {
  const auto p = random_crf<float>(25, {.tags = 3, .lengths = {0}});
  EXPECT_EQ(best(p, 3)[0], std::vector<CrfPath>{CrfPath{}});
  EXPECT_TRUE(viterbi(p).empty());
}

}  // namespace
}  // namespace fovea

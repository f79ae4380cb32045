// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/crf.h"

#include <numeric>

#include "fovea/kernel/crf_chain.h"
#include "fovea/kernel/crf_score.h"
#include "tests/kernel/crf_results.h"

namespace fovea {
namespace {

// Numbers of tags: few, several sequences of which are in a vector, and so many that the vectors
// hold the tags of one.
constexpr index kBothWays[] = {2, 9};

/// log Z and the marginals of each sequence, path by path.
struct BruteForce {
  std::vector<double> log_z;
  Matrix<double> marginals;
};
BruteForce brute_force(const CrfProblem<double>& p) {
  BruteForce b{{}, Matrix<double>(p.emissions.rows(), p.K())};
  for (index s = 0; s < p.sequences(); ++s) {
    const auto paths = p.all_paths(s);
    double sum = 0;
    for (const CrfPath& path : paths) sum += std::exp(path.score - paths[0].score);
    b.log_z.push_back(paths[0].score + std::log(sum));
    for (const CrfPath& path : paths) {
      const double weight = std::exp(path.score - b.log_z.back());
      for (std::size_t n = 0; n < path.tags.size(); ++n) {
        b.marginals.at(p.offsets[static_cast<std::size_t>(s)] + static_cast<index>(n),
                       path.tags[n]) += weight;
      }
    }
  }
  return b;
}

TEST(Crf, IsThatOfAllPathsOneByOne) {
  for (const double forbidden : {0.0, 0.4}) {
    for (const auto& [tags, deviation] : {std::pair<index, double>{5, 1}, {5, 10}, {2, 10}}) {
      const auto p =
          random_crf<double>(1, {.tags = tags, .deviation = deviation, .forbidden = forbidden});
      const BruteForce exact = brute_force(p);
      const double bound = 1e-12 * std::max(1.0, deviation);
      EXPECT_LE(largest_difference(plain_marginals(p).values(), exact.marginals.values()), bound);
      const auto losses = plain(p).losses;
      for_each_isa([&] {
        EXPECT_LE(largest_difference(fast_partition(p), exact.log_z), bound);
        EXPECT_LE(largest_difference(fast_marginals(p).values(), exact.marginals.values()), bound);
        EXPECT_LE(largest_difference(fast(p).losses, losses), bound);
      });
    }
  }
}

void expect_close(const CrfProblem<float>& p) {
  const auto exact = plain(p.as<double>(), 0.5);
  const auto ours = fast(p, 0.5), loops = plain(p, 0.5);
  expect_no_worse(ours.emissions, loops.emissions, exact.emissions, "emissions");
  expect_no_worse(ours.transitions, loops.transitions, exact.transitions, "transitions");
  expect_no_worse(ours.start, loops.start, exact.start, "start");
  expect_no_worse(ours.end, loops.end, exact.end, "end");
  const double scale = std::max(1.0, largest(fast_partition(p)));
  const double error = largest_difference(loops.losses, exact.losses);
  EXPECT_LE(largest_difference(ours.losses, exact.losses), 2 * error + 4 * scale * 0x1p-23);
  expect_no_worse(fast_marginals(p), plain_marginals(p), plain_marginals(p.as<double>()),
                  "marginals");
}

TEST(Crf, ErrorIsAtMostTwiceThatOfThePlainFloat) {
  for_each_isa([] {
    for (const double deviation : {1.0, 10.0, 100.0})
      for (const double forbidden : {0.0, 0.5})
        for (const index K : {1, 2, 4, 7, 8, 9, 17, 40}) {
          SCOPED_TRACE(testing::Message() << K << " tags, " << deviation << ", " << forbidden);
          expect_close(random_crf<float>(2, {.tags = K,
                                             .lengths = {9, 0, 1, 40, 2, 17},
                                             .deviation = deviation,
                                             .forbidden = forbidden}));
        }
  });
}

TEST(Crf, Of500Tags) {
  for_each_isa([] {
    expect_close(
        random_crf<float>(3, {.tags = 500, .lengths = {4, 1}, .deviation = 3, .forbidden = 0.9}));
  });
}

TEST(Crf, GradientIsThatOfTheLoss) {
  auto p = random_crf<double>(4, {.tags = 3, .lengths = {3, 1, 2}, .forbidden = 0.3});
  const auto r = fast(p, 0.7);
  const auto loss = [&] { return 0.7 * fast(p).total; };
  expect_gradient(p.emissions, r.emissions, loss, "emissions");
  expect_gradient(p.transitions, r.transitions, loss, "transitions");
  expect_gradient(p.start, r.start, loss, "start");
  expect_gradient(p.end, r.end, loss, "end");
}

// exp(x) as a pair, joined again; its error in units of the last place.
template <class T>
double largest_error_of_split(double most) {
  Random r(16, RandomUse::kTest);
  std::vector<T> x(4096), m(x.size()), e(x.size());
  for (T& v : x) v = static_cast<T>(r.uniform(-most, most));
  const auto n = static_cast<index>(x.size());
  detail::crf_steps<T>().split(x.data(), n, {m.data(), e.data()});
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::exp(static_cast<long double>(x[i]));
    const long double found = std::ldexp(static_cast<long double>(m[i]), static_cast<int>(e[i]));
    error = std::max(error, static_cast<double>(std::abs(found / exact - 1)));
  }
  return error / std::numeric_limits<T>::epsilon();
}

TEST(Crf, PowersInPartsAreExactFarBeyondTheRangeOfFloats) {
  for_each_isa([] {
    EXPECT_LE(largest_error_of_split<float>(10), 1.05);
    EXPECT_LE(largest_error_of_split<float>(340), 1.05);
    EXPECT_LE(largest_error_of_split<double>(1000), 2);
  });
}

// Scores of deviation 100 over 10,000 rows add up to more than a float can tell apart. Each row
// adds to log Z, and to its error: so bounds are relative to log Z, 2e4 to 3e6 here. A loss is log
// Z less a score that is summed in double: it has the error of log Z, however small it is itself.
TEST(Crf, IsStableOverTenThousandRows) {
  for (const auto& [tags, deviation] : {std::pair<index, double>{9, 1}, {9, 100}, {4, 100}}) {
    const index K = tags;
    const CrfShape shape{.tags = K, .lengths = {10000}, .deviation = deviation, .forbidden = 0.3};
    const auto p = random_crf<float>(5, shape);
    const auto exact = plain(p.as<double>());
    const auto z = plain_partition(p.as<double>());
    const double bound = 1e-8 * std::abs(z[0]);
    for_each_isa([&] {
      EXPECT_NEAR(fast_partition(p)[0], z[0], bound);
      const auto ours = fast(p);
      EXPECT_NEAR(ours.losses[0], exact.losses[0], bound);
      EXPECT_LE(largest_difference(ours.emissions.values(), exact.emissions.values()), 1e-4);
      EXPECT_LE(largest_difference(ours.transitions.values(), exact.transitions.values()), 1e-2);
      const auto rows = fast_marginals(p);
      for (index n = 0; n < 10000; ++n) {
        double sum = 0;
        for (index k = 0; k < K; ++k) sum += double{rows.at(n, k)};
        ASSERT_NEAR(sum, 1, 1e-6) << n;
      }
    });
  }
}

// All weight is on tags from which nothing allowed leads on, many orders of magnitude above the
// one path that there is.
TEST(Crf, APathHasAllTheProbabilityHoweverUnlikelyItsTags) {
  const auto expect_all = [](index K, float odds) {
    CrfProblem<float> p{Matrix<float>(K, K), Matrix<float>(1, K), Matrix<float>(1, K),
                        Matrix<float>(20, K)};
    const auto last = static_cast<std::size_t>(K - 1);
    p.may_follow.assign((last + 1) * (last + 1), 0);
    for (std::size_t k = 0; k <= last; ++k) p.may_follow[k * (last + 1) + k] = 1;
    p.may_end.assign(last + 1, 0);
    p.may_end[last] = 1;
    p.offsets = {0, 20};
    p.tags.assign(20, static_cast<std::int32_t>(last));
    for (index n = 0; n < 20; ++n)
      for (index k = 0; k + 1 < K; ++k) p.emissions.at(n, k) = odds;
    const auto r = fast(p);
    EXPECT_EQ(r.total, 0) << odds << ", " << K << " tags";
    EXPECT_THAT(r.emissions.values(), testing::Each(0));
    EXPECT_THAT(r.transitions.values(), testing::Each(0));
    EXPECT_THAT(fast_marginals(p).values(), testing::Contains(1).Times(20));
  };
  for_each_isa([&] {
    for (const index K : kBothWays)
      for (const float odds : {10.0f, 100.0f, 300.0f, 3000.0f}) expect_all(K, odds);
  });
}

TEST(Crf, WhatIsForbiddenHasNoProbabilityAndNoGradientAtAll) {
  const auto expect_none = [](index K) {
    auto p = random_crf<float>(6, {.tags = K, .lengths = {12, 5, 1}, .forbidden = 0.6});
    for (index a = 0; a < K; ++a) {
      for (index b = 0; b < K; ++b) {
        if (!p.follows(a, b)) p.transitions.at(a, b) = std::numeric_limits<float>::quiet_NaN();
      }
    }
    const auto r = fast(p);
    const auto marginals = fast_marginals(p);
    EXPECT_TRUE(std::isfinite(r.total));
    for (index a = 0; a < K; ++a) {
      for (index b = 0; b < K; ++b) {
        EXPECT_TRUE(std::isfinite(r.transitions.at(a, b)));
        if (!p.follows(a, b)) {
          EXPECT_EQ(r.transitions.at(a, b), 0);
        }
      }
      if (!p.allowed(p.may_start, a)) {
        EXPECT_EQ(marginals.at(0, a), 0);
        EXPECT_EQ(r.start.at(0, a), 0);
      }
      if (!p.allowed(p.may_end, a)) {
        EXPECT_EQ(marginals.at(11, a), 0);
        EXPECT_EQ(r.end.at(0, a), 0);
      }
    }
  };
  for_each_isa([&] {
    expect_none(9);
    expect_none(4);
  });
}

TEST(Crf, OneTagIsCertain) {
  const auto p = random_crf<float>(7, {.tags = 1, .lengths = {5, 1, 0}, .deviation = 50});
  for_each_isa([&] {
    const auto r = fast(p);
    EXPECT_LE(r.total, 1e-4);
    EXPECT_THAT(r.losses, testing::Each(testing::Ge(0)));
    EXPECT_THAT(r.emissions.values(), testing::Each(0));
    EXPECT_THAT(fast_marginals(p).values(), testing::Each(1));
    EXPECT_EQ(fast_partition(p)[2], 0);
  });
}

TEST(Crf, OnlyWhatRoundingMakesOfALossBelowZeroIsHidden) {
  const detail::CrfPathScore path{.score = 40, .size = 60, .rows = 10};
  const auto loss = [&](double log_z) { return detail::loss_of_path<float>(log_z, path, 3); };
  EXPECT_EQ(loss(41), 1);
  EXPECT_EQ(loss(40 - 1e-5), 0);  // 230 ulp of a float are 2.7e-5
  EXPECT_EQ(loss(39.5), -.5);
  EXPECT_EQ(loss(40 - 1e-4), (40 - 1e-4) - 40);
  EXPECT_LT(detail::loss_of_path<double>(40 - 1e-5, path, 3), 0);
  EXPECT_TRUE(std::isnan(loss(std::numeric_limits<double>::quiet_NaN())));
}

TEST(Crf, NothingIsDoneForNoSequences) {
  auto p = random_crf<float>(8, {.tags = 3, .lengths = {}});
  EXPECT_EQ(fast(p).total, 0);
  EXPECT_THAT(fast(p).transitions.values(), testing::Each(0));
  p = random_crf<float>(8, {.tags = 3, .lengths = {0, 0}});
  EXPECT_EQ(fast(p).total, 0);
}

TEST(Crf, NaNReachesTheLossOfItsSequenceAlone) {
  for_each_isa([] {
    for (const index K : kBothWays) {
      auto p = random_crf<float>(9, {.tags = K, .lengths = {5, 5, 5}});
      const auto before = fast(p).losses;
      p.emissions.at(7, K - 1) = std::numeric_limits<float>::quiet_NaN();
      const auto r = fast(p);
      EXPECT_EQ(r.losses[0], before[0]) << K << " tags";
      EXPECT_TRUE(std::isnan(r.losses[1]));
      EXPECT_EQ(r.losses[2], before[2]);
      p.emissions.at(7, K - 1) = std::numeric_limits<float>::infinity();
      EXPECT_FALSE(std::isfinite(fast(p).losses[1]));
      EXPECT_THROWS(fast_marginals(p), kOptionValue, "sequence 1 is NaN or infinite");
    }
  });
}

// Sequence s of a batch.
CrfProblem<float> alone(const CrfProblem<float>& p, index s) {
  CrfProblem<float> one = p;
  const index first = p.offsets[static_cast<std::size_t>(s)], n = p.length(s);
  one.offsets = {0, static_cast<std::int32_t>(n)};
  one.emissions = Matrix<float>(n, p.K());
  one.tags.assign(p.tags.begin() + first, p.tags.begin() + first + n);
  for (index i = 0; i < n; ++i)
    for (index k = 0; k < p.K(); ++k) one.emissions.at(i, k) = p.emissions.at(first + i, k);
  return one;
}

// Of few tags, vectors hold several sequences: 20 of them fill one on every instruction set, and a
// lane whose sums are small (deviation 20, forbidden tags) must not change the others.
TEST(Crf, ASequenceHasTheSameBitsInAnyBatch) {
  const std::vector<std::int32_t> lengths{7, 30, 1, 7, 0, 2, 3,  3, 9, 4,
                                          1, 6,  8, 5, 2, 0, 12, 3, 3, 3};
  for_each_isa([&] {
    for (const index K : {11, 4, 2, 1}) {
      const auto p =
          random_crf<float>(10, {.tags = K, .lengths = lengths, .deviation = 20, .forbidden = 0.3});
      const auto whole = fast(p);
      const auto marginals = fast_marginals(p);
      for (index s = 0; s < p.sequences(); ++s) {
        const auto one = alone(p, s);
        const auto r = fast(one);
        const auto own = fast_marginals(one);
        EXPECT_EQ(r.losses[0], whole.losses[static_cast<std::size_t>(s)]);
        const index first = p.offsets[static_cast<std::size_t>(s)];
        for (index i = 0; i < p.length(s); ++i)
          for (index k = 0; k < K; ++k) {
            ASSERT_EQ(r.emissions.at(i, k), whole.emissions.at(first + i, k)) << s << " of " << K;
            ASSERT_EQ(own.at(i, k), marginals.at(first + i, k));
          }
      }
    }
  });
}

TEST(Crf, SameBitsForAnyNumberOfThreads) {
  std::vector<std::int32_t> lengths(67);
  std::iota(lengths.begin(), lengths.end(), 0);
  for (const index K : {13, 2}) {
    const auto p = random_crf<float>(11, {.tags = K, .lengths = lengths, .forbidden = 0.2});
    expect_same_for_threads([&](const Context& ctx) { return fast(p, 0.1, ctx); });
    expect_same_for_threads([&](const Context& ctx) { return fast_marginals(p, ctx); });
    expect_same_for_threads([&](const Context& ctx) { return fast_partition(p, ctx); });
  }
}

TEST(Crf, TheGradientMayBeLeftOut) {
  const auto p = random_crf<float>(12, {});
  std::vector<double> losses(6);
  EXPECT_EQ(crf_loss<float>(kContext, p.scores(), p.rows(), {p.tags}, losses), fast(p).total);
}

TEST(Crf, TagsThatAreNotAllowedAreNamed) {
  auto p = random_crf<float>(13, {.tags = 3, .lengths = {2, 0, 3}});
  p.tags = {0, 1, 2, 0, 1};
  p.may_follow = {1, 1, 1, 1, 1, 1, 0, 1, 1};
  EXPECT_THROWS(fast(p), kOptionValue, "crf_loss: sequence 2, row 1: tag 0 may not follow tag 2");
  p.may_follow.clear();
  p.may_start = {0, 1, 1};
  EXPECT_THROWS(fast(p), kOptionValue, "crf_loss: sequence 0, row 0: tag 0 may not be the first");
  p.may_start.clear();
  p.may_end = {1, 0, 1};
  EXPECT_THROWS(fast(p), kOptionValue, "crf_loss: sequence 0, row 1: tag 1 may not be the last");
  p.may_end.clear();
  p.tags[3] = 3;
  EXPECT_THROWS(fast(p), kShape, "crf_loss: sequence 2, row 1: tag 3 is not one of the 3 tags");
}

TEST(Crf, ASequenceWithoutAPathIsNamed) {
  for_each_isa([] {
    for (const index K : kBothWays) {
      auto p = random_crf<float>(14, {.tags = K, .lengths = {1, 2}});
      p.may_start.assign(static_cast<std::size_t>(K), 0);
      p.may_end = p.may_start;
      p.may_start.front() = p.may_end.back() = 1;
      EXPECT_EQ(fast_partition(p)[0], -std::numeric_limits<double>::infinity()) << K << " tags";
      EXPECT_TRUE(std::isfinite(fast_partition(p)[1]));
      EXPECT_THROWS(fast_marginals(p), kOptionValue, "sequence 0 has no path that is allowed");
    }
  });
}

TEST(Crf, NamesTheShapesInItsErrors) {
  auto p = random_crf<float>(15, {.tags = 3, .lengths = {2, 2}});
  const auto with = [&](auto&& change) {
    auto other = p;
    change(other);
    return fast(other);
  };
  EXPECT_THROWS(with([](auto& o) { o.transitions = Matrix<float>(3, 2); }), kShape,
                "crf_loss: transitions must be [3, 3]; it is [3, 2]");
  EXPECT_THROWS(with([](auto& o) { o.may_start = {1}; }), kShape,
                "allowed.start must be [K=3]; it is [1]");
  EXPECT_THROWS(with([](auto& o) { o.tags.pop_back(); }), kShape, "tags must be [N=4]; it is [3]");
  EXPECT_THROWS(with([](auto& o) { o.offsets.back() = 3; }), kShape,
                "offsets must run from 0 to the 4 rows");
  EXPECT_THROWS(with([](auto& o) { o.offsets[1] = 5; }), kShape, "sequence 1 has offsets 5 and 4");
}

}  // namespace
}  // namespace fovea

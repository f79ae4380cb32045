// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <utility>

#include "fovea/task/decode/sampling.h"
#include "tests/support/throws.h"
#include "tests/task/decode/table_model.h"

namespace fovea {
namespace {

const std::vector<index> kLongestSample = {3, 3};
const std::vector<std::uint64_t> kNumbers = {5, 9};

SampleTask task_of(index samples) {
  return {.search = {.begin = 0,
                     .end = 1,
                     .forbidden = {true, false, false},
                     .longest = kLongestSample},
          .samples = samples,
          .numbers = kNumbers};
}

std::vector<std::vector<Hypothesis>> draw(index samples, const SamplingOptions& options) {
  TableModel model(3, 1);
  return sample_search(Context(2), model, task_of(samples), options);
}

// As often as their probabilities say, where nothing is forbidden. The last token can only be the
// end, so a hypothesis of full length takes the share of all that would go on.
TEST(SampleSearch, DrawsByProbability) {
  const index n = 4000;
  TableModel model(3, 1);
  SampleTask task = task_of(n);
  task.search.forbidden.clear();
  const auto drawn = sample_search(Context(2), model, task, {.temperature = 1});
  std::map<std::vector<token>, double> counts;
  for (const Hypothesis& one : drawn[0]) counts[one.tokens] += 1.0 / static_cast<double>(n);
  for (const Hypothesis& one : all_hypotheses(model, 0, task.search, {})) {
    if (one.tokens.size() == 2) continue;
    EXPECT_NEAR(counts[one.tokens], std::exp(one.log_probability), 0.03);
  }
}

// Where there is no more room, a sample has ended without an end, or with one that costs nothing.
TEST(SampleSearch, EndsAsASearchDoes) {
  for (const bool is_open : {false, true}) {
    SCOPED_TRACE(is_open);
    SampleTask task = task_of(4000);
    task.open_end = is_open;
    task.free_end = !is_open;
    task.search.forbidden.clear();
    TableModel model(3, 1);
    const auto drawn = sample_search(Context(2), model, task, {.temperature = 1});
    std::map<std::pair<std::vector<token>, bool>, double> counts;
    for (const Hypothesis& one : drawn[0]) counts[{one.tokens, one.has_end}] += 1.0 / 4000;
    double sum = 0;
    for (const Hypothesis& one :
         all_hypotheses(model, 0, task.search, {.free_end = !is_open, .open_end = is_open})) {
      SCOPED_TRACE(testing::PrintToString(one.tokens));
      const double share = counts[{one.tokens, one.has_end}];
      sum += share;
      EXPECT_NEAR(share, std::exp(one.log_probability), 0.03);
      for (const Hypothesis& sample : drawn[0]) {
        if (sample.tokens != one.tokens || sample.has_end != one.has_end) continue;
        EXPECT_NEAR(sample.log_probability, one.log_probability, 1e-6);
        break;
      }
    }
    EXPECT_NEAR(sum, 1, 1e-9);
  }
}

TEST(SampleSearch, IsAFunctionOfSeedAndNumber) {
  const SamplingOptions options{.temperature = 1, .seed = 3};
  const auto one = draw(1, options), again = draw(40, options);
  std::set<std::vector<token>> different;
  for (std::size_t s = 0; s < one.size(); ++s) {
    EXPECT_EQ(one[s][0].tokens, again[s][0].tokens);
    EXPECT_EQ(one[s][0].log_probability, again[s][0].log_probability);
    for (const Hypothesis& sample : again[s]) different.insert(sample.tokens);
  }
  EXPECT_EQ(different.size(), 3u);  // all that there are
  SamplingOptions greedy = options;
  greedy.greedy = true;
  TableModel model(3, 1);
  const auto best = beam_search(Context(1), model, task_of(1).search, {.beam = 1});
  EXPECT_EQ(draw(1, greedy)[0][0].tokens, best[0][0].tokens);
  EXPECT_EQ(draw(1, greedy)[0][0].log_probability, best[0][0].log_probability);
  EXPECT_THROWS(draw(1, {.temperature = 0}), kOptionValue, "--temperature");
}

}  // namespace
}  // namespace fovea

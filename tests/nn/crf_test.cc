// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/crf.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/nn/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::Each;
using testing::ElementsAre;

const Context kContext(2);
const std::int32_t kOffsets[] = {0, 3, 3, 5};
const std::int32_t kTags[] = {0, 2, 1, 1, 0};
// Tag 1 not first, and not after tag 0.
const CrfRules kRules{{1, 0, 1, 1, 1, 1, 1, 1, 1}, {1, 0, 1}, {}};
const std::int32_t kAllowedTags[] = {0, 2, 1, 2, 0};

Tensor emissions() {
  Tensor x({5, 3});
  Random random(1, RandomUse::kTest);
  for (float& v : x.vec<float>()) v = static_cast<float>(random.normal());
  return x;
}

class CrfLayer : public testing::Test {
 protected:
  PackedRows rows() { return lay_out_rows(tape_, 5, {kOffsets, 4}, {}); }
  Variable input() { return tape_.input<float>(x_.rows<float>()); }

  ParameterSet set_{{.seed = 1}};
  Crf crf_{3, kRules, ParameterScope(set_)["crf"]};
  Tensor x_ = emissions();
  Tape tape_{kContext};
};

TEST_F(CrfLayer, HasParametersThatStartAtZeroWithoutDecay) {
  std::vector<std::string> names;
  for (const Parameter* p : set_.parameters()) {
    names.push_back(p->name);
    EXPECT_EQ(p->decay, Decay::kNo);
    for (const float v : p->value.vec<float>()) EXPECT_EQ(v, 0);
  }
  EXPECT_THAT(names, ElementsAre("crf.transitions", "crf.start", "crf.end"));
  EXPECT_EQ(set_.size(), 15);
}

TEST_F(CrfLayer, TheLossIsWhatThePathsSay) {
  const Variable loss = crf_.loss(tape_, input(), {kAllowedTags, 5}, rows(), 0.5);
  double expected = 0;
  const auto paths = crf_.best_paths(kContext, input(), rows(), 1000);
  const auto log_z = crf_.log_partition(kContext, input(), rows());
  for (std::size_t s = 0; s < 3; ++s) {
    double sum = 0;
    const std::vector<std::int32_t> own(kAllowedTags + kOffsets[s], kAllowedTags + kOffsets[s + 1]);
    for (const CrfPath& path : paths[s]) {
      sum += std::exp(path.score - log_z[s]);
      if (path.tags == own) expected += log_z[s] - path.score;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  EXPECT_NEAR(loss.value<float>()[0][0], 0.5 * expected, 1e-5);
}

TEST_F(CrfLayer, DecodesTheBestPathAndKnowsHowSureItIs) {
  const auto tags = crf_.decode(kContext, input(), rows());
  const auto paths = crf_.best_paths(kContext, input(), rows(), 1);
  EXPECT_TRUE(std::equal(tags.begin(), tags.begin() + 3, paths[0][0].tags.begin()));
  EXPECT_TRUE(std::equal(tags.begin() + 3, tags.end(), paths[2][0].tags.begin()));
  const auto p = crf_.marginals(kContext, input(), rows());
  for (std::size_t n = 0; n < 5; ++n) EXPECT_NEAR(p[3 * n] + p[3 * n + 1] + p[3 * n + 2], 1, 1e-6);
  EXPECT_EQ(p[1], 0) << "forbidden first";
  EXPECT_EQ(p[3 * 3 + 1], 0);
}

// A step down the gradient, again and again: the layer learns its tags, and what is forbidden
// stays.
TEST_F(CrfLayer, LearnsTransitionsAndLeavesTheForbiddenAlone) {
  double first = 0, last = 0;
  for (int step = 0; step < 200; ++step) {
    tape_.reset();
    for (Parameter* p : set_.parameters()) p->clear_gradient();
    const Variable zeros = scale(tape_, input(), 0);
    const Variable loss = crf_.loss(tape_, zeros, {kAllowedTags, 5}, rows());
    (step == 0 ? first : last) = double{loss.value<float>()[0][0]};
    tape_.backward(loss);
    for (Parameter* p : set_.parameters()) {
      const Vec<float> value = p->value.vec<float>();
      const auto gradient = p->finished_gradient().vec<float>();
      for (index i = 0; i < value.size; ++i) value[i] -= 0.5f * gradient[i];
      ++p->version;
    }
  }
  EXPECT_LT(last, 0.5 * first);
  EXPECT_EQ(set_.find("crf.transitions")->value.vec<float>()[1], 0);
  EXPECT_EQ(set_.find("crf.start")->value.vec<float>()[1], 0);
  EXPECT_NE(set_.find("crf.start")->value.vec<float>()[0], 0);
}

TEST_F(CrfLayer, TakesOneSequenceWithoutOffsets) {
  EXPECT_EQ(crf_.decode(kContext, input(), {}).size(), 5u);
  EXPECT_EQ(crf_.log_partition(kContext, input(), {}).size(), 1u);
  EXPECT_EQ(crf_.best_paths(kContext, input(), {}, 2)[0].size(), 2u);
}

TEST_F(CrfLayer, RefusesWhatDoesNotFit) {
  EXPECT_THROWS((crf_.loss(tape_, input(), {kTags, 5}, rows())), kOptionValue,
                "sequence 2, row 0: tag 1 may not be the first");
  EXPECT_THROWS((Crf(2, kRules, ParameterScope(set_)["other"])), kShape,
                "crf: the rules of transitions must have 4 flags, or none; they have 9");
  EXPECT_THROWS((Crf(0, {}, ParameterScope(set_)["none"])), kShape, "there are 0 tags");
}

}  // namespace
}  // namespace fovea

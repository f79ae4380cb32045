// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/score_tile.h"

#include <gtest/gtest.h>

#include "tests/attention/support/call.h"

namespace fovea::detail {
namespace {

// factor * s, with the sum of ds * s as the gradient of the factor.
class Factor final : public ScoreFunction<double> {
 public:
  explicit Factor(double factor) : factor_(factor) {}
  double value(const ScoreSite&, double s) const override { return factor_ * s; }
  double derivative(const ScoreSite&, double) const override { return factor_; }
  index gradient_size() const override { return 1; }
  void add_parameters(const ScoreSite&, double s, double ds, double* sums) const override {
    sums[0] += s * ds;
  }
  std::string name() const override { return "factor"; }

 private:
  double factor_;
};

class Plus final : public ScoreFunction<double> {
 public:
  double value(const ScoreSite&, double s) const override { return s + 1; }
  bool needs_scores() const override { return false; }
  std::string name() const override { return "plus 1"; }
};

// (s * 2 + 1) * 3, then the mask; and back.
TEST(ScoreTile, PartsGoForwardInOrderAndBackInReverse) {
  const Sequence sequence{.queries = 2, .keys = 2};
  const Attention<double> attention{.bias = Factor(2) + Plus() + Factor(3), .mask = mask::Causal()};
  EXPECT_EQ(gradient_size_of(attention.bias), 2);
  EXPECT_EQ(parts_with_scores(attention.bias), 2);
  std::vector<double> tile = {1, 2, 3, 4}, inputs(8);
  TileScores<double> scores{{sequence, 0, 0, 2, 0, 2},          TileKind::kSome, {},
                            {tile.data(), 2, TileLanes::kKeys}, inputs.data(),   4};
  transform_scores(attention, scores);
  const double none = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(tile, (std::vector<double>{9, none, 21, 27}));
  EXPECT_EQ(inputs, (std::vector<double>{1, 2, 3, 4, 3, 5, 7, 9})) << "what each factor read";

  tile = {1, 0, 10, 100};
  double sums[2] = {};
  pull_scores(attention, scores, {{}, {}, sums});
  EXPECT_EQ(tile, (std::vector<double>{6, 0, 60, 600}));
  EXPECT_EQ(sums[0], 3 * (1 * 1 + 10 * 3 + 100 * 4));
  EXPECT_EQ(sums[1], 1 * 3 + 10 * 7 + 100 * 9);
}

TEST(ScoreTile, AWholeTileIsNotMasked) {
  const Sequence sequence{.queries = 1, .keys = 2};
  std::vector<double> tile = {1, 2};
  const Attention<double> attention{.mask = mask::Where([](const ScoreSite&) { return false; })};
  TileScores<double> scores{{sequence, 0, 0, 1, 0, 2},          TileKind::kAll, {},
                            {tile.data(), 2, TileLanes::kKeys}, nullptr,        0};
  transform_scores(attention, scores);
  EXPECT_EQ(tile, (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace fovea::detail

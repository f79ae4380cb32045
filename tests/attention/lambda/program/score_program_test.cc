// SPDX-License-Identifier: Apache-2.0
// Programs as data: their definition, and what is known of them without looking at a score.
#include "fovea/attention/lambda/program/score_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/attention/support/programs.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

TEST(ScoreProgram, IsComputedStepByStep) {
  // tanh(s w[h]) - |q - k|
  const std::vector<double> w = {0.5, 2};
  Steps s;
  const int times = s.op(TapeOp::kMul, s.score(), s.read(0, {s.head()}));
  const int distance = s.op(TapeOp::kAbs, s.op(TapeOp::kSub, s.query(), s.key()));
  s.op(TapeOp::kSub, s.op(TapeOp::kTanh, times), distance);
  const ScoreProgram program(s.all(), {table_of(w, {2})}, {true});
  EXPECT_DOUBLE_EQ(program.value({0, 1, 3, 5}, 0.25), std::tanh(0.5) - 2);
  std::vector<double> values(static_cast<std::size_t>(program.size()));
  program.evaluate({0, 1, 3, 5}, 0.25, values);
  double of_w = 0;
  const double of_score = program.pull(values, 3, [&](int, double gradient) { of_w += gradient; });
  const double slope = 1 - std::tanh(0.5) * std::tanh(0.5);
  EXPECT_DOUBLE_EQ(of_score, 3 * slope * 2);
  EXPECT_DOUBLE_EQ(of_w, 3 * slope * 0.25);
  EXPECT_TRUE(program.gradient_reads_score());
}

TEST(ScoreProgram, KnowsWhatItsStepsDependOn) {
  const std::vector<std::int32_t> offset = {3, 4};
  Steps s;
  const int q = s.query(), k = s.key(), of_batch = s.read(0, {s.batch()});
  const int line =
      s.op(TapeOp::kSub, s.op(TapeOp::kAdd, q, of_batch), s.op(TapeOp::kMul, s.constant(2), k));
  const int product = s.op(TapeOp::kMul, q, k);
  const int sum = s.op(TapeOp::kAdd, s.score(), s.op(TapeOp::kAdd, line, product));
  const ScoreProgram program(s.all(), {table_of(offset, {2})});
  EXPECT_TRUE(program.is_known(of_batch));
  EXPECT_FALSE(program.is_known(line));
  EXPECT_TRUE(program.line(line).is_line);
  EXPECT_FALSE(program.line(line).is_plain);
  EXPECT_EQ(program.line(line).of_query, 1);
  EXPECT_EQ(program.line(line).of_key, -2);
  EXPECT_FALSE(program.line(product).is_line);
  EXPECT_TRUE(program.is_whole(product));
  EXPECT_FALSE(program.is_whole(sum));
  EXPECT_FALSE(program.gradient_reads_score()) << "it is only added";
}

TEST(ScoreProgram, IndicesCountFromBothEnds) {
  const std::vector<double> table = {1, 2, 3};
  Steps s;
  s.read(0, {s.op(TapeOp::kSub, s.query(), s.key())});
  const ScoreProgram program(s.all(), {table_of(table, {3})});
  EXPECT_EQ(program.value({0, 0, 2, 0}, 0), 3);
  EXPECT_EQ(program.value({0, 0, 0, 3}, 0), 1);
  EXPECT_THROWS((program.value({0, 0, 3, 0}, 0)), kShape,
                "index 3 is beyond axis 0 of captured tensor 0, [3]");
  EXPECT_THROWS((program.value({0, 0, 0, 4}, 0)), kShape,
                "index -4 is beyond axis 0 of captured tensor 0, [3]");
}

TEST(ScoreProgram, StepsThatMakeNoneAreErrors) {
  EXPECT_THROWS(ScoreProgram({}, {}), kShape, "no steps");
  Steps later;
  later.op(TapeOp::kNeg, 0);
  EXPECT_THROWS(ScoreProgram(later.all(), {}), kShape, "not before it");
  Steps store;
  store.op(TapeOp::kStore, store.score());
  EXPECT_THROWS(ScoreProgram(store.all(), {}), kShape, "no operation");
  Steps without;
  without.read(0, {without.query()});
  EXPECT_THROWS(ScoreProgram(without.all(), {}), kShape, "reads table 0; there are 0");
  const std::vector<double> table = {1, 2};
  Steps half;
  half.read(0, {half.op(TapeOp::kDiv, half.query(), half.constant(2))});
  EXPECT_THROWS((ScoreProgram(half.all(), {table_of(table, {2})})), kShape, "no whole number");
}

}  // namespace
}  // namespace fovea::testing

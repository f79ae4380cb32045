// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tests/grad/op_cases.h"
#include "tests/isa.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

class EveryOp : public testing::TestWithParam<GradientCase> {};

TEST_P(EveryOp, GradientIsThatOfTheForward) {
  const CaseReport report = check_case(Context(2), GetParam());
  EXPECT_LE(report.gradient.error, 1e-7) << report.gradient.where;
}

TEST_P(EveryOp, AgreesWithItsFormula) {
  EXPECT_LE(check_case(Context(2), GetParam()).reference_error, 1e-13);
}

TEST_P(EveryOp, IsTheSameFunctionInFloat32OnEveryInstructionSet) {
  for_each_isa([] {
    const CaseReport report = check_case(Context(2), GetParam());
    EXPECT_LE(report.float32_error, 1e-6);
    EXPECT_LE(report.float32_gradient_error, 3e-6);
  });
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, testing::ValuesIn(kOpCases),
                         [](const auto& c) { return std::string(c.param.name); });

const float kNumbers[] = {1, -2, 3, 4, 5, -6};

Variable numbers(Tape& tape, index rows, index columns) {
  return tape.input(Rows<const float>(kNumbers, rows, columns));
}

TEST(Linear, NamesTheOperandInItsErrors) {
  Tape tape{Context(1)};
  EXPECT_THROWS((linear(tape, numbers(tape, 2, 3), numbers(tape, 1, 2))), kShape,
                "linear: weight must be [1, 3]; it is [1, 2]");
}

TEST(Dropout, DoesNothingInInference) {
  Tape tape(Context(1), TapeMode::kInference);
  const Variable x = numbers(tape, 2, 3);
  const Variable y = dropout(tape, x, {0.9, {}}, {});
  EXPECT_EQ(y.value<float>().data, x.value<float>().data);
}

TEST(SplitColumns, IsAViewOfTheSameMemory) {
  Tape tape{Context(1)};
  const Variable x = numbers(tape, 2, 3);
  const auto parts = split_columns(tape, x, std::array<index, 2>{1, 2});
  EXPECT_EQ(parts[1].value<float>().data, x.value<float>().data + 1);
  EXPECT_EQ(parts[1].value<float>().stride, 3);
}

TEST(SplitColumns, RefusesWidthsThatDoNotFit) {
  Tape tape{Context(1)};
  const Variable x = numbers(tape, 2, 3);
  EXPECT_THROWS((split_columns(tape, x, std::array<index, 2>{1, 1})), kShape,
                "widths add up to 2; x has 3 columns");
}

TEST(Embedding, LeavesAFrozenRowAlone) {
  Tape tape{Context(1)};
  const Variable table = numbers(tape, 3, 2);
  const std::int32_t tokens[] = {0, 1, 2, 1};
  tape.backward(sum(tape, embedding(tape, {table, {tokens, 4}, 1})));
  EXPECT_THAT(to_vector(table.gradient<float>()), testing::ElementsAre(1, 1, 0, 0, 1, 1));
}

TEST(Embedding, NamesAnIdOutOfRange) {
  Tape tape{Context(1)};
  const std::int32_t tokens[] = {0, 3};
  EXPECT_THROWS((embedding(tape, {numbers(tape, 3, 2), {tokens, 2}})), kShape, "3");
}

TEST(LinearCrossEntropy, RefusesToBeScaledAfterwards) {
  Tape tape{Context(1)};
  const std::int32_t target[] = {0};
  const Variable loss =
      linear_cross_entropy(tape, numbers(tape, 1, 3), numbers(tape, 2, 3), {}, {{target, 1}});
  EXPECT_THROWS((tape.backward(scale(tape, loss, 2))), kShape, "give it the scale instead");
}

TEST(CrossEntropy, HasNoLossAndNoGradientWhereEveryTargetIsIgnored) {
  Tape tape{Context(1)};
  const std::int32_t target[] = {-1, -1};
  const Variable logits = numbers(tape, 2, 3);
  const Variable loss = cross_entropy(tape, logits, {{target, 2}});
  tape.backward(loss);
  EXPECT_EQ(loss.value<float>()[0][0], 0);
  EXPECT_THAT(to_vector(logits.gradient<float>()), testing::Each(0));
}

TEST(Attention, NamesHeadsThatDoNotDivideTheColumns) {
  Tape tape{Context(1)};
  const Variable x = numbers(tape, 2, 3);
  EXPECT_THROWS((attention(tape, {x, x, x, {}, {}}, {.heads = 2})), kShape,
                "attention: q has 3 columns, not a multiple of 2 heads");
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/grad/ops/rounded_rows.h"
#include "tests/grad/classifier_op_cases.h"
#include "tests/grad/op_cases.h"
#include "tests/grad/tagger_op_cases.h"
#include "tests/isa.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

// A case in plain loops of float32, each element of each input moved in turn: how far its output
// and its gradients are from the exact ones, scaled as in CaseReport.
class PlainCase {
 public:
  PlainCase(const OpCase& op, const CaseNumbers& exact) : op_(op), exact_(exact) {
    for (const auto& input : exact.inputs) inputs_.emplace_back(input.begin(), input.end());
    output_.resize(exact.output.size());
    run();
    double most = 0;
    for (std::size_t i = 0; i < output_.size(); ++i) {
      most = std::max(most, std::abs(double{output_[i].value} - exact.output[i]));
    }
    output_error = most / largest(exact.output);
    double overall = 0;
    for (const auto& gradient : exact.gradients) overall = std::max(overall, largest(gradient));
    for (std::size_t p = 0; p < inputs_.size(); ++p) {
      const double scale = std::max(largest(exact.gradients[p]), 1e-3 * overall);
      for (std::size_t i = 0; i < inputs_[p].size(); ++i) {
        const double error = std::abs(double{gradient(p, i)} - exact.gradients[p][i]);
        gradient_error = std::max(gradient_error, error / scale);
      }
    }
  }

  double output_error = 0, gradient_error = 0;

 private:
  void run() {
    std::vector<Rows<const Dual<float>>> views;
    for (std::size_t p = 0; p < inputs_.size(); ++p) {
      const auto [rows, columns] = op_.inputs[p];
      views.emplace_back(inputs_[p].data(), rows, columns);
    }
    const auto size = static_cast<index>(output_.size()), columns = exact_.output_columns;
    op_.formula.plain(views, {output_.data(), size / columns, columns});
  }

  float gradient(std::size_t p, std::size_t i) {
    inputs_[p][i].slope = 1;
    run();
    inputs_[p][i].slope = 0;
    float sum = 0;
    for (std::size_t o = 0; o < output_.size(); ++o) {
      const double weight = exact_.weights.empty() ? 1 : exact_.weights[o];
      sum += static_cast<float>(weight) * output_[o].slope;
    }
    return sum;
  }

  const OpCase& op_;
  const CaseNumbers& exact_;
  std::vector<std::vector<Dual<float>>> inputs_;
  std::vector<Dual<float>> output_;
};

// Twice the error of the plain float32 implementation and 4 ulp.
double bound(double plain_error) { return 2 * plain_error + 4 * 0x1p-23; }

class EveryOp : public testing::TestWithParam<OpCase> {};

TEST_P(EveryOp, GradientIsThatOfTheForward) {
  const CaseReport report = check_case(Context(2), GetParam().check());
  EXPECT_LE(report.gradient.error, 1e-7) << report.gradient.where;
}

// A double is 2^29 times finer than a float, and so are its errors.
TEST_P(EveryOp, AgreesWithItsFormula) {
  for_each_isa([] {
    const CaseReport report = check_case(Context(2), GetParam().check());
    const PlainCase plain(GetParam(), report.exact);
    EXPECT_LE(report.reference_error, bound(plain.output_error) * 0x1p-29);
  });
}

TEST_P(EveryOp, IsTheSameFunctionInFloat32OnEveryInstructionSet) {
  for_each_isa([] {
    const CaseReport report = check_case(Context(2), GetParam().check());
    const PlainCase plain(GetParam(), report.exact);
    EXPECT_LE(report.float32_error, bound(plain.output_error));
    EXPECT_LE(report.float32_gradient_error, bound(plain.gradient_error));
  });
}

// In bfloat16 an operand of a product moves by 2^-9 of its value at most, and nothing else changes;
// float64 knows no other precision.
TEST_P(EveryOp, IsNearTheSameFunctionInBFloat16) {
  for_each_isa([] {
    const Context context = Context(2).with(Precision::kBFloat16);
    const CaseReport report = check_case(context, GetParam().check());
    EXPECT_LE(report.gradient.error, 1e-7) << report.gradient.where;
    EXPECT_LE(report.float32_error, 0x1p-6);
    EXPECT_LE(report.float32_gradient_error, 0x1p-5);
  });
}

std::string name_of(const testing::TestParamInfo<OpCase>& c) { return std::string(c.param.name); }

INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, testing::ValuesIn(kOpCases), name_of);
INSTANTIATE_TEST_SUITE_P(ClassifierOps, EveryOp, testing::ValuesIn(kClassifierOpCases), name_of);
INSTANTIATE_TEST_SUITE_P(TaggerOps, EveryOp, testing::ValuesIn(kTaggerOpCases), name_of);

const float kNumbers[] = {1, -2, 3, 4, 5, -6};

Variable numbers(Tape& tape, index rows, index columns) {
  return tape.input(Rows<const float>(kNumbers, rows, columns));
}

// One without would be compared with nothing. (No static_assert: under sanitizers g++ 12 does not
// take the address of a function for a constant.)
TEST(OpCases, EachHasAFormula) {
  for (const OpCase& c : kOpCases) EXPECT_TRUE(c.formula.exact != nullptr) << c.name;
  for (const OpCase& c : kClassifierOpCases) EXPECT_TRUE(c.formula.exact != nullptr) << c.name;
  for (const OpCase& c : kTaggerOpCases) EXPECT_TRUE(c.formula.exact != nullptr) << c.name;
}

// Every product of a linear layer, with one term in each sum that is no bfloat16.
TEST(Linear, RoundsTheOperandsOfAllThreeProducts) {
  for_each_isa([] {
    const auto run = [](Precision precision, float more) {
      Tape tape{Context(1).with(precision)};
      const float x[] = {1 + more, 2, -3, 4}, w[] = {2 + 2 * more, 1, 3, -1, 5, 2};
      const Variable in = tape.input(Rows<const float>(x, 2, 2));
      const Variable weight = tape.input(Rows<const float>(w, 3, 2));
      const Variable y = linear(tape, in, weight, {});
      tape.backward(sum(tape, multiply(tape, y, y)));
      std::vector<float> all = to_vector(y.value<float>());
      for (const float v : to_vector(in.gradient<float>())) all.push_back(v);
      for (const float v : to_vector(weight.gradient<float>())) all.push_back(v);
      return all;
    };
    constexpr float kMore = 0x1p-9f;  // 1 + kMore becomes 1, and 2 + 2 kMore 2
    const std::vector<float> whole = run(Precision::kFloat32, 0);
    EXPECT_EQ(run(Precision::kBFloat16, 0), whole) << "small whole numbers are not rounded";
    EXPECT_EQ(run(Precision::kBFloat16, kMore), whole);
    EXPECT_NE(run(Precision::kFloat32, kMore), whole);
  });
}

// y and the gradients of q, k and v: columns of one matrix, which are rounded in one pass, as their
// gradients are widened in one, or matrices of their own.
std::vector<float> rounded_attention(bool apart) {
  constexpr std::array<index, 3> kWidths = {6, 3, 2};
  constexpr index kRows = 6, kColumns = 11;
  Tape tape{Context(2).with(Precision::kBFloat16)};
  Random random(3, RandomUse::kTest);
  float values[kRows * kColumns], zeros[kRows * kColumns] = {};
  for (float& value : values) value = static_cast<float>(random.normal());
  const auto part = [&](auto whole, std::size_t n) {
    const index begin = n == 0 ? 0 : n == 1 ? 6 : 9;
    return whole.columns_slice(begin, begin + kWidths[n]);
  };
  const Rows<const float> matrix(values, kRows, kColumns);
  const Variable whole = tape.input(matrix);
  // The gradients of parts of an input are added; those of a result are written.
  const Variable x = add(tape, whole, tape.constant(Rows<const float>(zeros, kRows, kColumns)));
  const auto columns = split_columns(tape, x, kWidths);
  std::array<Variable, 3> in;
  for (std::size_t n = 0; n < 3; ++n) in[n] = apart ? tape.input(part(matrix, n)) : columns[n];
  const PackedRows rows = three_sequences(tape);
  const Variable y = attention_case(tape, {in[0], in[1], in[2], rows, rows}, 2, 1);
  tape.backward(sum(tape, multiply(tape, y, y)));
  std::vector<float> found = to_vector(y.value<float>());
  for (std::size_t n = 0; n < 3; ++n) {
    const auto gradient = apart ? in[n].gradient<float>() : part(whole.gradient<float>(), n);
    for (const float v : to_vector(gradient)) found.push_back(v);
  }
  return found;
}

TEST(RoundedRows, OfNoRowsHaveTheirColumns) {
  Scratch scratch;
  const ThreeRows<const float> none = {{{nullptr, 0, 6}, {nullptr, 0, 3}, {nullptr, 0, 2}}};
  const auto rounded = RoundedRows(Context(1), scratch).round(none);
  EXPECT_EQ(rounded[1].columns, 3);
  EXPECT_EQ(rounded[1].rows, 0);
}

TEST(Attention, InBFloat16ColumnsOfOneMatrixGiveTheBitsOfThreeMatrices) {
  for_each_isa([] { EXPECT_EQ(rounded_attention(false), rounded_attention(true)); });
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

TEST(Embedding, GradientOfATableIsThatOfTheStepWhateverTheStepBeforeUsed) {
  Tape tape{Context(1)};
  Parameter table;
  table.value = Tensor({4, 1});
  const auto step = [&](std::vector<std::int32_t> tokens, bool other_user = false) {
    tape.reset();
    const Variable t = tape.parameter(table);
    Variable loss = sum(tape, embedding(tape, {t, {tokens.data(), std::ssize(tokens)}}));
    if (other_user) loss = add(tape, loss, sum(tape, t));
    tape.backward(loss);
    return to_vector(table.finished_gradient().vec<float>());
  };
  EXPECT_THAT(step({0, 2, 2}), testing::ElementsAre(1, 0, 2, 0));
  EXPECT_THAT(step({1}), testing::ElementsAre(1, 1, 2, 0)) << "not cleared: steps add up";
  table.clear_gradient();
  EXPECT_THAT(step({3, 3}), testing::ElementsAre(0, 0, 0, 2));
  table.clear_gradient();
  EXPECT_THAT(step({0}, true), testing::ElementsAre(2, 1, 1, 1));
  table.clear_gradient();
  EXPECT_THAT(step({2}), testing::ElementsAre(0, 0, 1, 0));
  table.gradient_to_write().vec<float>()[1] = 9;
  table.clear_gradient();
  EXPECT_THAT(step({}), testing::Each(0));
  table.clear_gradient();
  EXPECT_THAT(step({1}), testing::ElementsAre(0, 1, 0, 0));
  EXPECT_TRUE(table.used_rows.has_value());
  EXPECT_THAT(step({2, 2, 2, 2}), testing::ElementsAre(0, 1, 4, 0));
  EXPECT_FALSE(table.used_rows.has_value()) << "longer than the table: worth nothing";
}

TEST(Embedding, OneTableMayBeUsedTwiceWholeOrInPart) {
  Tape tape{Context(1)};
  Parameter table;
  table.value = Tensor({6, 2});
  const std::int32_t tokens[] = {1, 1}, positions[] = {0, 4}, single[] = {5};
  for (int step = 0; step < 3; ++step) {
    tape.reset();
    table.clear_gradient();
    const Variable t = tape.parameter(table);
    const Variable both = embedding(tape, {t, {tokens, 2}}, {t, {positions, 2}});
    Variable loss = sum(tape, both);
    if (step == 1) {
      const auto parts = split_columns(tape, t, std::array<index, 2>{1, 1});
      loss = add(tape, loss, sum(tape, embedding(tape, {parts[0], {single, 1}})));
    }
    tape.backward(loss);
    const float more = step == 1 ? 1 : 0;
    EXPECT_THAT(to_vector(table.finished_gradient().vec<float>()),
                testing::ElementsAre(1, 1, 2, 2, 0, 0, 0, 0, 1, 1, more, 0));
  }
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

// A batch without sequences, and one of a single sequence that needs no offsets.
TEST(OverTime, TakesOneSequenceOrNone) {
  const std::int32_t zero[] = {0};
  PackedRows none;
  none.offsets = {zero, 1};
  for (const auto pool : {max_over_time, mean_over_time, first_over_time, last_over_time}) {
    Tape tape{Context(1)};
    EXPECT_EQ(pool(tape, numbers(tape, 2, 3), {}).rows(), 1);
    EXPECT_EQ(pool(tape, numbers(tape, 0, 3), none).rows(), 0);
  }
  Tape tape{Context(1)};
  const Variable x = numbers(tape, 2, 3), query = numbers(tape, 1, 3);
  EXPECT_EQ(attention_over_time(tape, x, query, {}).rows(), 1);
  EXPECT_THROWS((attention_over_time(tape, x, numbers(tape, 1, 2), {})), kShape,
                "attention_over_time: query must be [1, 3]; it is [1, 2]");
  EXPECT_EQ(attention_over_time(tape, numbers(tape, 0, 3), query, none).rows(), 0);
}

TEST(CrfLoss, NamesTheOperandInItsErrors) {
  Tape tape{Context(1)};
  const Variable x = numbers(tape, 2, 3), row = numbers(tape, 1, 3);
  const std::int32_t tags[] = {0, 1};
  EXPECT_THROWS((crf_loss(tape, x, {numbers(tape, 3, 2), row, row}, {tags, 2}, {})), kShape,
                "crf_loss: transitions must be [3, 3]; it is [3, 2]");
  const float square[9] = {};
  const Variable transitions = tape.input(Rows<const float>(square, 3, 3));
  EXPECT_THROWS((crf_loss(tape, x, {transitions, row, {}}, {tags, 2}, {})), kShape,
                "crf_loss: end is missing");
  EXPECT_THROWS((crf_loss(tape, x, {transitions, row, row}, {tags, 1}, {})), kShape,
                "tags must be [N=2]; it is [1]");
  EXPECT_GT((crf_loss(tape, x, {transitions, row, row}, {tags, 2}, {}).value<float>()[0][0]), 0);
}

TEST(Attention, NamesHeadsThatDoNotDivideTheColumns) {
  Tape tape{Context(1)};
  const Variable x = numbers(tape, 2, 3);
  EXPECT_THROWS((attention(tape, {x, x, x, {}, {}}, {.heads = 2})), kShape,
                "attention: q has 3 columns, not a multiple of 2 heads");
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/tape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "fovea/grad/ops.h"
#include "tests/grad/allocations.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

using testing::Each;
using testing::ElementsAre;

const float kX[] = {1, 2, 3, 4};

Variable matrix(Tape& tape) { return tape.input(Rows<const float>(kX, 2, 2)); }

std::vector<float> gradient_of(Variable x) { return to_vector(x.gradient<float>()); }

Parameter make_parameter(std::vector<float> values) {
  Parameter p;
  p.name = "p";
  const auto n = static_cast<index>(values.size());
  p.value = Tensor::of<float>({n}, values);
  return p;
}

TEST(Tape, AFrozenParameterIsRead) {
  Parameter frozen = make_parameter({1, 2, 3}), trained = make_parameter({4, 5, 6});
  frozen.frozen = true;
  Tape tape{Context(1)};
  const Variable y = multiply(tape, tape.parameter(frozen), tape.parameter(trained));
  tape.backward(sum(tape, y));
  EXPECT_FALSE(frozen.has_gradient);
  EXPECT_THAT(to_vector(trained.finished_gradient().vec<float>()), ElementsAre(1, 2, 3));
}

TEST(Tape, AddsUpTheGradientsOfAllUses) {
  Tape tape{Context(1)};
  const Variable x = matrix(tape);
  const Variable y = add(tape, multiply(tape, x, x), scale(tape, x, 3));
  tape.backward(sum(tape, y));
  EXPECT_THAT(gradient_of(x), ElementsAre(5, 7, 9, 11));
}

TEST(Tape, ScalesTheGradientOfTheLoss) {
  Tape tape{Context(1)};
  const Variable x = matrix(tape);
  tape.backward(sum(tape, x), 0.5);
  EXPECT_THAT(gradient_of(x), ElementsAre(.5, .5, .5, .5));
}

TEST(Tape, LeavesNoGradientWhereTheLossDoesNotReach) {
  Tape tape{Context(1)};
  const Variable x = matrix(tape), unused = matrix(tape);
  scale(tape, unused, 2);
  tape.backward(sum(tape, x));
  EXPECT_EQ(unused.gradient<float>().data, nullptr);
}

TEST(Tape, RecordsNothingInInference) {
  Tape tape(Context(1), TapeMode::kInference);
  const Variable y = sum(tape, matrix(tape));
  EXPECT_EQ(y.value<float>()[0][0], 10);
  EXPECT_FALSE(y.needs_gradient());
  EXPECT_THROWS(tape.backward(y), kShape, "inference mode");
}

// The gradient of an input, as in training, and none of the parameters.
TEST(Tape, InModeInputsParametersAreConstantsAndDropoutDoesNothing) {
  Parameter p = make_parameter({2, 5});
  p.value = p.value.reshape({1, 2});
  const auto gradient = [&](TapeMode mode, double dropped) {
    Tape tape(Context(1), mode);
    const Variable x = matrix(tape);
    const Variable y =
        linear(tape, dropout(tape, x, {.p = dropped, .key = {}}, {}), tape.parameter(p));
    tape.backward(sum(tape, y));
    return gradient_of(x);
  };
  EXPECT_THAT(gradient(TapeMode::kInputs, 0.9), ElementsAre(2, 5, 2, 5));
  EXPECT_FALSE(p.gradient.defined());
  EXPECT_FALSE(p.has_gradient);
  EXPECT_THAT(gradient(TapeMode::kTrain, 0), ElementsAre(2, 5, 2, 5));
  EXPECT_TRUE(p.has_gradient);
}

TEST(Tape, RefusesALossThatIsNotOneNumber) {
  Tape tape{Context(1)};
  EXPECT_THROWS(tape.backward(matrix(tape)), kShape, "the loss must be one number");
}

TEST(Tape, RefusesValuesOfAnotherType) {
  Tape tape{Context(1)};
  EXPECT_THROWS(matrix(tape).value<double>(), kShape, "expected float64 values; got float32");
}

// A gradient that comes in whole and in parts, in any order of arrival, is their sum.
TEST(Tape, AddsGradientsOfAValueAndOfItsColumns) {
  for (const bool whole_first : {false, true}) {
    Tape tape{Context(1)};
    const Variable x = matrix(tape);
    const Variable y = scale(tape, x, 1);
    Variable whole;
    if (whole_first) whole = scale(tape, y, 10);
    const auto parts = tape.split(y, std::array<index, 2>{1, 1});
    const Variable part = scale(tape, parts[1], 100);
    if (!whole_first) whole = scale(tape, y, 10);
    tape.backward(add(tape, sum(tape, whole), sum(tape, part)));
    EXPECT_THAT(gradient_of(x), ElementsAre(10, 110, 10, 110)) << whole_first;
  }
}

TEST(Tape, TheGradientOfColumnsThatNobodyReadsIsZero) {
  Tape tape{Context(1)};
  const Variable x = matrix(tape);
  const auto parts = tape.split(scale(tape, x, 1), std::array<index, 2>{1, 1});
  tape.backward(sum(tape, parts[0]));
  EXPECT_THAT(gradient_of(x), ElementsAre(1, 0, 1, 0));
}

TEST(Tape, SplitsAnInputToo) {
  Tape tape{Context(1)};
  const Variable x = matrix(tape);
  const auto parts = tape.split(x, std::array<index, 2>{1, 1});
  tape.backward(sum(tape, add(tape, parts[0], parts[0])));
  EXPECT_THAT(gradient_of(parts[0]), ElementsAre(2, 2));
}

TEST(Tape, ParametersGradientsAddUpUntilCleared) {
  Parameter p = make_parameter({1, 2, 3});
  const auto step = [&] {
    Tape tape{Context(1)};
    tape.backward(sum(tape, tape.parameter(p)));
  };
  step();
  step();
  EXPECT_THAT(to_vector(p.gradient.vec<float>()), ElementsAre(2, 2, 2));
  p.clear_gradient();
  step();
  EXPECT_THAT(to_vector(p.gradient.vec<float>()), ElementsAre(1, 1, 1));
}

TEST(Tape, WalksARecordingOnce) {
  Parameter p = make_parameter({1, 2, 3});
  Tape tape{Context(1)};
  const Variable first = sum(tape, tape.parameter(p)), second = sum(tape, tape.parameter(p));
  tape.backward(first);
  EXPECT_THROWS(tape.backward(second), kShape, "walked already");
  tape.reset();
  tape.backward(sum(tape, tape.parameter(p)));
  EXPECT_THAT(to_vector(p.gradient.vec<float>()), ElementsAre(2, 2, 2));
}

// A gradient that is handed over to one input still reaches the other, which adds to it later.
TEST(Tape, AGradientThatIsHandedOverIsNotShared) {
  Tape tape{Context(1)};
  const Variable x = matrix(tape);
  const Variable twice = scale(tape, x, 2);
  tape.backward(sum(tape, add(tape, twice, scale(tape, twice, 3))));
  EXPECT_THAT(gradient_of(x), Each(8));
}

// Both gradients of the product are then one: the sum over i, j of x_i . x_j.
TEST(Tape, AnInputMayBeItsOwnWeight) {
  constexpr index kRows = 200, kColumns = 64;
  const std::vector<double> ones(kRows * kColumns, 1);
  for (int run = 0; run < 20; ++run) {
    Tape tape{Context(2)};
    const Variable x = tape.input(Rows<const double>(ones.data(), kRows, kColumns));
    tape.backward(sum(tape, linear(tape, x, x)));
    const Rows<const double> dx = x.gradient<double>();
    ASSERT_THAT(std::vector<double>(dx.data, dx.data + kRows * kColumns), Each(2.0 * kRows));
  }
}

TEST(Tape, UsesOneParameterAnyNumberOfTimes) {
  Parameter p = make_parameter({1, 2, 3});
  Tape tape{Context(1)};
  tape.backward(sum(tape, multiply(tape, tape.parameter(p), tape.parameter(p))));
  EXPECT_THAT(to_vector(p.gradient.vec<float>()), ElementsAre(2, 4, 6));
}

TEST(Tape, AllocatesNothingAfterItsFirstSteps) {
  Parameter p = make_parameter(std::vector<float>(4096, 1));
  Tape tape{Context(1)};
  const auto step = [&] {
    tape.reset();
    p.clear_gradient();
    Variable x = tape.parameter(p);
    for (int i = 0; i < 100; ++i) x = add(tape, scale(tape, x, 0.5), x);
    tape.backward(sum(tape, x));
  };
  step();
  step();
  const std::size_t capacity = tape.capacity();
  const index before = allocations();
  step();
  EXPECT_EQ(allocations(), before);
  EXPECT_EQ(tape.capacity(), capacity);
}

// A long chain holds its values, but only the few gradients that are alive at once.
TEST(Tape, UsesTheMemoryOfGradientsAgain) {
  Parameter p = make_parameter(std::vector<float>(4096, 1));
  Tape tape{Context(1)};
  Variable x = tape.parameter(p);
  for (int i = 0; i < 100; ++i) x = scale(tape, x, 0.5);
  tape.backward(sum(tape, x));
  EXPECT_LT(tape.peak(), 120 * 4096 * sizeof(float));
}

}  // namespace
}  // namespace fovea

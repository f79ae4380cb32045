// SPDX-License-Identifier: Apache-2.0
// Who checks the checker: it must see what is wrong.
#include "fovea/reference/gradcheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"

namespace fovea {
namespace {

// x^3, with a gradient that is off by `factor`.
Variable cube(Tape& tape, Variable x, double factor) {
  const Variable y = multiply(tape, x, multiply(tape, x, x));
  const Variable z = tape.result(x.rows(), x.columns(), x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    copy_rows(tape.context(), y.value<T>(), z.value<T>());
    tape.record(z, {y}, [=](Tape& t) {
      write_or_add(t.context(), t.gradient_for<T>(y),
                   [&](Rows<T> dy) { scale(t.context(), factor, t.gradient_of<T>(z), dy); });
    });
  });
  return z;
}

constexpr GradientCase kRight{
    "cube", {{3, 4}}, [](Tape& t, std::span<const Variable> in) { return cube(t, in[0], 1); }};
constexpr GradientCase kWrong{"cube", {{3, 4}}, [](Tape& t, std::span<const Variable> in) {
                                return cube(t, in[0], 1 + 1e-5);
                              }};
constexpr GradientCase kWrongFormula{
    "cube",
    {{3, 4}},
    [](Tape& t, std::span<const Variable> in) { return cube(t, in[0], 1); },
    [](std::span<const Rows<const double>> in, Rows<double> y) {
      for (index n = 0; n < y.rows; ++n) {
        for (index c = 0; c < y.columns; ++c) y[n][c] = std::pow(in[0][n][c], 3) + 1e-6;
      }
    }};

TEST(GradientCheck, PassesWhatIsRight) {
  const CaseReport report = check_case(Context(1), kRight);
  EXPECT_LT(report.gradient.error, 1e-9);
  EXPECT_LT(report.float32_error, 1e-6);
  EXPECT_GT(report.float32_error, 0);
}

TEST(GradientCheck, SeesAnErrorOfOneIn100000) {
  const CaseReport report = check_case(Context(1), kWrong);
  EXPECT_NEAR(report.gradient.error, 1e-5, 1e-7);
  EXPECT_THAT(report.gradient.where, testing::HasSubstr("input 0["));
}

TEST(GradientCheck, SeesAFormulaThatDiffers) {
  EXPECT_GT(check_case(Context(1), kWrongFormula).reference_error, 1e-7);
}

}  // namespace
}  // namespace fovea

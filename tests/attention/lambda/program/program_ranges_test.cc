// SPDX-License-Identifier: Apache-2.0
// The bounds of every step hold for every place.
#include "fovea/attention/lambda/program/program_ranges.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/attention/support/programs.h"

namespace fovea::testing {
namespace {

using detail::ProgramRanges;
using detail::Range;

const AttentionSizes kSizes{.B = 2, .T = 90, .S = 150, .H = 3, .G = 3, .D = 4, .Dv = 4};

bool holds(const Range& range, double value) {
  const double room = 1e-12 * (1 + std::abs(value));
  return range.low <= value + room && value <= range.high + room;
}

TEST(ProgramRanges, HoldTheValuesOfEveryStep) {
  for (const auto& one : test_programs<double>(kSizes)) {
    SCOPED_TRACE(one.name);
    const ScoreProgram program = one.program(false);
    const ProgramRanges ranges(program);
    const auto count = static_cast<std::size_t>(program.size());
    std::vector<Range> bounds(count);
    std::vector<double> values(count);
    for (const index side : {1, 7, 40}) {
      for (index query = 0; query + side <= kSizes.T; query += 23) {
        for (index key = 0; key + side <= kSizes.S; key += 31) {
          const Sequence sequence{.number = 1, .queries = kSizes.T, .keys = kSizes.S};
          ranges.evaluate(detail::ranges_of({sequence, 2, query, side, key, side}), bounds);
          for (index n = 0; n < side * side; ++n) {
            program.evaluate({1, 2, query + n / side, key + n % side}, 0.5, values);
            for (std::size_t step = 0; step < count; ++step) {
              ASSERT_TRUE(holds(bounds[step], values[step])) << "step " << step;
            }
          }
        }
      }
    }
  }
}

// One step of whole numbers from low to high.
Range bounds_of(TapeOp op, const Range& a, const Range& b) {
  Steps s;
  s.op(op, s.query(), s.key());
  const ScoreProgram program(s.all(), {});
  return ProgramRanges(program).result({{0, 0}, {0, 0}, a, b});
}

TEST(ProgramRanges, OfWholeNumbersAreTight) {
  struct {
    TapeOp op;
    Range a, b, expected;
  } const cases[] = {
      {TapeOp::kModulo, {17, 19}, {5, 5}, {2, 4}},
      {TapeOp::kModulo, {18, 21}, {5, 5}, {0, 4}},
      {TapeOp::kModulo, {-3, -1}, {8, 8}, {5, 7}},
      {TapeOp::kFloorDivide, {-1, 15}, {16, 16}, {-1, 0}},
      {TapeOp::kAnd, {16, 23}, {20, 20}, {16, 20}},
      {TapeOp::kOr, {16, 19}, {4, 4}, {20, 23}},
      {TapeOp::kXor, {16, 19}, {16, 16}, {0, 3}},
      {TapeOp::kShiftRight, {16, 31}, {4, 4}, {1, 1}},
      {TapeOp::kMul, {-2, 3}, {-5, 4}, {-15, 12}},
      {TapeOp::kLess, {0, 3}, {4, 9}, {1, 1}},
      {TapeOp::kLess, {4, 9}, {0, 4}, {0, 0}},
      {TapeOp::kLess, {0, 4}, {4, 9}, {0, 1}},
      {TapeOp::kEqual, {3, 3}, {3, 3}, {1, 1}},
      {TapeOp::kEqual, {3, 4}, {5, 6}, {0, 0}},
      {TapeOp::kNotEqual, {3, 4}, {5, 6}, {1, 1}},
  };
  for (const auto& [op, a, b, expected] : cases) {
    const Range got = bounds_of(op, a, b);
    EXPECT_EQ(got.low, expected.low) << static_cast<int>(op);
    EXPECT_EQ(got.high, expected.high) << static_cast<int>(op);
  }
}

}  // namespace
}  // namespace fovea::testing

// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "fovea/base/precision.h"
#include "tests/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/amx_test.cc"
#include "hwy/foreach_target.h"
//
#include "fovea/simd/amx-inl.h"

// What a test asks of the product, without the types that exist once for each instruction set.
#ifndef FOVEA_TESTS_SIMD_AMX_TEST_ONCE
#define FOVEA_TESTS_SIMD_AMX_TEST_ONCE
namespace fovea {
enum class TileStart { kZero, kC, kScaledC, kPerLane, kZeroTimes, kCTimes };
struct TilesProblem {
  index rows, depth, lanes;  // depth in pairs
  TileStart start;
  bool transposed, takes_maximum;
  std::vector<BFloat16Pair> a, b;
  std::vector<float> c, per_lane, maximum;
  index a_row, a_column, b_row, c_row;
  float factor;
};
}  // namespace fovea
#endif

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

#if FOVEA_PAIRS
template <class Tiles, Into kInto, LaneMaximum kMaximum>
bool RunOn(const TileOperands<float, BFloat16Pair>& t) {
  using Product = TilesProduct<Tiles, kInto, kMaximum>;
  if (!Product::fits(t)) return false;
  Product(t).run();
  return true;
}

template <class Tiles, LaneMaximum kMaximum>
bool RunStart(TilesProblem& p) {
  const TileOperands<float, BFloat16Pair> t{.a = {p.a.data(), p.a_row, p.a_column},
                                            .b = {p.b.data(), p.depth, p.lanes, p.b_row},
                                            .c = {p.c.data(), p.rows, p.lanes, p.c_row},
                                            .per_lane = p.per_lane.data(),
                                            .factor = p.factor,
                                            .maximum = p.maximum.data()};
  switch (p.start) {
    case TileStart::kZero:
      return RunOn<Tiles, Into::kOverwrite, kMaximum>(t);
    case TileStart::kC:
      return RunOn<Tiles, Into::kAdd, kMaximum>(t);
    case TileStart::kScaledC:
      return RunOn<Tiles, Into::kScaleAndAdd, kMaximum>(t);
    case TileStart::kPerLane:
      return RunOn<Tiles, Into::kStartAt, kMaximum>(t);
    case TileStart::kZeroTimes:
      return RunOn<Tiles, Into::kOverwriteTimes, kMaximum>(t);
    case TileStart::kCTimes:
      return RunOn<Tiles, Into::kAddTimes, kMaximum>(t);
  }
  return false;
}

template <class Tiles>
bool RunTiles(TilesProblem& p) {
  return p.takes_maximum ? RunStart<Tiles, LaneMaximum::kTake>(p)
                         : RunStart<Tiles, LaneMaximum::kNone>(p);
}
bool RunEmulated(TilesProblem& p) { return RunTiles<EmulatedTiles>(p); }
bool RunProcessor(TilesProblem& p) { return RunTiles<AmxTiles>(p); }
#else
bool RunEmulated(TilesProblem&) { return false; }
bool RunProcessor(TilesProblem&) { return false; }
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {
namespace {

HWY_EXPORT(RunEmulated);
HWY_EXPORT(RunProcessor);

bool run_emulated(TilesProblem& p) { return FOVEA_DISPATCH(RunEmulated)(p); }
bool run_on_processor(TilesProblem& p) { return FOVEA_DISPATCH(RunProcessor)(p); }

constexpr float kUntouched = 77;

BFloat16 value(index i, int seed) {
  return to_bfloat16(static_cast<float>(std::sin(0.7 * static_cast<double>(i) + seed)));
}

std::vector<BFloat16Pair> pairs(index count, int seed) {
  std::vector<BFloat16Pair> result(static_cast<std::size_t>(count));
  for (index i = 0; i < count; ++i) {
    result[std::size_t(i)] =
        value(2 * i, seed).bits | static_cast<BFloat16Pair>(value(2 * i + 1, seed).bits) << 16;
  }
  return result;
}

std::vector<float> floats(index count, int seed) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (index i = 0; i < count; ++i) result[std::size_t(i)] = to_float(value(i, seed));
  return result;
}

TilesProblem draw(index rows, index depth, index lanes, TileStart start, bool transposed,
                  bool takes_maximum = false) {
  const index gap = 3;
  TilesProblem p{.rows = rows,
                 .depth = depth,
                 .lanes = lanes,
                 .start = start,
                 .transposed = transposed,
                 .takes_maximum = takes_maximum,
                 .a = {},
                 .b = {},
                 .c = {},
                 .per_lane = floats(lanes, 4),
                 .maximum = floats(lanes, 5),
                 .a_row = transposed ? 1 : depth + gap,
                 .a_column = transposed ? rows + gap : 1,
                 .b_row = lanes + gap,
                 .c_row = lanes + gap,
                 .factor = .3f};
  std::fill_n(p.per_lane.begin(), 16, 1.0f);  // a factor that products may leave out
  // No value lies beyond the last one that a product may read: the sanitizer sees more.
  p.a = pairs((rows - 1) * p.a_row + (depth - 1) * p.a_column + 1, 1);
  p.b = pairs((depth - 1) * p.b_row + lanes, 2);
  p.c = floats(rows * p.c_row, 3);
  for (index r = 0; r < rows; ++r) {
    for (index g = 0; g < gap; ++g) p.c[std::size_t(r * p.c_row + lanes + g)] = kUntouched;
  }
  return p;
}

float first_of(BFloat16Pair pair) { return to_float(BFloat16{static_cast<std::uint16_t>(pair)}); }
float second_of(BFloat16Pair pair) { return first_of(pair >> 16); }

struct Expected {
  double value, size;  // and the sum of the magnitudes of its terms
};

Expected expected(const TilesProblem& p, index r, index l) {
  Expected sum{0, 0};
  for (index k = 0; k < p.depth; ++k) {
    const BFloat16Pair a = p.a[std::size_t(r * p.a_row + k * p.a_column)];
    const BFloat16Pair b = p.b[std::size_t(k * p.b_row + l)];
    const double first = double(first_of(a)) * double(first_of(b));
    const double second = double(second_of(a)) * double(second_of(b));
    sum.value += first + second;
    sum.size += std::fabs(first) + std::fabs(second);
  }
  const double c = p.c[std::size_t(r * p.c_row + l)], lane = p.per_lane[std::size_t(l)];
  const double factor =
      p.start == TileStart::kZeroTimes || p.start == TileStart::kCTimes ? double(p.factor) : 1.0;
  double start = 0;
  if (p.start == TileStart::kC || p.start == TileStart::kCTimes) start = c;
  if (p.start == TileStart::kScaledC) start = c * lane;
  if (p.start == TileStart::kPerLane) start = lane;
  return {start + factor * sum.value, std::fabs(start) + std::fabs(factor) * sum.size};
}

void expect_product(const TilesProblem& before, const TilesProblem& after) {
  std::vector<float> most = before.maximum;
  for (index r = 0; r < before.rows; ++r) {
    for (index l = 0; l < before.c_row; ++l) {
      const float got = after.c[std::size_t(r * before.c_row + l)];
      if (l >= before.lanes) {
        ASSERT_EQ(got, kUntouched) << "behind row " << r;
        continue;
      }
      const auto [exact, size] = expected(before, r, l);
      ASSERT_NEAR(got, exact, 4 * 6e-8 * (size + 1e-30)) << "row " << r << " lane " << l;
      if (before.takes_maximum) most[std::size_t(l)] = std::max(most[std::size_t(l)], got);
    }
  }
  ASSERT_EQ(after.maximum, most);
}

constexpr TileStart kStarts[] = {TileStart::kZero,    TileStart::kC,         TileStart::kScaledC,
                                 TileStart::kPerLane, TileStart::kZeroTimes, TileStart::kCTimes};

template <class F>
void for_each_problem(F&& f) {
  for (const TileStart start : kStarts) {
    for (const index rows : {1, 2, 15, 16, 17, 31, 32, 33, 48, 70}) {
      for (const index lanes : {16, 32, 48, 64, 80, 144}) {
        for (const index depth : {1, 2, 15, 16, 17, 32, 40, 64, 65}) {
          for (const bool transposed : {false, true}) {
            SCOPED_TRACE(testing::Message() << rows << "x" << depth << "x" << lanes);
            f(draw(rows, depth, lanes, start, transposed, (rows + depth + lanes / 16) % 3 == 0));
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

class TilesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (current_isa() < Isa::kAvx512) GTEST_SKIP() << "the processor has no AVX-512";
  }
};

TEST_F(TilesTest, MatchTheirDefinition) {
  for_each_problem([](const TilesProblem& before) {
    TilesProblem after = before;
    // A transposed A of more than 64 pairs is left to vectors.
    ASSERT_EQ(run_emulated(after), !before.transposed || before.depth <= 64);
    if (before.transposed && before.depth > 64) return;
    expect_product(before, after);
  });
}

TEST_F(TilesTest, TheProcessorHasTheBitsOfTheEmulation) {
  if (!has_tiles()) GTEST_SKIP() << "the processor has no AMX";
  for_each_problem([](const TilesProblem& before) {
    TilesProblem emulated = before, real = before;
    ASSERT_EQ(run_emulated(emulated), run_on_processor(real));
    ASSERT_EQ(std::memcmp(emulated.c.data(), real.c.data(), real.c.size() * sizeof(float)), 0);
    ASSERT_EQ(emulated.maximum, real.maximum);
  });
}

TEST_F(TilesTest, ARowsBitsDependOnNothingElse) {
  const TilesProblem original = draw(70, 50, 144, TileStart::kC, false);
  TilesProblem all = original;
  ASSERT_TRUE(run_emulated(all));
  for (index rows = 1; rows < 70; ++rows) {
    TilesProblem some = original;
    some.rows = rows;
    ASSERT_TRUE(run_emulated(some));
    const auto bytes = static_cast<std::size_t>(rows * some.c_row) * sizeof(float);
    ASSERT_EQ(std::memcmp(some.c.data(), all.c.data(), bytes), 0) << rows << " rows";
  }
}

TEST_F(TilesTest, ASumCutAtAWholeRegisterHasTheSameBits) {
  TilesProblem whole = draw(40, 50, 48, TileStart::kPerLane, false);
  TilesProblem parts = whole;
  ASSERT_TRUE(run_emulated(whole));
  parts.depth = 32;
  ASSERT_TRUE(run_emulated(parts));
  parts.depth = 50 - 32;
  parts.start = TileStart::kC;
  parts.a.erase(parts.a.begin(), parts.a.begin() + 32);
  parts.b.erase(parts.b.begin(), parts.b.begin() + 32 * parts.b_row);
  ASSERT_TRUE(run_emulated(parts));
  EXPECT_EQ(parts.c, whole.c);
}

}  // namespace
}  // namespace fovea
#endif  // HWY_ONCE

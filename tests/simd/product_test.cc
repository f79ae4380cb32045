// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/product_test.cc"
#include "hwy/foreach_target.h"
//
#include "fovea/simd/product-inl.h"

// What a test asks of the product, without the types that exist once for each instruction set.
#ifndef FOVEA_TESTS_SIMD_PRODUCT_TEST_ONCE
#define FOVEA_TESTS_SIMD_PRODUCT_TEST_ONCE
namespace fovea {
enum class Start { kZero, kC, kScaledC, kPerLane };
enum class Asks { kNothing, kQueue, kAhead };
template <class T>
struct Problem {
  index rows, depth, lanes, a_row, a_depth, b_depth, c_row;
  Start start;
  std::vector<T> a, b, c, per_lane, maximum;
  Asks asks = Asks::kNothing;  ///< for lines of B; with kAhead for C, too; kNothing: no queue
  index left = 0;              ///< lines that are left in the queue
};
}  // namespace fovea
#endif

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

template <LaneMaximum kMaximum, Ask kAsk, class T>
void Run(Problem<T>& p) {
  const Rows<const T> b(p.b.data(), p.depth, p.lanes, p.b_depth);
  LinesAhead ahead(b);
  Prefetch queue;
  queue.add(Rows<const T>(p.b.data(), std::min<index>(p.depth, 5), 1, p.b_depth));
  const TileOperands<T> t{.a = {p.a.data(), p.a_row, p.a_depth},
                          .b = b,
                          .c = {p.c.data(), p.rows, p.lanes, p.c_row},
                          .per_lane = p.per_lane.data(),
                          .maximum = p.maximum.data(),
                          .prefetch = p.asks == Asks::kQueue ? &queue : nullptr,
                          .ahead = &ahead,
                          .c_is_far = kAsk == Ask::kAhead};
  switch (p.start) {
    case Start::kZero:
      TileProduct<Into::kOverwrite, kMaximum, kAsk>(t);
      break;
    case Start::kC:
      TileProduct<Into::kAdd, kMaximum, kAsk>(t);
      break;
    case Start::kScaledC:
      TileProduct<Into::kScaleAndAdd, kMaximum, kAsk>(t);
      break;
    case Start::kPerLane:
      TileProduct<Into::kStartAt, kMaximum, kAsk>(t);
  }
  p.left = queue.step();
}

template <class T>
void RunProblem(Problem<T>& p) {
  if (!p.maximum.empty()) return Run<LaneMaximum::kTake, Ask::kQueue>(p);
  if (p.asks == Asks::kAhead) return Run<LaneMaximum::kNone, Ask::kAhead>(p);
  Run<LaneMaximum::kNone, Ask::kQueue>(p);
}
void RunFloat(Problem<float>& p) { RunProblem(p); }
void RunDouble(Problem<double>& p) { RunProblem(p); }
index LanesOfFloat() { return kLanes<float>; }
index LanesOfDouble() { return kLanes<double>; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {
namespace {

HWY_EXPORT(RunFloat);
HWY_EXPORT(RunDouble);
HWY_EXPORT(LanesOfFloat);
HWY_EXPORT(LanesOfDouble);

void run(Problem<float>& p) { FOVEA_DISPATCH(RunFloat)(p); }
void run(Problem<double>& p) { FOVEA_DISPATCH(RunDouble)(p); }
template <class T>
index lanes_of() {
  return sizeof(T) == 4 ? FOVEA_DISPATCH(LanesOfFloat)() : FOVEA_DISPATCH(LanesOfDouble)();
}

template <class T>
std::vector<T> values(index n, int seed) {
  std::vector<T> x(static_cast<std::size_t>(n));
  for (index i = 0; i < n; ++i)
    x[std::size_t(i)] = static_cast<T>(std::sin(0.7 * double(i) + seed));
  return x;
}

constexpr int kUntouched = 77;

template <class T>
Problem<T> draw(index rows, index depth, index lanes, Start start, bool transposed) {
  const index gap = 3;
  Problem<T> p{rows, depth, lanes, 0, 0, lanes + gap, lanes + gap, start, {}, {}, {}, {}, {}};
  p.a_row = transposed ? 1 : depth + gap;
  p.a_depth = transposed ? rows + gap : 1;
  p.a = values<T>((rows + gap) * (depth + gap), 1);
  p.b = values<T>(depth * p.b_depth + gap, 2);
  p.c = values<T>(rows * p.c_row + gap, 3);
  p.per_lane = values<T>(lanes, 4);
  for (index r = 0; r < rows; ++r) {
    for (index g = 0; g < gap; ++g) p.c[std::size_t(r * p.c_row + lanes + g)] = kUntouched;
  }
  return p;
}

// The definition, in double; `size` is the sum of the terms' magnitudes.
template <class T>
double expected(const Problem<T>& p, index r, index l, double& size) {
  const double c = p.c[std::size_t(r * p.c_row + l)], lane = p.per_lane[std::size_t(l)];
  double sum = 0;
  if (p.start == Start::kC) sum = c;
  if (p.start == Start::kScaledC) sum = c * lane;
  if (p.start == Start::kPerLane) sum = lane;
  size = std::fabs(sum);
  for (index k = 0; k < p.depth; ++k) {
    const double term = double(p.a[std::size_t(r * p.a_row + k * p.a_depth)]) *
                        double(p.b[std::size_t(k * p.b_depth + l)]);
    sum += term;
    size += std::fabs(term);
  }
  return sum;
}

template <class T>
void expect_product(const Problem<T>& before) {
  Problem<T> after = before;
  run(after);
  for (index r = 0; r < before.rows; ++r) {
    for (index l = 0; l < before.c_row; ++l) {
      const auto at = static_cast<std::size_t>(r * before.c_row + l);
      if (l >= before.lanes) {
        ASSERT_EQ(after.c[at], kUntouched) << "behind row " << r;
        continue;
      }
      double size = 0;
      const double exact = expected(before, r, l, size);
      const double tolerance = std::numeric_limits<T>::epsilon() * (size + 1e-30) * 4;
      ASSERT_NEAR(after.c[at], exact, tolerance) << "row " << r << " lane " << l;
    }
  }
}

template <class T>
void expect_every_shape() {
  const index n = lanes_of<T>();
  for (const Start start : {Start::kZero, Start::kC, Start::kScaledC, Start::kPerLane}) {
    for (const index rows : {0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 17, 40}) {
      for (const index vectors : {1, 2, 3, 4, 5, 8, 11}) {
        for (const index depth : {0, 1, 2, 7, 33}) {
          const bool transposed = (rows + depth) % 2 == 0;
          SCOPED_TRACE(testing::Message() << rows << "x" << depth << "x" << vectors * n);
          expect_product(draw<T>(rows, depth, vectors * n, start, transposed));
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(TileProduct, MatchesItsDefinition) {
  for_each_isa([] {
    expect_every_shape<float>();
    expect_every_shape<double>();
  });
}

TEST(TileProduct, ARowsBitsDependOnNothingElse) {
  for_each_isa([] {
    const index lanes = 11 * lanes_of<float>();
    auto all = draw<float>(40, 50, lanes, Start::kC, false);
    const auto original = all;
    run(all);
    for (index rows = 1; rows < 40; ++rows) {
      auto some = original;
      some.rows = rows;
      run(some);
      const auto bytes = static_cast<std::size_t>(rows * some.c_row) * sizeof(float);
      ASSERT_EQ(std::memcmp(some.c.data(), all.c.data(), bytes), 0) << rows << " rows";
    }
  });
}

TEST(TileProduct, ASumCutInTwoHasTheSameBits) {
  for_each_isa([] {
    auto whole = draw<float>(13, 50, 3 * lanes_of<float>(), Start::kPerLane, false);
    auto parts = whole;
    run(whole);
    parts.depth = 21;
    run(parts);
    parts.depth = 50 - 21;
    parts.start = Start::kC;
    parts.a.erase(parts.a.begin(), parts.a.begin() + 21);
    parts.b.erase(parts.b.begin(), parts.b.begin() + 21 * parts.b_depth);
    run(parts);
    EXPECT_EQ(parts.c, whole.c);
  });
}

TEST(TileProduct, AskingForLinesChangesNoBits) {
  for_each_isa([] {
    for (const index depth : {1, 2, 3, 15, 16, 17, 31, 32, 33, 50}) {
      for (const Start start : {Start::kZero, Start::kC, Start::kScaledC, Start::kPerLane}) {
        auto plain = draw<float>(29, depth, 9 * lanes_of<float>(), start, false);
        const auto before = plain;
        run(plain);
        for (const Asks asks : {Asks::kQueue, Asks::kAhead}) {
          auto asking = before;
          asking.asks = asks;
          run(asking);
          EXPECT_EQ(asking.c, plain.c) << "depth " << depth;
          EXPECT_TRUE(asks != Asks::kQueue || asking.left == 0) << "depth " << depth;
        }
      }
    }
  });
}

TEST(TileProduct, KeepsTheLargestOfEveryLane) {
  for_each_isa([] {
    const index lanes = 5 * lanes_of<float>();
    for (const index rows : {1, 5, 6, 23}) {
      auto p = draw<float>(rows, 9, lanes, Start::kZero, false);
      p.maximum.assign(std::size_t(lanes), -0.5f);
      run(p);
      for (index l = 0; l < lanes; ++l) {
        float largest = -0.5f;
        for (index r = 0; r < rows; ++r) {
          largest = std::max(largest, p.c[std::size_t(r * p.c_row + l)]);
        }
        EXPECT_EQ(p.maximum[std::size_t(l)], largest) << rows << " rows, lane " << l;
      }
    }
  });
}

}  // namespace
}  // namespace fovea
#endif  // HWY_ONCE

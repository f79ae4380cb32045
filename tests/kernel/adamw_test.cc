// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/adamw.h"

#include "fovea/reference/kernels.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);

template <class T>
struct Parameters {
  std::vector<Matrix<T>> value, gradient, m, v;

  static Parameters random(Random& random, const std::vector<index>& sizes) {
    Parameters p;
    for (const index n : sizes) {
      p.value.push_back(Matrix<T>::random(random, 1, n, 0.2));
      p.gradient.emplace_back(1, n);
      p.m.emplace_back(1, n);
      p.v.emplace_back(1, n);
    }
    return p;
  }
  template <class U>
  Parameters<U> as() const {
    const auto convert = [](const std::vector<Matrix<T>>& all) {
      std::vector<Matrix<U>> result;
      for (const auto& x : all) result.emplace_back(x);
      return result;
    };
    return {convert(value), convert(gradient), convert(m), convert(v)};
  }
  std::vector<AdamWSlot<T>> slots(double decay = 1) {
    std::vector<AdamWSlot<T>> result;
    for (std::size_t i = 0; i < value.size(); ++i)
      result.push_back({value[i].vec(), gradient[i].vec(), m[i].vec(), v[i].vec(), decay});
    return result;
  }
  bool operator==(const Parameters&) const = default;
};

const std::vector<index> kSizes = {1, 5, 16, 33, 4099};

// A gradient as training gives it: a pull to a place of its own for each value, and noise.
template <class T>
void draw_gradients(Parameters<T>& p, index step) {
  Random noise(70, RandomUse::kTest, static_cast<std::uint64_t>(step));
  for (std::size_t i = 0; i < p.value.size(); ++i)
    for (index c = 0; c < p.value[i].columns(); ++c) {
      const double target = 0.1 * std::sin(static_cast<double>(c));
      p.gradient[i].at(0, c) = static_cast<T>(p.value[i].at(0, c) - target + 0.3 * noise.normal());
    }
}

template <class T>
double largest_distance(const Parameters<T>& a, const Parameters<double>& b) {
  double result = 0;
  for (std::size_t i = 0; i < a.value.size(); ++i)
    result = std::max(result, largest_difference(a.value[i].values(), b.value[i].values()));
  return result;
}

// Spec T1. The gradients are drawn for the reference and given to both.
template <class T>
double distance_after_100_steps(const AdamWOptions& options, double gradient_scale) {
  Random random(71, RandomUse::kTest);
  auto exact = Parameters<double>(Parameters<float>::random(random, kSizes).as<double>());
  auto fast = exact.as<T>();
  double distance = 0;
  for (index step = 1; step <= 100; ++step) {
    draw_gradients(exact, step);
    fast.gradient = exact.as<T>().gradient;
    if constexpr (std::is_same_v<T, float>) exact.gradient = fast.template as<double>().gradient;
    const AdamWStep s{options, step, gradient_scale};
    reference::adamw<double>(exact.slots(), s);
    adamw<T>(kContext, fast.slots(), s);
    distance = std::max(distance, largest_distance(fast, exact));
  }
  return distance;
}

TEST(AdamW, FollowsTheDoubleReferenceFor100Steps) {
  for_each_isa([] {
    EXPECT_LE(distance_after_100_steps<float>({.weight_decay = 0.1}, 1), 1e-6);
    EXPECT_LE(distance_after_100_steps<float>({.lr = 1e-3, .epsilon = 1e-7}, 0.25), 1e-6);
    EXPECT_LE(distance_after_100_steps<double>({.weight_decay = 0.1}, 0.5), 1e-13);
  });
}

// The first step moves every value by lr, whatever its gradient: m / (1 - beta1) = g = sqrt(v /
// ..).
TEST(AdamW, TheFirstStepIsTheSignOfTheGradient) {
  Random random(72, RandomUse::kTest);
  auto p = Parameters<double>::random(random, {40});
  const auto before = p;
  for (index c = 0; c < 40; ++c) p.gradient[0].at(0, c) = (c % 2 == 0 ? 1e-3 : -50.0);
  adamw<double>(kContext, p.slots(), {.options = {.lr = 0.01, .weight_decay = 0}});
  for (index c = 0; c < 40; ++c)
    EXPECT_NEAR(p.value[0].at(0, c) - before.value[0].at(0, c), c % 2 == 0 ? -0.01 : 0.01, 1e-6);
}

TEST(AdamW, DecayIsDecoupledAndMayBeLeftOutForASlot) {
  Random random(73, RandomUse::kTest);
  auto p = Parameters<double>::random(random, {9});
  const auto before = p;
  const AdamWStep step{.options = {.lr = 0.1, .weight_decay = 0.5}};
  adamw<double>(kContext, p.slots(/*decay=*/0), step);
  EXPECT_TRUE(p.value[0] == before.value[0]) << "no gradient, no decay: nothing moves";
  adamw<double>(kContext, p.slots(), step);
  EXPECT_NEAR(p.value[0].at(0, 3), 0.95 * before.value[0].at(0, 3), 1e-15);
}

TEST(AdamW, SameBitsForAnyNumberOfThreads) {
  Random random(75, RandomUse::kTest);
  auto start = Parameters<float>::random(random, {3, 40000, 5, 9000});
  draw_gradients(start, 1);
  expect_same_for_threads([&](const Context& ctx) {
    auto p = start;
    const double norm = global_norm<float>(ctx, p.slots());
    adamw<float>(ctx, p.slots(), {.gradient_scale = clip_scale(norm, 1)});
    return std::pair(p, norm);
  });
}

TEST(AdamW, SaysWhatIsWrong) {
  Random random(76, RandomUse::kTest);
  auto p = Parameters<float>::random(random, {4, 5});
  auto slots = p.slots();
  slots[1].v.size = 3;
  EXPECT_THROWS(adamw<float>(kContext, slots, {}), kShape,
                "value, gradient, m and v of slot 1 must have one size; they have 5, 5, 5, 3");
  EXPECT_THROWS(adamw<float>(kContext, p.slots(), {.step = 0}), kOptionValue,
                "step must be >= 1; it is 0");
}

TEST(GlobalNorm, IsTheRootOfTheSumOfSquares) {
  for_each_isa([] {
    Random random(77, RandomUse::kTest);
    auto p = Parameters<float>::random(random, kSizes);
    draw_gradients(p, 1);
    auto exact = p.as<double>();
    const double norm = reference::global_norm<float>(p.slots());
    EXPECT_NEAR(global_norm<float>(kContext, p.slots()), norm, 1e-12 * norm);
    EXPECT_NEAR(global_norm<double>(kContext, exact.slots()), norm, 1e-12 * norm);
  });
}

TEST(GlobalNorm, HoldsWhereAFloatSquareWouldNot) {
  for_each_isa([] {
    Random random(78, RandomUse::kTest);
    auto p = Parameters<float>::random(random, {19});
    p.gradient[0].at(0, 18) = 3e30f;
    EXPECT_FLOAT_EQ(static_cast<float>(global_norm<float>(kContext, p.slots())), 3e30f);
    p.gradient[0].at(0, 18) = 3e-30f;
    EXPECT_FLOAT_EQ(static_cast<float>(global_norm<float>(kContext, p.slots())), 3e-30f);
  });
}

TEST(GlobalNorm, ShowsThatAGradientIsNotFinite) {
  for_each_isa([] {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF})
      for (const index place : {0, 4095, 9999}) {
        Random random(79, RandomUse::kTest);
        auto p = Parameters<float>::random(random, {10000});
        p.gradient[0].at(0, place) = bad;
        EXPECT_FALSE(std::isfinite(global_norm<float>(kContext, p.slots())));
      }
  });
}

// A table, its gradient as a whole, and the rows of it that are not zero, in any order.
struct TableOfRows {
  Matrix<float> value, m, v;
  std::vector<float> whole, compact;
  std::vector<GradientRow> rows;

  TableOfRows(Random& random, index V, index C, index every)
      : value(Matrix<float>::random(random, 1, V * C)),
        m(Matrix<float>::random(random, 1, V * C, 0.1)),
        v(1, V * C, 0.01F),
        whole(static_cast<std::size_t>(V * C)) {
    std::vector<std::int32_t> used;
    for (std::int32_t row = 0; row < V; ++row)
      if (random.below(every) == 0) used.push_back(row);
    const auto n = static_cast<std::int32_t>(used.size());
    compact.resize(used.size() * static_cast<std::size_t>(C));
    for (std::int32_t i = 0; i < n; ++i) {
      rows.push_back({used[static_cast<std::size_t>(i)], n - 1 - i});
      for (index c = 0; c < C; ++c) {
        const auto g = static_cast<float>(random.normal());
        whole[static_cast<std::size_t>(rows.back().row * C + c)] = g;
        compact[static_cast<std::size_t>(rows.back().place * C + c)] = g;
      }
    }
  }
  AdamWSlot<float> dense() { return {value.vec(), whole, m.vec(), v.vec()}; }
  AdamWSlot<float> sparse(index C) { return {value.vec(), compact, m.vec(), v.vec(), 1, rows, C}; }
};

TEST(GlobalNorm, OfRowsHasTheBitsOfTheWhole) {
  for_each_isa([] {
    for (const index C : {1, 5, 32, 64, 100, 192, 640, 5000})
      for (const index every : {1, 3, 40}) {
        Random random(85, RandomUse::kTest, static_cast<std::uint64_t>(C));
        TableOfRows one(random, 20000 / C + 7, C, every), two(random, 30, C, every);
        const AdamWSlot<float> whole[] = {one.dense(), two.dense()};
        const AdamWSlot<float> rows[] = {one.sparse(C), two.sparse(C)};
        const AdamWSlot<float> mixed[] = {one.sparse(C), two.dense()};
        const double norm = global_norm<float>(kContext, whole);
        EXPECT_EQ(global_norm<float>(kContext, rows), norm) << C << " columns";
        EXPECT_EQ(global_norm<float>(kContext, mixed), norm) << C << " columns";
      }
  });
}

TEST(AdamW, UpdatesTheRowsWithAGradientAsInTheWhole) {
  for_each_isa([] {
    for (const index C : {1, 33, 64, 5000}) {
      Random random(86, RandomUse::kTest, static_cast<std::uint64_t>(C));
      const index V = 20000 / C + 7;
      TableOfRows dense(random, V, C, 3);
      TableOfRows sparse = dense, start = dense;
      const AdamWStep step{.options = {.weight_decay = 0.1}, .step = 3, .gradient_scale = 0.3};
      const AdamWSlot<float> whole[] = {dense.dense()}, rows[] = {sparse.sparse(C)};
      adamw<float>(kContext, whole, step);
      adamw<float>(kContext, rows, step);
      std::vector<bool> used(static_cast<std::size_t>(V));
      for (const auto& [row, place] : dense.rows) used[static_cast<std::size_t>(row)] = true;
      for (index i = 0; i < V * C; ++i) {
        const TableOfRows& expected = used[static_cast<std::size_t>(i / C)] ? dense : start;
        ASSERT_EQ(sparse.value.at(0, i), expected.value.at(0, i));
        ASSERT_EQ(sparse.m.at(0, i), expected.m.at(0, i));
        ASSERT_EQ(sparse.v.at(0, i), expected.v.at(0, i));
      }
    }
  });
}

TEST(AdamW, SaysWhichRowDoesNotFit) {
  Random random(87, RandomUse::kTest);
  TableOfRows table(random, 10, 4, 1);
  const auto run = [&] {
    const AdamWSlot<float> slots[] = {table.sparse(4)};
    adamw<float>(kContext, slots, {});
  };
  std::swap(table.rows[3], table.rows[4]);
  EXPECT_THROWS(run(), kShape, "rows[4] of slot 0 is row 3");
  std::swap(table.rows[3], table.rows[4]);
  table.rows[9].row = 10;
  EXPECT_THROWS(run(), kShape, "rows ascend and are below 10");
  table.rows.pop_back();
  EXPECT_THROWS(run(), kShape, "the gradient of 9 rows 40");
}

TEST(GlobalNorm, OfNothingIsZero) { EXPECT_EQ(global_norm<float>(kContext, {}), 0); }

// Spec T2.
TEST(ClipScale, BoundsTheNorm) {
  EXPECT_EQ(clip_scale(4, 1), 0.25);
  EXPECT_EQ(clip_scale(1, 1), 1);
  EXPECT_EQ(clip_scale(0.5, 1), 1);
  EXPECT_EQ(clip_scale(4, 0), 1);
}

}  // namespace
}  // namespace fovea

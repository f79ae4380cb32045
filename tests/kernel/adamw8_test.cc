// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/adamw8.h"

#include <cmath>

#include "fovea/reference/kernels.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);

// A parameter with moments in 8 bits.
struct Parameter8 {
  Matrix<float> value, gradient;
  std::vector<std::uint8_t> m, v;
  std::vector<float> m_scale, v_scale;

  Parameter8(Random& random, index size)
      : value(Matrix<float>::random(random, 1, size, 0.2)),
        gradient(1, size),
        m(static_cast<std::size_t>(size)),
        v(m),
        m_scale(static_cast<std::size_t>(moment_blocks(size))),
        v_scale(m_scale) {}

  index size() const { return value.columns(); }
  AdamW8Slot slot(std::uint32_t number = 0) {
    return {.value = value.vec(),
            .gradient = gradient.vec(),
            .m = {m, m_scale},
            .v = {v, v_scale},
            .number = number};
  }
  void draw(index step) {
    Random noise(90, RandomUse::kTest, static_cast<std::uint64_t>(step));
    for (index c = 0; c < size(); ++c) {
      // Of sizes that differ by factors of up to 10,000 within a block.
      const double size = std::pow(10, -(c % 9) / 2.0);
      gradient.at(0, c) = static_cast<float>(size * (0.3 * std::sin(c) + noise.normal()));
    }
  }
  bool operator==(const Parameter8&) const = default;
};

// What a code stands for, by its definition.
double stored(std::uint32_t code, std::uint32_t largest, double scale) {
  const std::uint32_t size = code & largest;
  if (size == 0) return 0;
  const int number = 127 * 8 - static_cast<int>(largest - size);
  const double part = std::ldexp(1 + (number % 8) / 8.0, number / 8 - 127);
  return (code > largest ? -part : part) * scale;
}

struct ExactMoments {
  Matrix<double> m, v;

  explicit ExactMoments(const Parameter8& p) : m(1, p.size()), v(1, p.size()) {
    for (index c = 0; c < p.size(); ++c) {
      const auto i = static_cast<std::size_t>(c),
                 block = static_cast<std::size_t>(c / kMomentBlock);
      m.at(0, c) = stored(p.m[i], 127, double{p.m_scale[block]});
      v.at(0, c) = stored(p.v[i], 255, double{p.v_scale[block]});
    }
  }
};

double largest_of_block(const Matrix<double>& x, index c) {
  double most = 0;
  const index begin = c / kMomentBlock * kMomentBlock;
  for (index i = begin; i < std::min(begin + kMomentBlock, x.columns()); ++i)
    most = std::max(most, std::abs(x.at(0, i)));
  return most;
}

// Every update is that of AdamW in double on the moments that were stored, and what it stores is
// within the bound.
TEST(AdamW8, EachOf100UpdatesIsThatOfTheDoubleReferenceWithinTheBound) {
  for_each_isa([] {
    for (const index size : {1, 7, 256, 300, 5000}) {
      Random random(91, RandomUse::kTest);
      Parameter8 p(random, size);
      for (index step = 1; step <= 100; ++step) {
        p.draw(step);
        ExactMoments exact(p);
        Matrix<double> value(p.value), gradient(p.gradient);
        const AdamWSlot<double> slot{value.vec(), gradient.vec(), exact.m.vec(), exact.v.vec()};
        const AdamWStep s{{.lr = 1e-3, .weight_decay = 0.1}, step, 0.5};
        reference::adamw<double>({&slot, 1}, s);
        const AdamW8Slot fast = p.slot();
        adamw8(kContext, {&fast, 1}, s);
        ASSERT_LE(largest_difference(p.value.values(), value.values()), 1e-6) << step;
        const ExactMoments now(p);
        for (index c = 0; c < size; ++c) {
          const double m = exact.m.at(0, c), v = exact.v.at(0, c);
          const double of_m = kSmallestM * largest_of_block(exact.m, c),
                       of_v = kSmallestV * largest_of_block(exact.v, c);
          constexpr double kRounding = 1 + 1e-5;
          ASSERT_LE(std::abs(now.m.at(0, c) - m),
                    kRounding * std::max(kMomentError * std::abs(m), of_m));
          ASSERT_LE(std::abs(now.v.at(0, c) - v), kRounding * std::max(kMomentError * v, of_v));
          ASSERT_TRUE(now.v.at(0, c) > 0 || v == 0) << "values are divided by its root";
        }
      }
    }
  });
}

// Beside AdamW in double with its own moments, all the way: the values part by a small share of the
// way that they go.
TEST(AdamW8, GoesTheWayOfTheDoubleReference) {
  constexpr index kSteps = 400;
  constexpr double kRate = 1e-3;
  Random random(92, RandomUse::kTest);
  Parameter8 p(random, 2000);
  Matrix<double> value(p.value), m(1, 2000), v(1, 2000);
  const Matrix<double> start(p.value);
  for (index step = 1; step <= kSteps; ++step) {
    p.draw(step);
    Matrix<double> gradient(p.gradient);
    const AdamWSlot<double> slot{value.vec(), gradient.vec(), m.vec(), v.vec()};
    const AdamWStep s{{.lr = kRate, .beta2 = 0.99}, step, 1};
    reference::adamw<double>({&slot, 1}, s);
    const AdamW8Slot fast = p.slot();
    adamw8(kContext, {&fast, 1}, s);
  }
  double apart = 0, way = 0;
  for (index c = 0; c < 2000; ++c) {
    apart += std::abs(double{p.value.at(0, c)} - value.at(0, c));
    way += std::abs(value.at(0, c) - start.at(0, c));
  }
  EXPECT_LE(apart, 0.1 * way);
}

// With betas of 0 the moments are the gradient and its square.
TEST(AdamW8, TheMeanOfWhatIsStoredIsTheMoment) {
  constexpr index kSize = 64, kSteps = 4000;
  Random random(93, RandomUse::kTest);
  Parameter8 p(random, kSize);
  p.draw(1);
  Matrix<double> m(1, kSize), v(1, kSize);
  for (index step = 1; step <= kSteps; ++step) {
    const AdamW8Slot slot = p.slot();
    adamw8(kContext, {&slot, 1}, {{.lr = 0, .beta1 = 0, .beta2 = 0}, step, 1});
    const ExactMoments now(p);
    for (index c = 0; c < kSize; ++c) {
      m.at(0, c) += now.m.at(0, c) / kSteps;
      v.at(0, c) += now.v.at(0, c) / kSteps;
    }
  }
  for (index c = 0; c < kSize; ++c) {
    const double g = double{p.gradient.at(0, c)};
    // An error of at most a step of 1/8, 4000 times: four deviations.
    EXPECT_NEAR(m.at(0, c), g, 0.004 * std::abs(g) + kSmallestM * 0.1) << c;
    EXPECT_NEAR(v.at(0, c), g * g, 0.004 * g * g + kSmallestV * 10) << c;
  }
}

TEST(AdamW8, ReadsTheMomentsThatItStores) {
  Random random(94, RandomUse::kTest);
  Parameter8 p(random, 700);
  p.draw(1);
  const AdamW8Slot slot = p.slot();
  adamw8(kContext, {&slot, 1}, {});
  Matrix<float> m(1, 700), v(1, 700);
  read_moments8(slot, m.vec(), v.vec());
  const ExactMoments exact(p);
  EXPECT_LE(largest_difference(m.values(), exact.m.values()), 1e-7 * largest(exact.m.values()));
  EXPECT_LE(largest_difference(v.values(), exact.v.values()), 1e-7 * largest(exact.v.values()));
}

TEST(AdamW8, ZerosStayAndSquaresMayOverflow) {
  Random random(95, RandomUse::kTest);
  Parameter8 p(random, 300);
  const Parameter8 before = p;
  const AdamW8Slot slot = p.slot();
  adamw8(kContext, {&slot, 1}, {});
  EXPECT_TRUE(p == before) << "no gradient, no decay: nothing moves";
  for (index c = 0; c < 300; ++c) p.gradient.at(0, c) = c % 2 == 0 ? 1e30f : 1e-30f;
  for (index step = 1; step <= 3; ++step) adamw8(kContext, {&slot, 1}, {.step = step});
  EXPECT_TRUE(std::isfinite(largest(p.value.values())));
  for (const float scale : p.v_scale) EXPECT_TRUE(std::isfinite(scale));
}

TEST(AdamW8, SameBitsForAnyNumberOfThreads) {
  Random random(96, RandomUse::kTest);
  std::vector<Parameter8> start;
  for (const index size : {3, 40000, 5, 9000}) start.emplace_back(random, size);
  for (Parameter8& p : start) p.draw(1);
  expect_same_for_threads([&](const Context& ctx) {
    auto all = start;
    for (index step = 1; step <= 3; ++step) {
      std::vector<AdamW8Slot> slots;
      for (Parameter8& p : all) slots.push_back(p.slot(static_cast<std::uint32_t>(slots.size())));
      adamw8(ctx, slots, {.step = step});
    }
    return all;
  });
}

TEST(AdamW8, SaysWhatIsWrong) {
  Random random(97, RandomUse::kTest);
  Parameter8 p(random, 600);
  AdamW8Slot slot = p.slot();
  slot.v.scales.size = 2;
  EXPECT_THROWS(adamw8(kContext, {&slot, 1}, {}), kShape,
                "v of slot 0 must have 600 codes and 3 scales; it has 600 and 2");
  slot = p.slot();
  EXPECT_THROWS(adamw8(kContext, {&slot, 1}, {.step = 0}), kOptionValue, "step must be >= 1");
}

}  // namespace
}  // namespace fovea

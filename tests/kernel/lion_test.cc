// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/lion.h"

#include "fovea/reference/optimizers.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);
const std::vector<index> kSizes = {1, 5, 16, 33, 4099};

template <class T>
struct LionParameters {
  std::vector<Matrix<T>> value, gradient, m;

  explicit LionParameters(Random& random, const std::vector<index>& sizes = kSizes) {
    for (const index n : sizes) {
      value.push_back(Matrix<T>::random(random, 1, n, 0.2));
      gradient.emplace_back(1, n);
      m.emplace_back(1, n);
    }
  }
  template <class U>
  explicit LionParameters(const LionParameters<U>& other) {
    for (const auto& x : other.value) value.emplace_back(x);
    for (const auto& x : other.gradient) gradient.emplace_back(x);
    for (const auto& x : other.m) m.emplace_back(x);
  }
  std::vector<LionSlot<T>> slots(double decay = 1) {
    std::vector<LionSlot<T>> result;
    for (std::size_t i = 0; i < value.size(); ++i)
      result.push_back({value[i].vec(), gradient[i].vec(), m[i].vec(), decay});
    return result;
  }
  bool operator==(const LionParameters&) const = default;
};

// Gradients that the values do not change, as the sign of one that is nearly 0 would part the two.
template <class T>
void draw_lion_gradients(LionParameters<T>& p, index step) {
  Random noise(80, RandomUse::kTest, static_cast<std::uint64_t>(step));
  for (auto& gradient : p.gradient)
    for (index c = 0; c < gradient.columns(); ++c)
      gradient.at(0, c) = static_cast<T>(static_cast<float>(0.5 * std::sin(c) + noise.normal()));
}

template <class T>
double lion_distance_after_100_steps(const AdamWOptions& options, double gradient_scale) {
  Random random(81, RandomUse::kTest);
  LionParameters<double> exact(LionParameters<float>{random});
  LionParameters<T> fast(exact);
  double distance = 0;
  for (index step = 1; step <= 100; ++step) {
    draw_lion_gradients(exact, step);
    draw_lion_gradients(fast, step);
    const AdamWStep s{options, step, gradient_scale};
    reference::lion(exact.slots(), s);
    lion<T>(kContext, fast.slots(), s);
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      distance =
          std::max({distance, largest_difference(fast.value[i].values(), exact.value[i].values()),
                    largest_difference(fast.m[i].values(), exact.m[i].values())});
    }
  }
  return distance;
}

TEST(Lion, FollowsTheDoubleReferenceFor100Steps) {
  for_each_isa([] {
    EXPECT_LE(lion_distance_after_100_steps<float>({.beta2 = 0.99, .weight_decay = 0.1}, 1), 1e-6);
    EXPECT_LE(lion_distance_after_100_steps<float>({.lr = 3e-4, .beta1 = 0.95}, 0.25), 1e-6);
    EXPECT_LE(lion_distance_after_100_steps<double>({.weight_decay = 0.1}, 0.5), 1e-13);
  });
}

TEST(Lion, AStepIsTheSignAndZerosStay) {
  Random random(82, RandomUse::kTest);
  LionParameters<double> p(random, {40});
  const auto before = p;
  for (index c = 0; c < 40; ++c) p.gradient[0].at(0, c) = c % 3 == 0 ? 0 : c % 3 == 1 ? 1e-9 : -50;
  lion<double>(kContext, p.slots(), {.options = {.lr = 0.01, .weight_decay = 0}});
  const double expected[] = {0, -0.01, 0.01};
  for (index c = 0; c < 40; ++c)
    EXPECT_NEAR(p.value[0].at(0, c) - before.value[0].at(0, c), expected[c % 3], 1e-15);
}

TEST(Lion, DecayMayBeLeftOutForASlot) {
  Random random(83, RandomUse::kTest);
  LionParameters<double> p(random, {9});
  const auto before = p;
  const AdamWStep step{.options = {.lr = 0.1, .weight_decay = 0.5}};
  lion<double>(kContext, p.slots(/*decay=*/0), step);
  EXPECT_TRUE(p == before) << "no gradient, no decay: nothing moves";
  lion<double>(kContext, p.slots(), step);
  EXPECT_NEAR(p.value[0].at(0, 3), 0.95 * before.value[0].at(0, 3), 1e-15);
}

TEST(Lion, SameBitsForAnyNumberOfThreads) {
  Random random(84, RandomUse::kTest);
  LionParameters<float> start(random, {3, 40000, 5, 9000});
  draw_lion_gradients(start, 1);
  expect_same_for_threads([&](const Context& ctx) {
    auto p = start;
    lion<float>(ctx, p.slots(), {.gradient_scale = 0.3});
    return p;
  });
}

TEST(Lion, SaysWhatIsWrong) {
  Random random(85, RandomUse::kTest);
  LionParameters<float> p(random, {4, 5});
  auto slots = p.slots();
  slots[1].m.size = 3;
  EXPECT_THROWS(lion<float>(kContext, slots, {}), kShape,
                "value, gradient and m of slot 1 must have one size; they have 5, 5, 3");
}

}  // namespace
}  // namespace fovea

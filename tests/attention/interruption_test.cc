// SPDX-License-Identifier: Apache-2.0
// A call that is asked to end: each of its long loops looks, it ends soon, and the next one has the
// bits that it would have had.
#include "fovea/base/interruption.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <vector>

#include "fovea/attention/attention.h"
#include "fovea/base/random.h"

namespace fovea {
namespace {

// Asks when it has been looked at so many times, which is counted.
class AfterLooks final : public Interruption {
 public:
  explicit AfterLooks(index looks) : looks_(looks) {}
  bool requested() const override { return ++seen > looks_; }
  mutable std::atomic<index> seen{0};

 private:
  const index looks_;
};

constexpr index kNever = std::numeric_limits<index>::max();
constexpr index kKeys = 64 * 128, kWidth = 4;
// Kernels look once in 128 keys or more often; as little as that is seen of one item of work.
constexpr index kLeastLooks = kKeys / 128;

std::vector<float> random_values(index n, std::uint64_t seed) {
  Random random(seed, RandomUse::kTest);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

/// One head, and few queries that see all keys (of gradients also the other way round).
struct LongCall {
  index queries, keys;
  std::vector<float> q = random_values(queries * kWidth, 1), k = random_values(keys * kWidth, 2),
                     v = random_values(keys * kWidth, 3), d_o = random_values(queries * kWidth, 4);
  std::vector<float> o = std::vector<float>(q.size()), dq = o, dk = std::vector<float>(k.size()),
                     dv = dk, lse = std::vector<float>(static_cast<std::size_t>(queries)),
                     mass = std::vector<float>(static_cast<std::size_t>(keys));
  Attention<float> attention = {};

  template <class T>
  View<T> view(std::vector<float>& values, index length) const {
    return View<T>::contiguous(values.data(), 1, length, 1, kWidth);
  }
  AttentionInputs<float> in() {
    return {view<const float>(q, queries), view<const float>(k, keys), view<const float>(v, keys)};
  }
  RowView<float> rows(std::vector<float>& values, index length) const {
    return RowView<float>::contiguous(values.data(), 1, 1, length);
  }
  void forward() {
    attention_forward<float>(
        Context(1), attention, in(),
        {.o = view<float>(o, queries),
         .lse = needs_lse(attention.norm) ? rows(lse, queries) : RowView<float>()});
  }
  void backward() {
    const RowView<float> of_forward =
        needs_lse(attention.norm) ? rows(lse, queries) : RowView<float>();
    attention_backward<float>(
        Context(1), attention, in(),
        {view<const float>(o, queries), of_forward, view<const float>(d_o, queries)},
        {view<float>(dq, queries), view<float>(dk, keys), view<float>(dv, keys)});
  }
};

// `compute` looks at least so often, ends at whatever look asks it to, and then computes the same
// `result` as if nothing had been.
template <class F>
void expect_interruptible(F&& compute, const std::vector<float>& result, index least_looks) {
  const AfterLooks never(kNever);
  {
    const InterruptionScope scope(never);
    compute();
  }
  EXPECT_GE(never.seen, least_looks);
  const std::vector<float> expected = result;
  for (const index looks : {index{0}, least_looks / 2, never.seen - 1}) {
    const AfterLooks request(looks);
    {
      const InterruptionScope scope(request);
      EXPECT_THROW(compute(), Interrupted) << "after " << looks << " looks";
    }
    EXPECT_LE(request.seen, looks + 2) << "it goes on after it was asked to end";
    compute();
    EXPECT_EQ(result, expected);
  }
}

TEST(Interruption, OfAForwardBetweenBlocksOfKeys) {
  LongCall call{.queries = 1, .keys = kKeys};
  expect_interruptible([&] { call.forward(); }, call.o, kLeastLooks);
}

TEST(Interruption, OfABackwardBetweenBlocksOfQueries) {
  LongCall call{.queries = kKeys, .keys = 1};
  call.forward();
  expect_interruptible([&] { call.backward(); }, call.dk, kLeastLooks);
}

TEST(Interruption, OfColumnSumsBetweenTilesOfQueries) {
  LongCall call{.queries = kKeys, .keys = 1};
  call.attention.observe = observe::ColumnMass<float>(call.rows(call.mass, call.keys));
  expect_interruptible([&] { call.forward(); }, call.mass, 2 * kLeastLooks);
}

TEST(Interruption, OfTheLinearKernelBetweenBlocks) {
  LongCall call{.queries = 1, .keys = kKeys};
  call.attention.norm = norm::None{};
  expect_interruptible([&] { call.forward(); }, call.o, kLeastLooks);
  expect_interruptible([&] { call.backward(); }, call.dq, kLeastLooks);
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "fovea/kernel/cross_entropy.h"
#include "fovea/kernel/gemm.h"
#include "fovea/reference/kernels.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);

template <class T>
struct Problem {
  Matrix<T> x, weight, bias;
  std::vector<std::int32_t> ids;
  double scale = 1, smoothing = 0, softcap = 0;

  // Every third row is ignored, unless `every` says otherwise.
  static Problem random(Random& random, index N, index C, index V, index every = 3) {
    Problem p{Matrix<T>::random(random, N, C),
              Matrix<T>::random(random, V, C, 0.5),
              Matrix<T>::random(random, 1, V),
              {}};
    for (index n = 0; n < N; ++n)
      p.ids.push_back(n % every == 1 ? -1 : static_cast<std::int32_t>(random.below(V)));
    return p;
  }
  template <class U>
  Problem<U> as() const {
    return {Matrix<U>(x), Matrix<U>(weight), Matrix<U>(bias), ids, scale, smoothing, softcap};
  }
};

template <class T>
struct Result {
  CrossEntropy loss;
  Matrix<T> losses, dx, dweight, dbias;
  bool operator==(const Result& other) const {
    return loss.total == other.loss.total && losses == other.losses && dx == other.dx &&
           dweight == other.dweight && dbias == other.dbias;
  }
};

template <class T>
Result<T> room_for(const Problem<T>& p) {
  const index N = p.x.rows(), C = p.x.columns(), V = p.weight.rows();
  return {{}, Matrix<T>(1, N), Matrix<T>(N, C, 5), Matrix<T>(V, C), Matrix<T>(1, V)};
}

template <class T>
LinearCrossEntropy<T> arguments(const Problem<T>& p, Result<T>& r) {
  return {.x = p.x.view(),
          .weight = p.weight.view(),
          .bias = p.bias.vec(),
          .targets = {.ids = p.ids, .smoothing = p.smoothing},
          .scale = p.scale,
          .softcap = p.softcap,
          .losses = r.losses.vec(),
          .dx = r.dx.view(),
          .dweight = r.dweight.view(),
          .dbias = r.dbias.vec()};
}

template <class T>
Result<T> fused(const Context& ctx, const Problem<T>& p) {
  auto r = room_for(p);
  r.loss = linear_cross_entropy(ctx, arguments(p, r));
  return r;
}

template <class T>
Result<T> plain(const Problem<T>& p) {
  auto r = room_for(p);
  r.loss = reference::linear_cross_entropy(arguments(p, r));
  return r;
}

void expect_result_no_worse(const Result<float>& fast, const Result<float>& slow,
                            const Result<double>& exact) {
  expect_no_worse(fast.losses, slow.losses, exact.losses, "losses");
  expect_no_worse(fast.dx, slow.dx, exact.dx, "dx");
  expect_no_worse(fast.dweight, slow.dweight, exact.dweight, "dweight");
  expect_no_worse(fast.dbias, slow.dbias, exact.dbias, "dbias");
  EXPECT_EQ(fast.loss.count, exact.loss.count);
  EXPECT_NEAR(fast.loss.total, exact.loss.total, 1e-5 * std::max(1.0, exact.loss.total));
}

TEST(LinearCrossEntropy, ErrorIsAtMostTwiceThatOfThePlainFloat) {
  for_each_isa([] {
    Random random(90, RandomUse::kTest);
    // The last two are of several chunks; the last has no row to ignore and works in place.
    constexpr std::array<std::array<index, 4>, 5> kShapes = {
        {{1, 1, 1, 3}, {5, 3, 2, 3}, {40, 33, 17, 3}, {600, 17, 31, 3}, {600, 16, 40, 1000}}};
    for (const auto& [N, C, V, every] : kShapes) {
      auto p = Problem<float>::random(random, N, C, V, every);
      p.smoothing = every == 1000 ? 0.1 : 0;
      expect_result_no_worse(fused(kContext, p), plain(p), plain(p.as<double>()));
    }
  });
}

TEST(LinearCrossEntropy, GradientIsThatOfTheLoss) {
  for_each_isa([] {
    Random random(91, RandomUse::kTest);
    auto p = Problem<double>::random(random, 7, 5, 9);
    p.scale = 0.2;
    const auto r = fused(kContext, p);
    const auto loss = [&] { return p.scale * fused(kContext, p).loss.total; };
    expect_gradient(p.x, r.dx, loss, "x");
    expect_gradient(p.weight, r.dweight, loss, "weight");
    expect_gradient(p.bias, r.dbias, loss, "bias");
  });
}

TEST(LinearCrossEntropy, LogitsAreCapped) {
  for_each_isa([] {
    Random random(98, RandomUse::kTest);
    // The last is of several chunks.
    for (const auto& [N, C, V] : {std::array<index, 3>{5, 3, 2}, {40, 33, 17}, {600, 17, 31}}) {
      auto p = Problem<float>::random(random, N, C, V);
      p.softcap = 0.8;
      expect_result_no_worse(fused(kContext, p), plain(p), plain(p.as<double>()));
    }
    auto p = Problem<double>::random(random, 7, 5, 9);
    p.scale = 0.2;
    p.softcap = 0.5;
    const auto r = fused(kContext, p);
    const auto loss = [&] { return p.scale * fused(kContext, p).loss.total; };
    expect_gradient(p.x, r.dx, loss, "x");
    expect_gradient(p.weight, r.dweight, loss, "weight");
    expect_gradient(p.bias, r.dbias, loss, "bias");
  });
  Random random(99, RandomUse::kTest);
  auto p = Problem<float>::random(random, 700, 40, 300);
  p.softcap = 2;
  expect_same_for_threads([&](const Context& ctx) { return fused(ctx, p); });
}

TEST(LinearCrossEntropy, IgnoredRowsChangeNothing) {
  for_each_isa([] {
    Random random(92, RandomUse::kTest);
    auto padded = Problem<float>::random(random, 500, 20, 33);
    Problem<float> compact{Matrix<float>(333, 20), padded.weight, padded.bias, {}};
    std::vector<index> from;
    for (index n = 0; n < 500; ++n)
      if (padded.ids[static_cast<std::size_t>(n)] >= 0) from.push_back(n);
    for (std::size_t i = 0; i < from.size(); ++i) {
      compact.ids.push_back(padded.ids[static_cast<std::size_t>(from[i])]);
      for (index c = 0; c < 20; ++c)
        compact.x.at(static_cast<index>(i), c) = padded.x.at(from[i], c);
    }
    const auto a = fused(kContext, padded), b = fused(kContext, compact);
    EXPECT_EQ(a.loss.total, b.loss.total);
    EXPECT_TRUE(a.dweight == b.dweight) << "padded and packed batches have the same bits";
    EXPECT_TRUE(a.dbias == b.dbias);
    for (std::size_t i = 0; i < from.size(); ++i)
      ASSERT_EQ(a.dx.at(from[i], 3), b.dx.at(static_cast<index>(i), 3));
    EXPECT_EQ(a.dx.at(1, 0), 0.0f);
  });
}

TEST(LinearCrossEntropy, AllIgnoredIsZero) {
  Random random(93, RandomUse::kTest);
  auto p = Problem<float>::random(random, 6, 5, 7);
  std::fill(p.ids.begin(), p.ids.end(), -1);
  auto r = room_for(p);
  std::fill_n(r.dweight.view().data, 7 * 5, 3.0f);
  std::fill_n(r.dbias.view().data, 7, 3.0f);
  r.loss = linear_cross_entropy(kContext, arguments(p, r));
  EXPECT_EQ(r.loss.total, 0);
  EXPECT_EQ(r.loss.count, 0);
  EXPECT_EQ(largest(r.dx.values()) + largest(r.dweight.values()) + largest(r.dbias.values()), 0);
}

TEST(LinearCrossEntropy, PartsMayBeLeftOutOrGivenPacked) {
  Random random(94, RandomUse::kTest);
  const auto p = Problem<float>::random(random, 300, 20, 33);
  const auto expected = fused(kContext, p);
  auto r = room_for(p);
  auto a = arguments(p, r);
  PackedMatrix<float> transposed, same;
  transposed.pack(kContext, p.weight.view(), Form::kTransposed);
  same.pack(kContext, p.weight.view());
  a.packed_transposed = &transposed;
  a.packed = &same;
  r.loss = linear_cross_entropy(kContext, a);
  EXPECT_TRUE(r == expected);
  a.dx = a.dweight = {};
  a.dbias = a.losses = {};
  EXPECT_EQ(linear_cross_entropy(kContext, a).total, expected.loss.total);
  a.packed = &transposed;
  EXPECT_THROWS(linear_cross_entropy(kContext, a), kShape,
                "linear_cross_entropy: packed must be [33, 20]; it is [20, 33]");
}

TEST(LinearCrossEntropy, WeightGradientsAreWrittenOrAddedToWhatIsThere) {
  Random random(95, RandomUse::kTest);
  const auto p = Problem<double>::random(random, 300, 5, 7);
  const auto once = fused(kContext, p);
  auto again = once, twice = once;
  linear_cross_entropy(kContext, arguments(p, again));
  EXPECT_TRUE(again == once) << "what was there is overwritten";
  auto a = arguments(p, twice);
  a.dweight_store = a.dbias_store = Store::kAdd;
  linear_cross_entropy(kContext, a);
  EXPECT_NEAR(twice.dweight.at(3, 2), 2 * once.dweight.at(3, 2), 1e-14);
  EXPECT_NEAR(twice.dbias.at(0, 3), 2 * once.dbias.at(0, 3), 1e-14);
  EXPECT_TRUE(twice.dx == once.dx) << "dx is written";
}

TEST(LinearCrossEntropy, SameBitsForAnyNumberOfThreads) {
  Random random(96, RandomUse::kTest);
  const auto p = Problem<float>::random(random, 700, 40, 300);
  expect_same_for_threads([&](const Context& ctx) { return fused(ctx, p); });
}

TEST(LinearCrossEntropy, NamesTheShapesInItsErrors) {
  Random random(97, RandomUse::kTest);
  auto p = Problem<float>::random(random, 3, 4, 5);
  auto r = room_for(p);
  auto a = arguments(p, r);
  a.bias.size = 4;
  EXPECT_THROWS(linear_cross_entropy(kContext, a), kShape,
                "linear_cross_entropy: bias must be [V=5]; it is [4]");
  a = arguments(p, r);
  a.weight.columns = 3;
  EXPECT_THROWS(linear_cross_entropy(kContext, a), kShape,
                "linear_cross_entropy: weight must be [5, 4]; it is [5, 3]");
  p.ids[2] = 5;
  EXPECT_THROWS(linear_cross_entropy(kContext, arguments(p, r)), kShape, "targets[2] is 5");
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/norm.h"

#include "fovea/reference/kernels.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

const Context kContext(2);
constexpr LayerNormOptions kStandard{};
constexpr LayerNormOptions kUnbiased{LayerNormVariant::kUnbiased, 1e-6};

template <class T>
struct Problem {
  Matrix<T> x, gain, bias, dy;
  LayerNormOptions options;

  static Problem random(Random& random, index N, index C, const LayerNormOptions& options,
                        double mean = 0) {
    return {Matrix<T>::random(random, N, C, 1, mean), Matrix<T>::random(random, 1, C, 0.3, 1),
            Matrix<T>::random(random, 1, C), Matrix<T>::random(random, N, C), options};
  }
  template <class U>
  Problem<U> as() const {
    return {Matrix<U>(x), Matrix<U>(gain), Matrix<U>(bias), Matrix<U>(dy), options};
  }
};

template <class T>
struct Result {
  Matrix<T> y, saved, dx, dgain, dbias;
  bool operator==(const Result&) const = default;
};

template <class T>
Result<T> room_for(const Problem<T>& p) {
  const index N = p.x.rows(), C = p.x.columns();
  return {Matrix<T>(N, C), Matrix<T>(N, 2), Matrix<T>(N, C), Matrix<T>(1, C), Matrix<T>(1, C)};
}

template <class T>
LayerNormBackward<T> backward_of(const Problem<T>& p, Result<T>& r) {
  return {.x = p.x.view(),
          .gain = p.gain.vec(),
          .options = p.options,
          .saved = r.saved.view(),
          .dy = p.dy.view(),
          .dx = r.dx.view(),
          .dgain = r.dgain.vec(),
          .dbias = r.dbias.vec()};
}

template <class T>
Result<T> layer_norm(const Context& ctx, const Problem<T>& p) {
  Result<T> r = room_for(p);
  layer_norm_forward(ctx, p.x.in(), {p.gain.vec(), p.bias.vec()}, p.options, r.y.view(),
                     r.saved.view());
  layer_norm_backward(ctx, backward_of(p, r));
  return r;
}

template <class T>
Result<T> plain_layer_norm(const Problem<T>& p) {
  Result<T> r = room_for(p);
  reference::layer_norm_forward<T>(p.x.in(), {p.gain.vec(), p.bias.vec()}, p.options, r.y.view(),
                                   r.saved.view());
  reference::layer_norm_backward(backward_of(p, r));
  return r;
}

template <class T>
RmsNormBackward<T> rms_backward_of(const Problem<T>& p, Result<T>& r) {
  return {.x = p.x.view(),
          .gain = p.gain.vec(),
          .saved = r.saved.vec(),
          .dy = p.dy.view(),
          .dx = r.dx.view(),
          .dgain = r.dgain.vec()};
}

template <class T>
Result<T> rms_room_for(const Problem<T>& p) {
  Result<T> r = room_for(p);
  r.saved = Matrix<T>(1, p.x.rows());
  return r;
}

template <class T>
Result<T> rms_norm(const Context& ctx, const Problem<T>& p) {
  Result<T> r = rms_room_for(p);
  rms_norm_forward(ctx, p.x.in(), p.gain.vec(), 1e-5, r.y.view(), r.saved.vec());
  rms_norm_backward(ctx, rms_backward_of(p, r));
  return r;
}

template <class T>
Result<T> plain_rms_norm(const Problem<T>& p) {
  Result<T> r = rms_room_for(p);
  reference::rms_norm_forward<T>(p.x.in(), p.gain.vec(), 1e-5, r.y.view(), r.saved.vec());
  reference::rms_norm_backward(rms_backward_of(p, r));
  return r;
}

void expect_result_no_worse(const Result<float>& fast, const Result<float>& plain,
                            const Result<double>& exact) {
  expect_no_worse(fast.y, plain.y, exact.y, "y");
  expect_no_worse(fast.saved, plain.saved, exact.saved, "saved");
  expect_no_worse(fast.dx, plain.dx, exact.dx, "dx");
  expect_no_worse(fast.dgain, plain.dgain, exact.dgain, "dgain");
  expect_no_worse(fast.dbias, plain.dbias, exact.dbias, "dbias");
}

// One row, computed in float64 without any library.
TEST(LayerNorm, MatchesGoldenValues) {
  const std::vector<double> input = {1, 2, 4, 8};
  const std::vector<double> standard = {-1.025754575496, -0.652752911679, 0.093250415954,
                                        1.585257071221};
  const std::vector<double> unbiased = {-0.88832985144, -0.565300814552, 0.080757259222,
                                        1.37287340677};
  Matrix<double> x(1, 4);
  for (index c = 0; c < 4; ++c) x.at(0, c) = input[static_cast<std::size_t>(c)];
  for_each_isa([&] {
    for (const auto& [options, expected] :
         {std::pair(kStandard, standard), {kUnbiased, unbiased}}) {
      Matrix<double> y(1, 4), saved(1, 2);
      layer_norm_forward(kContext, x.in(), {}, options, y.view(), saved.view());
      EXPECT_LE(largest_difference(y.values(), expected), 1e-12);
      Matrix<float> y32(1, 4), saved32(1, 2);
      layer_norm_forward(kContext, Matrix<float>(x).in(), {}, options, y32.view(), saved32.view());
      EXPECT_LE(largest_difference(y32.values(), expected), 4 * 1.6 * 0x1p-23);
    }
  });
}

TEST(LayerNorm, ErrorIsAtMostTwiceThatOfThePlainFloat) {
  for_each_isa([] {
    Random random(10, RandomUse::kTest);
    for (const auto& options : {kStandard, kUnbiased})
      for (const double mean : {0.0, 1e4})
        for (const index C : kColumns) {
          if (C == 1 && options.variant == LayerNormVariant::kUnbiased) continue;
          const auto p = Problem<float>::random(random, 9, C, options, mean);
          expect_result_no_worse(layer_norm(kContext, p), plain_layer_norm(p),
                                 plain_layer_norm(p.as<double>()));
        }
  });
}

TEST(LayerNorm, KeepsTheVarianceOfARowWithALargeMean) {
  for_each_isa([] {
    Random random(11, RandomUse::kTest);
    const auto p = Problem<float>::random(random, 4, 512, kStandard, 1e4);
    const auto saved = layer_norm(kContext, p).saved;
    const auto exact = plain_layer_norm(p.as<double>()).saved;
    for (index n = 0; n < 4; ++n) {
      EXPECT_NEAR(saved.at(n, 0), exact.at(n, 0), 1e4 * 0x1p-23) << "mu: an ulp";
      EXPECT_NEAR(saved.at(n, 1), exact.at(n, 1), 1e-6);
    }
  });
}

TEST(LayerNorm, GradientIsThatOfTheForward) {
  for_each_isa([] {
    Random random(12, RandomUse::kTest);
    for (const auto& options : {kStandard, kUnbiased})
      for (const index C : {2, 5, 19}) {
        auto p = Problem<double>::random(random, 3, C, options);
        const auto r = layer_norm(kContext, p);
        const auto loss = [&] { return dot(layer_norm(kContext, p).y, p.dy); };
        expect_gradient(p.x, r.dx, loss, "x");
        expect_gradient(p.gain, r.dgain, loss, "gain");
        expect_gradient(p.bias, r.dbias, loss, "bias");
      }
  });
}

TEST(LayerNorm, AConstantRowGivesTheBiasAndFiniteGradients) {
  for_each_isa([] {
    for (const double epsilon : {1e-6, 0.0})
      for (const auto variant : {LayerNormVariant::kStandard, LayerNormVariant::kUnbiased})
        for (const float value : {0.0f, 0.1f, 3.0f, 12345.678f}) {
          Random random(13, RandomUse::kTest);
          auto p = Problem<float>::random(random, 2, 37, {variant, epsilon});
          p.x = Matrix<float>(2, 37, value);
          const auto r = layer_norm(kContext, p);
          for (index c = 0; c < 37; ++c) {
            EXPECT_EQ(r.y.at(1, c), p.bias.at(0, c));
            EXPECT_EQ(r.dgain.at(0, c), 0.0f);
            EXPECT_TRUE(std::isfinite(r.dx.at(1, c)));
          }
        }
  });
}

TEST(LayerNorm, GainAndBiasMayBeLeftOut) {
  for_each_isa([] {
    Random random(14, RandomUse::kTest);
    auto p = Problem<float>::random(random, 3, 21, kStandard);
    p.gain = Matrix<float>(1, 21, 1.0f);
    p.bias = Matrix<float>(1, 21, 0.0f);
    const auto with = layer_norm(kContext, p);
    auto without = room_for(p);
    layer_norm_forward(kContext, p.x.in(), {}, kStandard, without.y.view(), without.saved.view());
    auto a = backward_of(p, without);
    a.gain = {};
    a.dgain = {};
    a.dbias = {};
    layer_norm_backward(kContext, a);
    EXPECT_TRUE(without.y == with.y);
    EXPECT_TRUE(without.dx == with.dx);
  });
}

TEST(LayerNorm, GradientsAddToWhatIsThere) {
  Random random(15, RandomUse::kTest);
  const auto p = Problem<double>::random(random, 3, 21, kStandard);
  const auto once = layer_norm(kContext, p);
  auto twice = once;
  auto a = backward_of(p, twice);
  a.dx_store = Store::kAdd;
  layer_norm_backward(kContext, a);
  for (index c = 0; c < 21; ++c) {
    EXPECT_DOUBLE_EQ(twice.dgain.at(0, c), 2 * once.dgain.at(0, c));
    EXPECT_DOUBLE_EQ(twice.dbias.at(0, c), 2 * once.dbias.at(0, c));
    EXPECT_DOUBLE_EQ(twice.dx.at(2, c), 2 * once.dx.at(2, c));
  }
}

TEST(LayerNorm, WorksInPlace) {
  Random random(16, RandomUse::kTest);
  auto p = Problem<float>::random(random, 3, 21, kStandard);
  const auto expected = layer_norm(kContext, p);
  auto r = expected;
  auto a = backward_of(p, r);
  a.dx = p.dy.view();
  layer_norm_backward(kContext, a);
  EXPECT_TRUE(p.dy == expected.dx);
  layer_norm_forward(kContext, p.x.view(), {p.gain.vec(), p.bias.vec()}, kStandard, p.x.view(),
                     r.saved.view());
  EXPECT_TRUE(p.x == expected.y);
}

TEST(LayerNorm, SameBitsForAnyNumberOfThreads) {
  Random random(17, RandomUse::kTest);
  const auto p = Problem<float>::random(random, 900, 130, kStandard);
  expect_same_for_threads([&](const Context& ctx) { return layer_norm(ctx, p); });
  expect_same_for_threads([&](const Context& ctx) { return rms_norm(ctx, p); });
}

TEST(LayerNorm, NamesTheTensorAndTheAxisInItsErrors) {
  Matrix<float> x(2, 5), gain(1, 4), saved(2, 2), narrow(2, 1);
  EXPECT_THROWS(layer_norm_forward(kContext, x.in(), {gain.vec(), {}}, {}, x.view(), saved.view()),
                kShape, "layer_norm: gain must be [C=5]; it is [4]");
  EXPECT_THROWS(layer_norm_forward(kContext, x.in(), {}, {}, x.view(), narrow.view()), kShape,
                "layer_norm: saved must be [2, 2]; it is [2, 1]");
  EXPECT_THROWS(
      layer_norm_forward(kContext, narrow.in(), {}, kUnbiased, narrow.view(), saved.view()), kShape,
      "layer_norm: the unbiased variant needs at least 2 columns; x is [N=2, C=1]");
}

TEST(LayerNorm, NothingIsDoneForNoRows) {
  Random random(18, RandomUse::kTest);
  const auto r = layer_norm(kContext, Problem<float>::random(random, 0, 5, kStandard));
  EXPECT_EQ(largest(r.dgain.values()), 0);
}

TEST(RmsNorm, ErrorIsAtMostTwiceThatOfThePlainFloat) {
  for_each_isa([] {
    Random random(19, RandomUse::kTest);
    for (const index C : kColumns) {
      const auto p = Problem<float>::random(random, 9, C, {});
      expect_result_no_worse(rms_norm(kContext, p), plain_rms_norm(p),
                             plain_rms_norm(p.as<double>()));
    }
  });
}

TEST(RmsNorm, GradientIsThatOfTheForward) {
  for_each_isa([] {
    Random random(20, RandomUse::kTest);
    for (const index C : {1, 5, 19}) {
      auto p = Problem<double>::random(random, 3, C, {});
      const auto r = rms_norm(kContext, p);
      const auto loss = [&] { return dot(rms_norm(kContext, p).y, p.dy); };
      expect_gradient(p.x, r.dx, loss, "x");
      expect_gradient(p.gain, r.dgain, loss, "gain");
    }
  });
}

TEST(RmsNorm, ARowOfZerosHasFiniteGradients) {
  Random random(21, RandomUse::kTest);
  auto p = Problem<float>::random(random, 2, 5, {});
  p.x = Matrix<float>(2, 5);
  const auto r = rms_norm(kContext, p);
  EXPECT_EQ(largest(r.y.values()), 0);
  for (index c = 0; c < 5; ++c) EXPECT_TRUE(std::isfinite(r.dx.at(1, c)));
}

}  // namespace
}  // namespace fovea

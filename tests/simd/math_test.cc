// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/math_test.cc"
#include "hwy/foreach_target.h"
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

template <class T, class F>
void Map(const T* x, index n, T* y, F&& f) {
  ForEachLane<T>(n,
                 [&](auto lanes, index i) { lanes.Store(f(lanes.d, lanes.Load(x + i)), y + i); });
}

#define FOVEA_MAP(name, function)                                \
  void name(const float* x, index n, float* y) {                 \
    Map(x, n, y, [](auto d, auto v) { return function(d, v); }); \
  }                                                              \
  void name##Double(const double* x, index n, double* y) {       \
    Map(x, n, y, [](auto d, auto v) { return function(d, v); }); \
  }
FOVEA_MAP(MapExp, Exp)
FOVEA_MAP(MapExp2, Exp2)
FOVEA_MAP(MapExp2OfWeight, Exp2OfWeight)
FOVEA_MAP(MapExp2OfWeightFast, Exp2OfWeight<5>)
FOVEA_MAP(MapTanh, Tanh)
#undef FOVEA_MAP

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {
namespace {

HWY_EXPORT(MapExp);
HWY_EXPORT(MapExp2);
HWY_EXPORT(MapExp2OfWeight);
HWY_EXPORT(MapExp2OfWeightFast);
HWY_EXPORT(MapTanh);
HWY_EXPORT(MapExpDouble);
HWY_EXPORT(MapExp2Double);
HWY_EXPORT(MapExp2OfWeightDouble);
HWY_EXPORT(MapExp2OfWeightFastDouble);
HWY_EXPORT(MapTanhDouble);

struct Function {
  std::string name;
  std::function<void(const float*, index, float*)> fast;
  std::function<double(double)> exact;
  double bound;                                         // as math-inl.h states it
  float most = std::numeric_limits<float>::infinity();  // the largest argument
};

std::vector<Function> functions() {
  const auto exp2 = [](double x) { return std::exp2(x); };
  return {
      {"Exp", FOVEA_DISPATCH(MapExp), [](double x) { return std::exp(x); }, 1.05},
      {"Exp2", FOVEA_DISPATCH(MapExp2), exp2, 1.25},
      {"Exp2OfWeight", FOVEA_DISPATCH(MapExp2OfWeight), exp2, 1.25, 60},
      {"Exp2OfWeight<5>", FOVEA_DISPATCH(MapExp2OfWeightFast), exp2, 2.3, 60},
      {"Tanh", FOVEA_DISPATCH(MapTanh), [](double x) { return std::tanh(x); }, 1.35},
  };
}

// What a result is compared with: the exact one, and how many units in the last place of float a
// difference of 1 is.
struct Exact {
  explicit Exact(double exact) : value(exact) {
    const auto rounded = std::bit_cast<std::uint32_t>(static_cast<float>(exact));
    const std::uint64_t exponent = std::max(rounded >> 23 & 255, 1U);  // 1: also of subnormals
    units = std::bit_cast<double>((1023 + 127 + 23 - exponent) << 52);
  }

  // Right if both are finite.
  double distance(float got) const { return std::fabs(got - value) * units; }

  double ulps(float got) const {
    const auto rounded = static_cast<float>(value);
    if (std::isnan(value) || std::isnan(got)) {
      return std::isnan(value) == std::isnan(got) ? 0 : HUGE_VAL;
    }
    if (!std::isinf(rounded) && !std::isinf(got)) return distance(got);
    // One step from overflow either side is a matter of rounding.
    if (got == rounded) return 0;
    constexpr double kMax = std::numeric_limits<float>::max();
    const double g = std::isinf(got) ? std::copysign(0x1p128, got) : got;
    return std::fabs(g - std::clamp(value, -0x1p128, 0x1p128)) / (0x1p128 - kMax);
  }

  double value, units;
};

struct Worst {
  double error = 0;
  float at = 0;

  void see(double other, float x) {
    if (other > error) error = other, at = x;
  }
};

// One function on every instruction set.
struct Kernels {
  Function function;
  std::vector<Isa> isas;
  std::vector<std::function<void(const float*, index, float*)>> fast;
};

std::vector<Kernels> kernels() {
  std::vector<Kernels> all;
  for_each_isa([&] {
    const std::vector<Function> here = functions();
    if (all.empty()) {
      for (const Function& f : here) all.push_back({f, {}, {}});
    }
    for (std::size_t i = 0; i < here.size(); ++i) {
      all[i].isas.push_back(current_isa());
      all[i].fast.push_back(here[i].fast);
    }
  });
  return all;
}

// The largest error for each instruction set over the bit patterns first, first + step, ... below
// `end`. The exact value is computed once for all of them: that takes most of the time.
std::vector<Worst> worst_between(const Kernels& k, std::uint64_t first, std::uint64_t end,
                                 std::uint32_t step) {
  constexpr std::size_t kBatch = 4099;  // odd: tails take part
  std::vector<Worst> worst(k.isas.size());
  std::vector<float> x, y(kBatch);
  std::vector<Exact> exact;
  for (std::uint64_t bits = first; bits < end;) {
    x.clear(), exact.clear();
    for (; x.size() < kBatch && bits < end; bits += step) {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      x.push_back(std::min(value, k.function.most));  // NaN stays
      exact.emplace_back(k.function.exact(static_cast<double>(x.back())));
    }
    for (std::size_t isa = 0; isa < worst.size(); ++isa) {
      k.fast[isa](x.data(), static_cast<index>(x.size()), y.data());
      for (std::size_t i = 0; i < x.size(); ++i) {
        // Few are worse than all before, or not finite: only those are looked at closely.
        if (exact[i].distance(y[i]) <= worst[isa].error) continue;
        worst[isa].see(exact[i].ulps(y[i]), x[i]);
      }
    }
  }
  return worst;
}

// Bit patterns of float, `step` apart: all signs, exponents, infinities and NaN.
void expect_bounds(std::uint32_t step) {
  constexpr std::uint64_t kAll = std::uint64_t{1} << 32;
  const std::uint64_t threads = std::max(1u, std::thread::hardware_concurrency());
  const std::uint64_t share = (kAll / step / threads + 1) * step;
  for (const Kernels& k : kernels()) {
    std::vector<std::future<std::vector<Worst>>> parts;
    for (std::uint64_t first = 0; first < kAll; first += share) {
      parts.push_back(std::async(std::launch::async, worst_between, std::cref(k), first,
                                 std::min(first + share, kAll), step));
    }
    std::vector<Worst> worst(k.isas.size());
    for (auto& part : parts) {
      const std::vector<Worst> seen = part.get();
      for (std::size_t i = 0; i < worst.size(); ++i) worst[i].see(seen[i].error, seen[i].at);
    }
    for (std::size_t i = 0; i < worst.size(); ++i) {
      const std::string name = k.function.name + " " + std::string(isa_name(k.isas[i]));
      EXPECT_LE(worst[i].error, k.function.bound) << name << " at " << worst[i].at;
      testing::Test::RecordProperty(name, std::to_string(worst[i].error));
    }
  }
}

TEST(Math, ErrorIsBoundedOverAllFloats) { expect_bounds(5003); }

// All 2^32 arguments on every instruction set: some minutes. `make test-long` runs it.
TEST(Math, DISABLED_ErrorIsBoundedOverEveryFloat) { expect_bounds(1); }

TEST(Math, SpecialValues) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kDenormal = std::numeric_limits<float>::denorm_min();
  const std::vector<float> special = {
      0.0f,       -0.0f,     1.0f,     -1.0f,   kInf,    -kInf,   kDenormal,
      -kDenormal, 88.72283f, 88.7229f, -87.4f,  -103.9f, -104.0f, 127.99999f,
      128.0f,     -126.5f,   -149.0f,  -150.5f, 1e30f,   -1e30f,  std::nanf("")};
  for_each_isa([&] {
    for (const Function& f : functions()) {
      std::vector<float> x = special, y(x.size());
      for (float& value : x) value = std::min(value, f.most);
      f.fast(x.data(), static_cast<index>(x.size()), y.data());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact = f.exact(static_cast<double>(x[i]));
        EXPECT_LE(Exact(exact).ulps(y[i]), f.bound) << f.name << "(" << x[i] << ") = " << y[i];
        if (exact == 0) {
          EXPECT_EQ(std::signbit(y[i]), std::signbit(exact)) << f.name << x[i];
        }
      }
    }
  });
}

TEST(Math, PowersOfTwoAreExact) {
  const auto expect_exact = [](auto kernel, int most) {
    for (int n = -149; n <= most; ++n) {
      const auto x = static_cast<float>(n);
      float y = 0;
      kernel(&x, 1, &y);
      EXPECT_EQ(y, std::ldexp(1.0f, n));
    }
  };
  for_each_isa([&] {
    expect_exact(FOVEA_DISPATCH(MapExp2), 127);
    expect_exact(FOVEA_DISPATCH(MapExp2OfWeight), 60);
  });
}

TEST(Math, WhatIsNoWeightStaysLarge) {
  const std::vector<float> x = {60.5f, 127.0f, 128.0f, 200.0f, 1e30f, HUGE_VALF};
  std::vector<float> y(x.size());
  for_each_isa([&] {
    FOVEA_DISPATCH(MapExp2OfWeight)(x.data(), static_cast<index>(x.size()), y.data());
    for (const float value : y) EXPECT_GE(value, 0x1p60f);
  });
}

TEST(Math, DoubleIsTheCLibrary) {
  std::vector<double> x, y(101);
  for (int i = 0; i < 101; ++i) x.push_back(0.01 + 0.37 * i);
  const auto expect = [&](auto kernel, double (*exact)(double)) {
    kernel(x.data(), 101, y.data());
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_DOUBLE_EQ(y[i], exact(x[i]));
  };
  for_each_isa([&] {
    expect(FOVEA_DISPATCH(MapExpDouble), std::exp);
    expect(FOVEA_DISPATCH(MapExp2Double), std::exp2);
    expect(FOVEA_DISPATCH(MapExp2OfWeightDouble), std::exp2);
    expect(FOVEA_DISPATCH(MapExp2OfWeightFastDouble), std::exp2);
    expect(FOVEA_DISPATCH(MapTanhDouble), std::tanh);
  });
}

}  // namespace
}  // namespace fovea
#endif  // HWY_ONCE

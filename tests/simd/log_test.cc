// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/log_test.cc"
#include "hwy/foreach_target.h"
//
#include "fovea/simd/log-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

void LogAll(const double* x, index n, double* y) {
  constexpr Tag<double> d;
  for (index i = 0; i < n; i += kLanes<double>) {
    hn::StoreU(LogOfPositive(hn::LoadU(d, x + i)), d, y + i);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {
namespace {

HWY_EXPORT(LogAll);

double ulp_of(double x) {
  const double size = std::abs(x);
  return std::nextafter(size, std::numeric_limits<double>::infinity()) - size;
}

// All magnitudes that a sum of weights can have, and the neighbourhood of 1.
TEST(LogOfPositive, IsWithinFourUlp) {
  std::vector<double> values;
  for (int i = 0; i < 40000; ++i) values.push_back(std::exp2(-149 + 277 * i / 40000.0));
  for (int i = -400; i < 400; ++i) values.push_back(1 + i * 0x1p-20);
  while (values.size() % 8 != 0) values.push_back(1);
  for_each_isa([&] {
    std::vector<double> logs(values.size());
    FOVEA_DISPATCH(LogAll)(values.data(), static_cast<index>(values.size()), logs.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double exact = std::log(values[i]);
      ASSERT_NEAR(logs[i], exact, 4 * ulp_of(exact)) << "log(" << values[i] << ")";
    }
  });
}

}  // namespace
}  // namespace fovea
#endif  // HWY_ONCE

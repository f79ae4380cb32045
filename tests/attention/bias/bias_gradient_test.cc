// SPDX-License-Identifier: Apache-2.0
// Every bias of the table: gradients of the fused pass against central differences, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/attention/support/table.h"

namespace fovea::testing {
namespace {

constexpr Sizes kSizes{.B = 2, .T = 140, .S = 140, .H = 2, .G = 1, .D = 4, .Dv = 3};

class Checked {
 public:
  explicit Checked(const BiasRow<double>& row) : row_(row) {
    for (auto& bias : parts_.biases) std::fill(bias.dx.begin(), bias.dx.end(), 0.0);
    call_.run(attention());
  }

  void expect_gradients() {
    const Call<double> call = call_;
    expect("q", call_.q, call.dq);
    expect("k", call_.k, call.dk);
    const PartData<double> parts = parts_;
    expect("learned", parts_.learned, parts.dlearned);
    for (std::size_t n = 0; n < parts.biases.size(); ++n) {
      expect(parts.biases[n].part().tensor, parts_.biases[n].x, parts.biases[n].dx);
    }
  }

 private:
  Attention<double> attention() {
    return {.bias = row_.make(parts_),
            .mask = mask::Causal() & mask::Window(100, 0),
            .dropout = {.probability = 0.2}};
  }
  double loss() {
    call_.forward(attention());
    double sum = 0;
    for (std::size_t i = 0; i < call_.o.size(); ++i) sum += call_.o[i] * call_.d_o[i];
    return sum;
  }
  // Up to forty places of x.
  template <class Values>
  void expect(std::string_view name, Values& x, const Values& dx) {
    double largest = 0;
    for (const double gradient : dx) largest = std::max(largest, std::abs(gradient));
    if (largest == 0) return;  // nothing that this bias learns
    for (std::size_t i = 0; i < x.size(); i += std::max<std::size_t>(1, x.size() / 40)) {
      const double old = x[i], h = 1e-5;
      x[i] = old + h;
      const double above = loss();
      x[i] = old - h;
      const double below = loss();
      x[i] = old;
      ASSERT_NEAR((above - below) / (2 * h), dx[i], 1e-7 * largest) << name << " at " << i;
    }
  }

  const BiasRow<double>& row_;
  PartData<double> parts_{.most = kSizes.S};
  Call<double> call_{kSizes, 3};
};

TEST(EveryBias, GradientIsThatOfTheFusedForward) {
  for (const BiasRow<double>& row : bias_table<double>()) {
    SCOPED_TRACE(row.name);
    Checked(row).expect_gradients();
  }
}

}  // namespace
}  // namespace fovea::testing

// SPDX-License-Identifier: Apache-2.0
// The whole backward of a call against central differences of its forward.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "tests/attention/support/call.h"

namespace fovea::testing {

/// Numbers that the call reads, and the gradient that its backward wrote for them.
struct CheckedGradient {
  const char* name;
  std::vector<double>& x;
  const std::vector<double>& dx;
};

/// Runs the call, and compares dq, dk, dv and `more` with the differences of
/// sum o . d_o, and of sum lse d_lse if the call has d_lse.
inline void expect_gradients(Call<double>& call, const Attention<double>& attention,
                             const std::vector<CheckedGradient>& more = {},
                             Method method = Method::kFused, double bound = 1e-7) {
  call.run(attention, method);
  const auto loss = [&] {
    Call<double> other = call;
    other.forward(attention, method);
    double sum = 0;
    for (std::size_t i = 0; i < other.o.size(); ++i) sum += other.o[i] * call.d_o[i];
    for (std::size_t i = 0; i < call.d_lse.size(); ++i) {
      if (std::isfinite(other.lse[i])) sum += other.lse[i] * call.d_lse[i];
    }
    return sum;
  };
  std::vector<CheckedGradient> all = {
      {"q", call.q, call.dq}, {"k", call.k, call.dk}, {"v", call.v, call.dv}};
  for (const CheckedGradient& one : more) all.push_back(one);
  for (const auto& [name, x, dx] : all) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double old = x[i], step = 1e-5;
      x[i] = old + step;
      const double above = loss();
      x[i] = old - step;
      const double below = loss();
      x[i] = old;
      EXPECT_NEAR((above - below) / (2 * step), dx[i], bound) << name << " " << i;
    }
  }
}

}  // namespace fovea::testing

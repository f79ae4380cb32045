// SPDX-License-Identifier: Apache-2.0
// What tests of layers share: inputs, forward passes and gradient checks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/grad/ops.h"
#include "fovea/nn/module.h"
#include "fovea/reference/gradcheck.h"
#include "tests/support/part_range.h"
#include "tests/support/vectors.h"

namespace fovea {

/// Uniform in [-1, 1), the same every time.
template <class T = float>
std::vector<T> noise(index n, std::uint64_t number = 0) {
  Random random(5, RandomUse::kTest, number);
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& x : values) x = static_cast<T>(random.uniform(-1, 1));
  return values;
}

/// f on an inference tape, as numbers.
template <class T = float>
std::vector<T> output_of(const std::function<Variable(Tape&)>& f, int threads = 2) {
  Tape tape(Context(threads), TapeMode::kInference);
  return to_vector(f(tape).value<T>());
}

/// Gives every parameter noise, so that zeros and ones of a fresh layer hide nothing.
inline void randomise(ParameterSet& set) {
  std::uint64_t number = 100;
  for (Parameter* p : set.parameters()) {
    with_type(p->value.dtype(), [&]<class T>(std::type_identity<T>) {
      const auto values = noise<T>(p->value.size(), number++);
      std::copy(values.begin(), values.end(), p->value.vec<T>().begin());
      if (!has_range(p->name)) return;
      for (T& x : p->value.vec<T>()) x = std::abs(x) + T{0.1};
    });
    ++p->version;
  }
}

/// All parameters of a layer in float64, against central differences of sum(f^2).
inline void expect_gradients(ParameterSet& set, const std::function<Variable(Tape&)>& f) {
  randomise(set);
  const auto report = check_gradients(Context(2), set.parameters(), [&](Tape& tape) {
    const Variable y = f(tape);
    return sum(tape, multiply(tape, y, y));
  });
  EXPECT_LE(report.error, 1e-7) << report.where;
}

inline ParameterSet float64_set() { return ParameterSet({.seed = 1, .dtype = DType::kFloat64}); }

}  // namespace fovea

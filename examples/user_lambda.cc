// SPDX-License-Identifier: Apache-2.0
// A score function of one's own as a lambda: s -> cap tanh(s / cap) - decay |p - j|, with both
// numbers learned. It runs fused and by vectors in both directions; its gradient follows from it.
#include <array>

#include "examples/gradient_check.h"

int main() {
  using example::gradient_error;
  using fovea::Place;
  example::Problem problem;
  std::array<double, 2> p = {2.5, 0.03}, gradient = {};
  const auto soft = fovea::bias::of(fovea::bias::Learned<double, 2>{p, gradient},
                                    [](auto s, const Place auto& at, const auto& learned) {
                                      return learned[0] * tanh(s / learned[0]) -
                                             learned[1] * abs(at.position() - at.j);
                                    });
  const fovea::Attention<double> attention{.bias = soft, .mask = fovea::mask::Causal()};
  problem.run(attention, true);
  const auto loss = [&] { return problem.run(attention); };
  const double error = std::max({gradient_error("parameters", p, gradient, loss),
                                 gradient_error("q", problem.q, problem.dq, loss),
                                 gradient_error("k", problem.k, problem.dk, loss)});
  return error <= 1e-7 ? 0 : 1;
}

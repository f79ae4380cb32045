// SPDX-License-Identifier: Apache-2.0
// A score function of one's own that reads tables: a learned number for each head and each kind of
// pair, as Graphormer has for the shortest paths of a graph.
// It runs fused and by vectors in both directions; the gradient of the table follows from it.
#include <array>
#include <cstdint>

#include "examples/gradient_check.h"

int main() {
  using namespace fovea;
  using example::gradient_error;
  example::Problem problem;
  constexpr fovea::index kKinds = 6;
  std::vector<std::int32_t> kinds;  // [T, S]
  for (fovea::index i = 0; i < problem.T; ++i) {
    for (fovea::index j = 0; j < problem.S; ++j) {
      kinds.push_back(static_cast<std::int32_t>((i * i + 3 * j) % kKinds));
    }
  }
  std::array<double, kKinds> values = {.3, -.2, .5, .1, -.4, .2}, gradient = {};
  const Captured<std::int32_t> kind(kinds.data(), {problem.T, problem.S});
  const Captured<double> table(values.data(), {1, kKinds}, gradient.data());
  const AttentionInputs<double> in{problem.view(problem.q, problem.T),
                                   problem.view(problem.k, problem.S),
                                   problem.view(problem.v, problem.S)};
  const Attention<double> attention{
      .bias = bias::traced<double>(in.sizes(),
                                   [&](TracedNumber s, const TracedPlace& at) {
                                     return s + table(at.head, kind(at.i, at.j));
                                   }),
      .mask = mask::traced(in.sizes(), [](const TracedPlace& at) { return at.j <= at.i + 40; })};
  problem.run(attention, true);
  const auto loss = [&] { return problem.run(attention); };
  const double error = std::max({gradient_error("table", values, gradient, loss),
                                 gradient_error("q", problem.q, problem.dq, loss),
                                 gradient_error("k", problem.k, problem.dk, loss)});
  return error <= 1e-7 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// A score function of one's own with a learned parameter, fused forward and backward:
//   s -> temperature * tanh(s)
#include <cmath>

#include "examples/gradient_check.h"

namespace {

using fovea::index;

class TanhTemperature final : public fovea::ScoreFunction<double> {
 public:
  TanhTemperature(const double& temperature, double& gradient)
      : temperature_(temperature), gradient_(gradient) {}
  double value(const fovea::ScoreSite&, double s) const override {
    return temperature_ * std::tanh(s);
  }
  double derivative(const fovea::ScoreSite&, double s) const override {
    return temperature_ * (1 - std::tanh(s) * std::tanh(s));
  }
  index gradient_size() const override { return 1; }
  void add_parameters(const fovea::ScoreSite&, double s, double ds, double* sums) const override {
    sums[0] += ds * std::tanh(s);
  }
  void store_gradient(const double* sums, index heads) const override {
    gradient_ = 0;
    for (index h = 0; h < heads; ++h) gradient_ += sums[h];
  }
  std::string name() const override { return "tanh temperature"; }

 private:
  const double& temperature_;
  double& gradient_;
};

}  // namespace

int main() {
  using example::gradient_error;
  example::Problem problem;
  std::vector<double> temperature = {2.5}, gradient = {0};
  const fovea::Attention<double> attention{.bias = TanhTemperature(temperature[0], gradient[0]),
                                           .mask = fovea::mask::Causal()};
  problem.run(attention, true);
  const auto loss = [&] { return problem.run(attention); };
  const double error = std::max({gradient_error("temperature", temperature, gradient, loss),
                                 gradient_error("q", problem.q, problem.dq, loss),
                                 gradient_error("k", problem.k, problem.dk, loss),
                                 gradient_error("v", problem.v, problem.dv, loss)});
  return error <= 1e-7 ? 0 : 1;
}

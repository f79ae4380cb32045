// SPDX-License-Identifier: Apache-2.0
// Relative positions on the values (Shaw, Uszkoreit, Vaswani 2018, eq. 3), written outside the
// library: a vector that joins v_j because of where it stands.
//   o_i = sum of w_ij (v_j + a[clip(i - j, -s, s)])
#include <algorithm>

#include "examples/gradient_check.h"

namespace {

using fovea::index;
using Values = std::vector<double>;

class ShawValues final : public fovea::ValuePart<double> {
 public:
  /// Table a and its gradient [2 clip + 1, Dv], shared by the heads.
  ShawValues(index clip, const Values& table, Values& gradient)
      : clip_(clip), table_(table), gradient_(gradient) {}

  void vector(const fovea::ScoreSite& site, fovea::Vec<double> to) const override {
    std::copy_n(table_.data() + row(site) * to.size, to.size, to.data);
  }
  void add_parameters(const fovea::ScoreSite& site, fovea::Vec<const double> dvector,
                      double* sums) const override {
    double* da = sums + row(site) * dvector.size;
    for (index d = 0; d < dvector.size; ++d) da[d] += dvector[d];
  }
  index gradient_size() const override { return static_cast<index>(table_.size()); }
  void store_gradient(const double* sums, index heads) const override {
    std::fill(gradient_.begin(), gradient_.end(), 0.0);
    for (index n = 0; n < heads * gradient_size(); ++n) {
      gradient_[static_cast<std::size_t>(n % gradient_size())] += sums[n];
    }
  }
  std::string name() const override { return "shaw values"; }

 private:
  index row(const fovea::ScoreSite& site) const {
    return std::clamp(site.position() - site.j, -clip_, clip_) + clip_;
  }

  index clip_;
  const Values& table_;
  Values& gradient_;
};

}  // namespace

int main() {
  using example::gradient_error;
  example::Problem problem;
  Values table = example::Problem::waves(9 * problem.D, 0.47), gradient(table.size());
  const fovea::Attention<double> attention{.mask = fovea::mask::Window(40, 20),
                                           .dropout = {.probability = 0.2},
                                           .values = ShawValues(4, table, gradient)};
  problem.run(attention, true);
  const auto loss = [&] { return problem.run(attention); };
  const double error = std::max({gradient_error("table", table, gradient, loss),
                                 gradient_error("q", problem.q, problem.dq, loss),
                                 gradient_error("k", problem.k, problem.dk, loss),
                                 gradient_error("v", problem.v, problem.dv, loss)});
  return error <= 1e-7 ? 0 : 1;
}

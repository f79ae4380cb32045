// SPDX-License-Identifier: Apache-2.0
// Relative positions on the keys (Shaw, Uszkoreit, Vaswani 2018, eq. 4), written outside the
// library: a part that reads the row of q behind a score, and adds to its gradient.
//   score(i, j) += scale q_i . a[clip(i - j, -s, s)]
#include <algorithm>

#include "examples/gradient_check.h"

namespace {

using fovea::index;
using Values = std::vector<double>;

class ShawKeys final : public fovea::BiasPart<double> {
 public:
  /// Table a and its gradient [2 clip + 1, D].
  ShawKeys(index clip, const Values& table, Values& gradient)
      : clip_(clip), table_(table), gradient_(gradient) {}

  double apply_one(const fovea::ScoreSite& site, const fovea::ScoreRows<double>& rows,
                   double score) const override {
    const double* a = table_.data() + row(site) * rows.q.size;
    double sum = 0;
    for (index d = 0; d < rows.q.size; ++d) sum += rows.q[d] * a[d];
    return score + rows.scale * sum;
  }
  double pull_one(const fovea::ScoreSite& site, const fovea::ScoreRows<double>& rows, double,
                  double dscore, const fovea::ScoreGradients<double>& gradients) const override {
    const double* a = table_.data() + row(site) * rows.q.size;
    double* da = gradients.parameters + row(site) * rows.q.size;
    for (index d = 0; d < rows.q.size; ++d) {
      gradients.dq[d] += rows.scale * dscore * a[d];
      da[d] += rows.scale * dscore * rows.q[d];
    }
    return dscore;
  }
  bool needs_scores() const override { return false; }
  index gradient_size() const override { return static_cast<index>(table_.size()); }
  void store_gradient(const double* sums, index heads) const override {
    std::fill(gradient_.begin(), gradient_.end(), 0.0);
    for (index n = 0; n < heads * gradient_size(); ++n) {
      gradient_[static_cast<std::size_t>(n % gradient_size())] += sums[n];
    }
  }
  std::string name() const override { return "shaw keys"; }

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
  const fovea::Attention<double> attention{.bias = ShawKeys(4, table, gradient),
                                           .mask = fovea::mask::Window(40, 20)};
  problem.run(attention, true);
  const auto loss = [&] { return problem.run(attention); };
  const double error = std::max({gradient_error("table", table, gradient, loss),
                                 gradient_error("q", problem.q, problem.dq, loss),
                                 gradient_error("k", problem.k, problem.dk, loss),
                                 gradient_error("v", problem.v, problem.dv, loss)});
  return error <= 1e-7 ? 0 : 1;
}

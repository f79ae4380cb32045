// SPDX-License-Identifier: Apache-2.0
// Relative positions on the keys (Shaw, Uszkoreit, Vaswani 2018, eq. 4), written outside the
// library: a part that needs the rows of q behind a tile, and adds to their gradient.
//   score(i, j) += q_i . a[clip(i - j, -s, s)] / sqrt(D)
#include <algorithm>
#include <cmath>

#include "examples/gradient_check.h"

namespace {

using fovea::index;
using Rows = std::vector<double>;

class ShawKeys final : public fovea::BiasPart<double> {
 public:
  /// Table a and its gradient [2 clip + 1, D]; q [T, D], for the definition.
  ShawKeys(index clip, index D, const Rows& table, Rows& gradient, const Rows& q)
      : clip_(clip), D_(D), table_(table), gradient_(gradient), q_(q) {}

  double value(const fovea::ScoreSite& site, double score) const override {
    return score + dot(q_.data() + (site.sequence.query_row + site.i) * D_, row(site));
  }
  void apply(const fovea::TileSite& site, const fovea::TileRows<double>& rows,
             const fovea::ScoreTile<double>& tile) const override {
    for (index r = 0; r < site.queries; ++r) {
      for (index c = 0; c < site.keys; ++c) tile.at(r, c) += dot(rows.q[r], row(site.at(r, c)));
    }
  }
  void pull(const fovea::TileSite& site, const fovea::TileRows<double>& rows,
            const fovea::ScoreTile<double>&, const fovea::ScoreTile<double>& dscores,
            const fovea::TileGradients<double>& gradients) const override {
    for (index r = 0; r < site.queries; ++r) {
      for (index c = 0; c < site.keys; ++c) {
        const double ds = dscores.at(r, c) / std::sqrt(static_cast<double>(D_));
        if (ds == 0) continue;  // dropped by the mask
        const double* a = row(site.at(r, c));
        double* da = gradients.parameters + (a - table_.data());
        for (index d = 0; d < D_; ++d) {
          gradients.dq[r][d] += ds * a[d];
          da[d] += ds * rows.q[r][d];
        }
      }
    }
  }
  bool needs_scores() const override { return false; }
  index gradient_size() const override { return (2 * clip_ + 1) * D_; }
  void store_gradient(const double* sums, index heads) const override {
    std::fill(gradient_.begin(), gradient_.end(), 0.0);
    for (index n = 0; n < heads * gradient_size(); ++n) {
      gradient_[static_cast<std::size_t>(n % gradient_size())] += sums[n];
    }
  }
  std::string name() const override { return "shaw keys"; }

 private:
  const double* row(const fovea::ScoreSite& site) const {
    const index distance = std::clamp(site.position() - site.j, -clip_, clip_);
    return table_.data() + (distance + clip_) * D_;
  }
  double dot(const double* q, const double* a) const {
    double sum = 0;
    for (index d = 0; d < D_; ++d) sum += q[d] * a[d];
    return sum / std::sqrt(static_cast<double>(D_));
  }

  index clip_, D_;
  const Rows& table_;
  Rows& gradient_;
  const Rows& q_;
};

}  // namespace

int main() {
  using example::gradient_error;
  example::Problem problem;
  Rows table = example::Problem::waves(9 * problem.D, 0.47), gradient(table.size());
  const fovea::Attention<double> attention{
      .bias = ShawKeys(4, problem.D, table, gradient, problem.q),
      .mask = fovea::mask::Window(40, 20)};
  problem.run(attention, true);
  const auto loss = [&] { return problem.run(attention); };
  const double error = std::max({gradient_error("table", table, gradient, loss),
                                 gradient_error("q", problem.q, problem.dq, loss),
                                 gradient_error("k", problem.k, problem.dk, loss),
                                 gradient_error("v", problem.v, problem.dv, loss)});
  return error <= 1e-7 ? 0 : 1;
}

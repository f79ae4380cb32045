// SPDX-License-Identifier: Apache-2.0
// A mixture of experts (Shazeer et al. 2017, "Outrageously large neural networks: the
// sparsely-gated mixture-of-experts layer"), as GPT-OSS has it: of several feed-forward networks a
// row takes those with the highest scores, and the sum of their results, weighted by the softmax of
// these scores. A network is
//
//   W2 (min(g, 7) sigmoid(1.702 min(g, 7)) (clamp(u, -7, 7) + 1)) + b2,
//
// where the rows of W1 x + b1 are g and u in turn: g of the first hidden column, u of it, g of the
// second.
#pragma once

#include "fovea/grad/ops.h"
#include "fovea/nn/module.h"

namespace fovea {

/// Which experts rows take.
struct ChosenExperts {
  Variable weights;             ///< [N, k]
  Vec<const std::int32_t> ids;  ///< [N k] of each row, the highest score first
};

/// The k columns of scores [N, E] with the highest scores, of equal ones the first, and the softmax
/// of these. Throws Error(kShape) unless 1 <= k <= E.
ChosenExperts choose_experts(Tape& tape, Variable scores, index k);

/// Of E networks: in [E 2 F, C], in_bias [E, 2 F], out [E C, F], out_bias [E, C].
struct ExpertWeights {
  Variable in, in_bias, out, out_bias;
};

/// The weighted sum of what the chosen networks make of each row of x [N, C]: [N, C]. The rows are
/// sorted by their experts, N k in all, so no size depends on what was chosen. No bit of a row
/// depends on the others. Throws Error(kShape).
Variable experts(Tape& tape, Variable x, const ChosenExperts& chosen, const ExpertWeights& weights);

struct ExpertsOptions {
  index width = 0;
  index hidden = 0;
  index experts = 0;
  index chosen = 0;
  Init input_init = Init::normal(kInitDeviation);
  Init output_init = Init::normal(kInitDeviation);
};

/// Parameters: router.weight [E, C], router.bias [E], in.weight [E 2 F, C], in.bias [E, 2 F],
/// out.weight [E C, F], out.bias [E, C].
class Experts {
 public:
  Experts(const ExpertsOptions& options, const ParameterScope& scope);

  /// [N, C] -> [N, C].
  Variable forward(Tape& tape, Variable x) const;

 private:
  index chosen_;
  Parameter *router_, *router_bias_, *in_, *in_bias_, *out_, *out_bias_;
};

}  // namespace fovea

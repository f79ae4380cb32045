// SPDX-License-Identifier: Apache-2.0
// The plan of a call as `fovea attention --plan` shows it.
#pragma once

#include <string>
#include <vector>

#include "fovea/operator/run_attention.h"

namespace fovea {

struct PlannedAttention {
  AttentionPlan plan;
  std::vector<std::string> picture;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kernel", plan.kernel, "what computes");
    visit("isa", plan.isa, "instruction set");
    visit("score", plan.score, "how a query and a key become a score");
    visit("mask", plan.mask, "what is kept");
    visit("bias", plan.bias, "what is done to scores");
    visit("norm", plan.norm, "how scores become weights");
    visit("dropout", plan.dropout, "probability of dropping a weight");
    visit("values", plan.values, "value parts");
    visit("observe", plan.observe, "observers");
    visit("packed_sequences", plan.packed_sequences, "0: the batch is not packed");
    visit("tiles", plan.tiles, "of the whole rectangles");
    visit("tiles_kept", plan.tiles_kept, "of these, computed");
    visit("tiles_masked", plan.tiles_masked, "of these, looked at score by score");
    visit("picture", picture, "of the first sequence and head");
    visit("kept_scores", plan.kept_scores, "in the tiles that are computed");
    visit("forward_flops", plan.forward_flops, "of products");
    visit("backward_flops", plan.backward_flops, "of products");
    visit("scratch_bytes", plan.scratch_bytes, "beyond the tensors");
  }
};

/// Throws as run_attention does.
inline PlannedAttention planned_attention(const Context& context, const AttentionSettings& settings,
                                          const AttentionTensors& tensors,
                                          const MoreParts* more = nullptr) {
  return {plan_attention(context, settings, tensors, more),
          picture_attention(settings, tensors, more)};
}

}  // namespace fovea

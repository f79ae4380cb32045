// SPDX-License-Identifier: Apache-2.0
#include "fovea/reference/optimizers.h"

namespace fovea::reference {

void lion(std::span<const LionSlot<double>> slots, const AdamWStep& step) {
  const AdamWOptions& o = step.options;
  for (const LionSlot<double>& slot : slots)
    for (index i = 0; i < slot.value.size; ++i) {
      const double g = step.gradient_scale * slot.gradient[i];
      const double c = o.beta1 * slot.m[i] + (1 - o.beta1) * g;
      const double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
      slot.m[i] = o.beta2 * slot.m[i] + (1 - o.beta2) * g;
      slot.value[i] -= o.lr * (sign + slot.decay * o.weight_decay * slot.value[i]);
    }
}

}  // namespace fovea::reference

// SPDX-License-Identifier: Apache-2.0
// The optimizers but AdamW (reference/kernels.h) in plain loops, in double.
#pragma once

#include <span>

#include "fovea/base/view.h"
#include "fovea/kernel/lion.h"
#include "fovea/kernel/muon.h"

namespace fovea::reference {

void lion(std::span<const LionSlot<double>> slots, const AdamWStep& step);

void orthogonalise(Rows<const double> x, Rows<double> out);
void muon(const MuonSlot<double>& slot, const AdamWStep& step);

}  // namespace fovea::reference

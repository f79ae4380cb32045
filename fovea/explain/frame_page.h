// SPDX-License-Identifier: Apache-2.0
// The parts of a page that explain numbers: maps over time and over joints, and saliency.
#pragma once

#include "fovea/explain/explanation.h"
#include "fovea/report/attention_page.h"

namespace fovea {

/// Saliency of more numbers than this is shown as sums over time steps and over joints alone.
inline constexpr std::size_t kMostPairValues = 20'000;

/// Adds texts, maps, saliency and facts of a sample. With joints, a layer has a map of the means
/// and then one for each joint, or time step.
void add_sample(const Explanation& explanation, AttentionPage& page);

}  // namespace fovea

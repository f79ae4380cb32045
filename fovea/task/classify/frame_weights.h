// SPDX-License-Identifier: Apache-2.0
// Which time steps and joints a model of numbers looked at.
#pragma once

#include <vector>

#include "fovea/base/context.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/tensor/named_tensor.h"

namespace fovea {

/// Float32 arrays, a row for each sample of the set and a column for each of `steps` time steps
/// (the most that a sample has), with joints also an axis of these; 0 beyond the end of a sample
/// and where --max-length cuts it:
///
///   pooling      of attention as pooling: the weight of each row; those of a sample sum to 1
///   attention_N  of attention N of the encoder, from 0: the mean of the weights that a row
///   receives
///                from the queries of its sequence, over all heads. Those of a sequence sum to 1:
///                of a sample over time, with joints of each joint over time, or, with :joints in
///                --encoder, of the joints of a time step
///   time         [samples, steps]  the share of each time step in `pooling`, or else in the last
///                attention over time; absent if there is neither
///   joints       [samples, joints] the share of each joint in `pooling`, or else in the last
///                attention over joints; absent if there is neither
///
/// The bits of a sample do not depend on the others. Throws kUsage for a model without attention.
std::vector<NamedTensor> frame_weights(const Context& context, const LoadedClassifier& model,
                                       const FrameSet& set, index steps);

}  // namespace fovea

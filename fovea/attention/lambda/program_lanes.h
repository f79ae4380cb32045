// SPDX-License-Identifier: Apache-2.0
// A planned program, compiled once for each head that a thread computes.
#pragma once

#include "fovea/attention/lambda/compiled_lanes.h"
#include "fovea/attention/lambda/program_tape.h"

namespace fovea::detail {

/// What a program is compiled for.
enum class LanesFor {
  kScores,     ///< the new scores
  kGradients,  ///< their gradients
  kMask,       ///< -infinity where the result is 0, else the score
};

/// The lanes of this thread for a head; null if the program does not fit into them. Valid until the
/// thread asks for others a few times.
template <class T>
const CompiledLanes<T>* lanes_of(const PlannedProgram& program, LanesFor use,
                                 const Sequence& sequence, index head);

}  // namespace fovea::detail

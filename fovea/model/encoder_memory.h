// SPDX-License-Identifier: Apache-2.0
// Predicts the memory that the layers of a model take besides their parameters, before they are
// made.
#pragma once

#include <vector>

#include "fovea/model/encoder_scratch.h"
#include "fovea/model/encoder_sizes.h"

namespace fovea {

/// The numbers that a tape keeps for each token of what TextEncoder computes.
double encoder_columns(const EncoderConfig& config, const std::vector<SizedStage>& stages,
                       const TapeLoad& load);
/// The numbers for each token in the gradients that exist at once.
double encoder_gradient_columns(const EncoderConfig& config, const std::vector<SizedStage>& stages,
                                const TapeLoad& load);

struct WeightShape {
  index out, in;
  bool in_steps = false;  ///< of recurrent steps, which are float32 in every precision
};

/// Bytes of the packed copies that products read instead of a weight (PackedWeight): of W^T for the
/// forward pass and, with kTrain, also of W for the backward pass where its rows are far apart or
/// rounded. A training step of few tokens reads its weights in place.
double packed_bytes(const WeightShape& weight, const TapeLoad& load);
/// The same of all weights of the encoder.
double encoder_packed_bytes(const EncoderConfig& config, const std::vector<SizedStage>& stages,
                            const TapeLoad& load);

}  // namespace fovea

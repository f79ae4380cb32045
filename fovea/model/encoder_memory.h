// SPDX-License-Identifier: Apache-2.0
// Predicts the memory that the layers of a model take besides their parameters, before they are
// made.
#pragma once

#include <vector>

#include "fovea/grad/tape.h"
#include "fovea/model/encoder_sizes.h"

namespace fovea {

/// The batch for which memory is predicted.
struct TapeLoad {
  index tokens = 0;
  TapeMode mode = TapeMode::kTrain;
  bool observes = false;  ///< what the heads look like (LossOptions::attention)
  index sequences = 0;    ///< at most; 0: each has `block` tokens
};

/// The numbers that a tape keeps for each token of what TextEncoder computes.
double encoder_columns(const EncoderConfig& config, const std::vector<SizedStage>& stages,
                       const TapeLoad& load);
/// The numbers for each token in the gradients that exist at once.
double encoder_gradient_columns(const EncoderConfig& config, const std::vector<SizedStage>& stages);

struct WeightShape {
  index out, in;
};

/// Bytes of the packed copies that products read instead of a weight (PackedWeight): of W^T for the
/// forward pass and, with kTrain, also of W for the backward pass where its rows are far apart. A
/// training step of few tokens reads its weights in place.
double packed_bytes(const WeightShape& weight, const TapeLoad& load);
/// The same of all weights of the encoder.
double encoder_packed_bytes(const EncoderConfig& config, const std::vector<SizedStage>& stages,
                            const TapeLoad& load);

/// Bytes of scratch memory that the layers take, of each thread and of a call. Sequences have
/// `block` tokens.
struct EncoderScratch {
  double of_thread = 0, of_call = 0;
};
/// Bytes of each thread beside these, for copies of tiles in products and in attention, and for the
/// stack.
inline constexpr double kThreadScratch = 1 << 20;

EncoderScratch encoder_scratch(const EncoderConfig& config, const std::vector<SizedStage>& stages,
                               const TapeLoad& load);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Batches of sequences of numbers, with joints or without, as the layers take them.
#pragma once

#include <cstdint>

#include "fovea/model/text_batch.h"

namespace fovea {

struct FrameShape {
  index block = 0;     ///< most time steps of a sample
  index joints = 0;    ///< of a time step; 0: it is one row
  index features = 0;  ///< numbers of a row

  index rows_of_frame() const { return joints > 0 ? joints : 1; }
};

/// The rows of a batch. A sample of L time steps is L rows, or with joints each joint's L rows, one
/// joint after another: row j L + t.
struct FrameLayout {
  PackedRows rows;     ///< a sequence over time each sample, or each joint of it; with `across`,
                       ///< the joints of each time step as sequences
  PackedRows samples;  ///< all rows of a sample as one sequence: what is pooled
  Vec<const std::int32_t> joints;  ///< [rows] of each row; empty without joints
};

/// The layout in the tape's memory. Throws Error(kShape) for a sample of more than `block` time
/// steps.
FrameLayout lay_out_frames(Tape& tape, const TextRows& samples, const FrameShape& shape);

/// The numbers [rows, features] of the batch in this order: a constant. Throws Error(kShape) unless
/// samples.frames fits the shape and has the frames that the ids name.
Variable frame_values(Tape& tape, const TextRows& samples, const FrameShape& shape, DType dtype);

}  // namespace fovea

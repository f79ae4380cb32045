// SPDX-License-Identifier: Apache-2.0
// The batches of every model: tokens, words, and sequences of numbers with joints or without, as
// the layers take them; and whether the numbers of a model are finite, which those of a damaged one
// may not be.
#pragma once

#include <cstdint>
#include <string_view>

#include "fovea/grad/ops.h"
#include "fovea/grad/packed_rows.h"
#include "fovea/grad/tape.h"

namespace fovea {

/// N tokens of several sequences, one sequence after another, without padding. The members are
/// views.
struct TextRows {
  Vec<const std::int32_t> ids = {};      ///< [N]
  Vec<const std::int32_t> offsets = {};  ///< [sequences + 1], from 0 to N
  /// [sequences] numbers that name the dropout masks; may be empty
  Vec<const std::uint64_t> samples = {};
  /// [frames, joints * features] or [frames, features], if ids are numbers of these time steps
  /// instead of tokens
  Rows<const float> frames = {};
};

/// N words of several sentences, one sentence after another, without padding. The members are
/// views.
struct WordRows {
  Vec<const std::int32_t> words = {};              ///< [N]
  Vec<const std::int32_t> shapes = {};             ///< [N]
  Vec<const std::int32_t> characters = {};         ///< [M]
  Vec<const std::int32_t> character_offsets = {};  ///< [N + 1], from 0 to M
  Vec<const std::int32_t> offsets = {};            ///< [sentences + 1], from 0 to N
  /// [sentences] numbers that name the dropout masks; may be empty
  Vec<const std::uint64_t> samples = {};
  Vec<const std::int32_t> before = {}, after = {};  ///< marks around the subwords of a sentence
};

/// lay_out_rows() of these. Throws Error(kShape) if a sequence has more than `block` tokens.
PackedRows lay_out_texts(Tape& tape, const TextRows& texts, index block);

/// The loss [1, 1] of an empty batch: an epoch may end with one.
Variable zero_loss(Tape& tape);

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

/// Whether all numbers of x are finite.
bool is_finite(Variable x);

/// Throws kModelDamaged, "WHAT is not finite", if a number of x is none.
void require_finite(Variable x, std::string_view what);
/// Throws the same for a float32 parameter, which the error names.
void require_finite(const Parameter& parameter);

}  // namespace fovea

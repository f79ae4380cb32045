// SPDX-License-Identifier: Apache-2.0
// Shared by the batches of every model of text.
#pragma once

#include <cstdint>

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

/// lay_out_rows() of these. Throws Error(kShape) if a sequence has more than `block` tokens.
PackedRows lay_out_texts(Tape& tape, const TextRows& texts, index block);

/// The loss [1, 1] of an empty batch: an epoch may end with one.
Variable zero_loss(Tape& tape);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Packed sequences: rows of sequences of any lengths, one after another, without gaps.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fovea/base/view.h"

namespace fovea {

class Tape;
struct SampleRow;
struct RowsAcross;

/// Says which rows form a sequence. All members are views, which must outlive the step. If
/// default-constructed, all rows are one sequence, number 0.
struct PackedRows {
  Vec<const std::int32_t> offsets;  ///< [sequences + 1], ascending, from 0 to the number of rows
  Vec<const std::uint64_t>
      samples;  ///< [sequences] numbers that name dropout masks; empty: 0, 1, ..
  Vec<const std::int32_t> positions;  ///< [rows] positions, counted from each sequence's first row
  Vec<const SampleRow> rows;  ///< [rows] (sample, position): names the rows of dropout masks
  /// Where rows lie on two axes (time and joints): the same rows along the other; else null
  const RowsAcross* across = nullptr;

  index count() const { return offsets.empty() ? 1 : offsets.size - 1; }
};

/// The rows of some PackedRows as other sequences: each row lies in one of both kinds.
struct RowsAcross {
  PackedRows rows;
  Vec<const std::int32_t> order;  ///< [rows] where row n of these stands among the others
  Vec<const std::int32_t> back;   ///< [rows] where row n of the others stands among these
};

/// The offsets of packed sequences of these lengths: 0, the sums, the number of rows. For a padded
/// batch, mask::lengths_of() counts the lengths. Throws Error(kShape) for a negative length, or
/// 2^31 rows.
std::vector<std::int32_t> offsets_of(Vec<const std::int32_t> lengths);

/// Offsets, positions and samples of `rows` rows, in the tape's memory; positions start at `first`.
/// Throws Error(kShape) unless offsets run from 0 to `rows` and there is one sample per sequence,
/// or none.
PackedRows lay_out_rows(Tape& tape, index rows, Vec<const std::int32_t> offsets,
                        Vec<const std::uint64_t> samples, index first = 0);

/// The offsets of `rows`, or of one sequence of all N rows if it has none. Throws Error(kShape),
/// which names the op, unless they run from 0 to N.
Vec<const std::int32_t> offsets_of(Tape& tape, std::string_view op, const PackedRows& rows,
                                   index N);

}  // namespace fovea

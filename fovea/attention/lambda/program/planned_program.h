// SPDX-License-Identifier: Apache-2.0
// Plays a program onto the tape of a tile, where what is the same all over a head is a number: once
// for each head that a thread computes.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "fovea/attention/lambda/lanes/lane_program.h"
#include "fovea/attention/lambda/program/program_ranges.h"
#include "fovea/attention/lambda/program/score_program.h"

namespace fovea::detail {

/// The way to sum the gradient of a captured table.
enum class TableGradient {
  kNone,
  kDirect,  ///< keys share no entry: tiles add to it
  kSums,    ///< sums for each head and chunk of keys
};

/// The way in which a step of a program reads its table.
struct ReadPlan {
  std::vector<std::size_t> axes;  ///< those whose index is not the same all over a head
  bool by_place = false;          ///< all of these are lines inside their axes
  TableGradient gradient = TableGradient::kNone;
  bool by_batch = false;                     ///< whether the entries depend on the batch
  bool own_batch = false, own_head = false;  ///< whether no two batches, or heads, share any
  index sums = 0;                            ///< the first of its sums, and how many there are
  index sums_count = 0;
};

/// A program in a call: its sizes, and how each step reads.
class PlannedProgram {
 public:
  /// gradients[n] is room for the gradient of table n, contiguous, of the type of the call; null if
  /// it has none. A table with a gradient is read by one step.
  /// Throws Error(kShape) for an index that is beyond its axis for every place, for whole numbers
  /// that `exact_to`, the largest that the lanes hold, does not reach, and for gradients that would
  /// need too much memory.
  PlannedProgram(ScoreProgram program, const AttentionSizes& sizes, std::vector<void*> gradients,
                 double exact_to);
  PlannedProgram(const PlannedProgram&) = delete;
  PlannedProgram& operator=(const PlannedProgram&) = delete;

  const ScoreProgram& program() const { return program_; }
  const ProgramRanges& ranges() const { return ranges_; }
  const AttentionSizes& sizes() const { return sizes_; }
  const ReadPlan& plan(int step) const { return plans_[static_cast<std::size_t>(step)]; }
  void* gradient(int table) const { return gradients_[static_cast<std::size_t>(table)]; }
  index sums() const { return sums_; }
  bool sums_by_batch() const { return by_batch_; }
  /// Throws Error(kShape) for other sizes than those of the plan; `what` names the part.
  void check_sizes(const AttentionSizes& sizes, std::string_view what) const;
  /// A call begins: it reads what the tables hold now.
  void start_call() const { serial_ = next_serial(); }
  /// Different for all calls of all programs of the process, so that what is compiled can be kept
  /// as long as a call lasts.
  std::uint64_t serial() const { return serial_; }

  /// The result, in the numbers of the tape.
  Traced record(LaneTape& tape, const Sequence& sequence, index head) const;
  /// Throws the error of a read of the tape whose index is beyond an axis somewhere in the tile.
  [[noreturn]] void fail_beyond(const TableRead& read, const TileSite& site) const;

 private:
  static std::uint64_t next_serial();
  PlaceRanges everywhere() const;
  void plan_no_scores();
  void check_numbers(std::span<const Range> ranges, double exact_to) const;
  ReadPlan plan_of(int n, std::span<const Range> ranges) const;
  bool adds_directly(int n, const ReadPlan& plan) const;

  ScoreProgram program_;
  ProgramRanges ranges_;
  AttentionSizes sizes_;
  std::vector<void*> gradients_;
  std::vector<ReadPlan> plans_;
  index sums_ = 0;
  bool by_batch_ = false;
  mutable std::atomic<std::uint64_t> serial_;
};

/// A program is compiled to give one of these.
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

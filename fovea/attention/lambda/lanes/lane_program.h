// SPDX-License-Identifier: Apache-2.0
// A program and its gradient, run over tiles by vectors of every instruction set: a strip of
// lanes at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fovea/attention/lambda/symbols/place.h"
#include "fovea/attention/lambda/symbols/tape.h"

namespace fovea::detail {

/// A step, and the strips that it reads and writes.
struct LaneStep {
  TapeOp op;
  /// kPlace: it reads result `a` of the lane_program for the diagonals. A step that adds to a
  /// gradient: what is added has the same place on a diagonal, and `to` is the number of its sums.
  bool on_diagonals;
  std::int16_t to;       ///< kNone: only the sum is wanted
  std::int16_t a, b, c;  ///< strips
  std::int16_t sum;      ///< the number of the sum to which its values are added, or kNone
  std::int16_t table;    ///< the number of the read of a table
  double value;          ///< kConstant; kExp and kTanh: what `a` is multiplied by
  /// kPlace, kLoad, kStore. A step that adds sums over diagonals: of_i and of_j are the numbers of
  /// the diagonals that hold its indices.
  index of_i, of_j, constant;
};

/// The steps that compute some results, in order. Steps that depend only on i - j have one value
/// for each diagonal of a tile; a lane_program of its own computes them once per tile. A strip is
/// reused after its last reader, so that few strips are in use and stay in L1.
class LaneProgram {
 public:
  static constexpr std::int16_t kNone = -1;
  static constexpr std::int16_t kScores = 0;  ///< the strip of the scores that are read
  static constexpr std::int16_t kValues = 1;  ///< the strip of dscore, later of the result

  /// Computes the step `result` for each score, the sums over the tile of the (distinct) steps
  /// `sums`, and the stores() of the program.
  LaneProgram(const LaneTape& program, int result, std::span<const int> sums);
  /// The values for the diagonals, of which `lane_program` reads some.
  static LaneProgram of_diagonals(const LaneTape& program, const LaneProgram& lane_program);

  /// Constants: written once per tile.
  std::span<const LaneStep> constants() const { return {steps_.data(), constants_}; }
  std::span<const LaneStep> steps() const { return {&steps_[constants_], count_ - constants_}; }
  index strips() const { return strips_; }
  bool reads(TapeOp leaf) const { return leaf == TapeOp::kScore ? reads_score_ : reads_dscore_; }
  std::size_t sums() const { return sums_; }
  std::size_t diagonals() const { return diagonals_count_; }
  /// The steps that add sums over diagonals to a gradient, each with such sums of its own.
  std::size_t diagonal_stores() const { return diagonal_stores_; }
  /// The strip for the n-th of of_diagonals().
  index strip_of_diagonal(std::size_t n) const { return strip_[at(diagonals_[n])]; }
  /// The strip of the result: nearly always kValues.
  index result() const { return result_; }

 private:
  using Numbers = std::array<std::int16_t, LaneTape::kMost>;
  LaneProgram() = default;
  static constexpr std::size_t at(int n) { return static_cast<std::size_t>(n); }

  void find_diagonals(const LaneTape& program);
  void find_readers(const LaneTape& program);
  void join_factors(const LaneTape& program);
  void add_steps(const LaneTape& program);
  void add(const LaneTape& program, int n);
  std::int16_t operand(const LaneTape& program, int reader, int n);
  index diagonal_of(int n) const;
  std::int16_t strip_for(const LaneTape& program, int n);
  void release(int n);

  std::array<LaneStep, LaneTape::kMost> steps_;
  std::size_t count_ = 0, constants_ = 0, sums_ = 0, diagonals_count_ = 0, diagonal_stores_ = 0;
  std::int16_t strips_ = 2, result_ = kNone;
  bool reads_score_ = false, reads_dscore_ = false;

  // These describe the steps of the program up to last_.
  int last_ = 0, result_step_ = kNone, dscore_step_ = kNone;
  Numbers strip_, sum_;
  Numbers last_reader_;  // itself if nobody reads it, but it is wanted; kNone if it is not wanted
  Numbers readers_;      // how many
  Numbers factor_of_;    // the product, by a known number, that is part of this step; kNone
  std::array<bool, LaneTape::kMost> on_diagonals_;
  // Their strips: once, though a step may read them twice.
  std::array<bool, LaneTape::kMost> released_ = {};
  Numbers diagonals_, free_;
  std::size_t free_count_ = 0;
};

}  // namespace fovea::detail

namespace fovea {
class Prefetch;
}

namespace fovea::detail {

/// Record a function on tape(), then compile() it, then apply() it to tiles (kConstant), or pull()
/// gradients (kSymbol).
template <class T>
class CompiledLanes {
 public:
  explicit CompiledLanes(LaneTape::Learned learned)
      : tape_(LaneTape::of<T>(learned)), differentiates_(learned == LaneTape::Learned::kSymbol) {}

  LaneTape& tape() { return tape_; }
  /// False if the function cannot run so. `result` is the step of the new score.
  bool compile(int result);

  /// Replaces the scores of a tile. Returns the read whose index is beyond an axis, or null.
  const TableRead* apply(const TileSite& site, const ScoreTile<T>& tile) const;
  /// Replaces the gradients of the new scores by those of the old ones; adds those of learned
  /// numbers and tables to `parameters`.
  const TableRead* pull(const TileSite& site, const ScoreTile<T>& scores,
                        const ScoreTile<T>& dscores, double* parameters) const;
  /// Asks for the rows of tables that apply() will read, and for those of gradients that pull()
  /// will add to.
  void prefetch_apply(const TileSite& site, Prefetch& prefetch) const;
  void prefetch_pull(const TileSite& site, Prefetch& prefetch) const;

 private:
  const TableRead* read(int n) const { return n < 0 ? nullptr : &tape_.read(n); }

  LaneTape tape_;
  bool differentiates_;
  std::optional<LaneProgram> lanes_;
  std::array<int, LaneTape::kMostKnown> sums_;  // steps, each once: numbers may have the same sum
  std::size_t sum_count_ = 0;
};

/// A tile as it lies in memory: rows of lanes.
template <class T>
struct LaneTile {
  Rows<const T> scores;  ///< what the function reads
  Rows<T> values;        ///< holds dscore, if the lane_program reads it, and receives the result
  TileLanes lanes;
  index query, key;  ///< of the first value
};

/// sums[n] = sum of the n-th over the tile. `values` may be `scores` if dscore is not read. The
/// lane_program is one of `program`; its steps that add to the gradient of a table without memory
/// of its own add to `table_sums`. Returns the number of a read whose index was beyond an axis, or
/// -1.
template <class T>
int run_lanes(const LaneTape& program, const LaneProgram& lane_program, const LaneTile<T>& tile,
              double* sums, double* table_sums = nullptr);

}  // namespace fovea::detail

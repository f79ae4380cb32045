// SPDX-License-Identifier: Apache-2.0
// A function of scores or places as data: what a traced function of another language becomes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/attention/lambda/symbols/tape.h"
#include "fovea/base/view.h"

namespace fovea::detail {

/// A step of a ScoreProgram. It reads earlier steps only.
struct ScoreStep {
  enum class Leaf : std::uint8_t {
    kNone,  ///< `op` of the steps a, b and c
    kConstant,
    kScore,
    kBatch,
    kHead,
    kQuery,
    kKey,
    kRead,  ///< the entry of a captured table at the steps `at`
  };
  static constexpr std::size_t kMostAxes = 6;

  Leaf leaf = Leaf::kNone;
  TapeOp op = TapeOp::kConstant;
  int a = -1, b = -1, c = -1;
  double value = 0;  ///< kConstant
  int table = -1;
  std::array<int, kMostAxes> at = {};  ///< one for each axis of the table
};

/// A captured tensor.
struct CapturedTable {
  LaneTable values;
  std::vector<index> sizes, strides;  ///< of each axis, in values
  double low, high;                   ///< bounds of its values; whole numbers have some

  bool is_whole() const {
    return values.type != LaneTable::Type::kFloat && values.type != LaneTable::Type::kDouble;
  }
  index count() const;  ///< the product of the sizes
  bool is_contiguous() const;
  double at(index offset) const;
};

/// Tells memory, an OverlapCheck, what the tables are. Of one that is not contiguous, the first
/// value.
template <class Memory>
void name_tables(std::span<const CapturedTable> tables, Memory& memory) {
  for (const CapturedTable& table : tables) {
    with_values(table.values, [&]<class V>(const V* values) {
      const index count = table.is_contiguous() ? table.count() : 1;
      memory.read("a captured tensor", Vec<const V>{values, count});
    });
  }
}

/// The place of a score.
struct ScorePlace {
  index batch, head, query, key;
};

/// The operations that a step of ScoreStep::Leaf::kNone may have, by name; their numbers are those
/// of TapeOp.
struct NamedOp {
  std::string_view name;
  TapeOp op;
};
std::span<const NamedOp> score_ops();

/// Steps, the last of which is the result, and what is known of them without looking at a score.
/// The functions of this class are the definition of a program, in double.
class ScoreProgram {
 public:
  /// Which numbers a step depends on.
  enum Depends : std::uint8_t {
    kOnBatch = 1,
    kOnHead = 2,
    kOnQuery = 4,
    kOnKey = 8,
    kOnScore = 16,
    kOnLearned = 32,
  };
  /// A sum of multiples of the query and the key, and something that is the same all over a head.
  struct Line {
    bool is_line = false;
    bool is_plain = false;  ///< what is the same is `constant`, whatever the head
    index of_query = 0, of_key = 0, constant = 0;
  };
  /// A program has the gradients of the tables that `learns` says, or none.
  /// Throws Error(kOptionValue) for steps that do not make a program.
  ScoreProgram(std::vector<ScoreStep> steps, std::vector<CapturedTable> tables,
               std::vector<bool> learns = {});

  std::span<const ScoreStep> steps() const { return steps_; }
  std::span<const CapturedTable> tables() const { return tables_; }
  int size() const { return static_cast<int>(steps_.size()); }
  int result() const { return size() - 1; }
  const ScoreStep& step(int n) const { return steps_[static_cast<std::size_t>(n)]; }
  const CapturedTable& table(int n) const { return tables_[static_cast<std::size_t>(n)]; }
  bool learns(int table) const { return learns_[static_cast<std::size_t>(table)]; }
  std::uint8_t depends(int n) const { return depends_[static_cast<std::size_t>(n)]; }
  /// Whether the step is the same all over a head.
  bool is_known(int n) const { return (depends(n) & (kOnQuery | kOnKey | kOnScore)) == 0; }
  bool is_whole(int n) const { return whole_[static_cast<std::size_t>(n)]; }
  const Line& line(int n) const { return lines_[static_cast<std::size_t>(n)]; }
  /// Whether its gradient reads the score.
  bool gradient_reads_score() const { return gradient_reads_score_; }

  /// All steps at a place. An index that is beyond its axis throws Error(kShape).
  void evaluate(const ScorePlace& place, double score, std::span<double> values) const;
  double value(const ScorePlace& place, double score) const;
  /// Evaluates the steps that is_known(); the others are left alone.
  void evaluate_known(index batch, index head, std::span<double> values) const;
  /// The place of the entry that a read finds, in values from the first of the table.
  index offset(int read, std::span<const double> values) const;
  /// Given evaluate(), calls add(read, gradient) for the reads of tables that learn; returns the
  /// gradient of the score, given that of the result.
  template <class F>
  double pull(std::span<const double> values, double gradient, const F& add) const;

  /// The index of an axis, from 0 to size - 1: a negative one counts from the end.
  static index on_axis(const CapturedTable& table, int number, std::size_t axis, double at);
  [[noreturn]] static void fail_beyond(const CapturedTable& table, int number, std::size_t axis,
                                       double at);

 private:
  void check(int n) const;
  void describe(int n);
  Line line_of(int n) const;
  void find_score_reader();
  double evaluate_step(int n, const ScorePlace& place, double score,
                       std::span<const double> values) const;
  void pull_step(int n, std::span<const double> values, std::span<double> gradients) const;

  std::vector<ScoreStep> steps_;
  std::vector<CapturedTable> tables_;
  std::vector<bool> learns_;
  std::vector<std::uint8_t> depends_;
  std::vector<bool> whole_;
  std::vector<Line> lines_;
  bool gradient_reads_score_ = false;
};

template <class F>
double ScoreProgram::pull(std::span<const double> values, double gradient, const F& add) const {
  std::vector<double> gradients(steps_.size());
  gradients.back() = gradient;
  double of_score = 0;
  for (int n = result(); n >= 0; --n) {
    const double own = gradients[static_cast<std::size_t>(n)];
    if (own == 0) continue;
    const ScoreStep& s = step(n);
    if (s.leaf == ScoreStep::Leaf::kScore) of_score += own;
    if (s.leaf == ScoreStep::Leaf::kRead && learns(s.table)) add(n, own);
    if (s.leaf == ScoreStep::Leaf::kNone) pull_step(n, values, gradients);
  }
  return of_score;
}

}  // namespace fovea::detail

// SPDX-License-Identifier: Apache-2.0
// Records what a function of one score does, step by step, and the steps of its gradient.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fovea/attention/lambda/symbols/traced.h"
#include "fovea/base/types.h"

namespace fovea::detail {

/// One step. `a`, `b` and `c` are the steps that it reads.
struct TapeStep {
  TapeOp op;
  bool known;    ///< the same for the whole tile: `value`
  bool matters;  ///< depends on the score or on a learned number
  std::int16_t a, b, c;
  std::int16_t table;  ///< of what reads a table, or adds to its gradient: the number of its read
  double value;
  index of_i, of_j, constant;  ///< kPlace: of_i i + of_j j + constant; kParameter: constant
};

/// The values of a table that lies in the caller's memory, of the type of the call or whole
/// numbers.
struct LaneTable {
  enum class Type : std::uint8_t { kFloat, kDouble, kInt32, kInt64, kByte };
  const void* data;
  Type type;
};

/// Calls f with the values in their type.
template <class F>
void with_values(const LaneTable& table, F&& f) {
  switch (table.type) {
    case LaneTable::Type::kFloat:
      return f(static_cast<const float*>(table.data));
    case LaneTable::Type::kDouble:
      return f(static_cast<const double*>(table.data));
    case LaneTable::Type::kInt32:
      return f(static_cast<const std::int32_t*>(table.data));
    case LaneTable::Type::kInt64:
      return f(static_cast<const std::int64_t*>(table.data));
    case LaneTable::Type::kByte:
      return f(static_cast<const std::uint8_t*>(table.data));
  }
}

/// A step reads a table at constant + of_i i + of_j j (kLoad), or at constant + the sum of
/// stride[n] at[n], where at[n] is what the step reads (kGather). There, a negative index counts
/// from the end of its axis, and one beyond it is an error. The gradient lies in the same way, if
/// there is one.
struct TableRead {
  LaneTable table;
  struct Spot {
    index constant, of_i, of_j;
    index stride[2];
  } at, gradient_at;
  index size[2];  ///< of the axes that are indexed by steps
  int number;     ///< for messages
  bool learns;
  void* gradient;  ///< of the type of the call; null: the sums of the tile
};

/// A number that is the same for the whole tile, and learned or made of learned ones. Its gradient
/// is `scale` times the sum of the step `sum` over the scores.
struct KnownGradient {
  int known;
  int sum;
  double scale;
};

/// The definition of an operation, and d result / d operand `which`, in double.
double tape_value(TapeOp op, double a, double b, double c);
double tape_partial(TapeOp op, int which, const std::array<double, 3>& operands, double result);

/// The operations of a lambda, recorded while it runs, in static single assignment form: a step
/// reads only earlier steps, equal steps are stored once, and constants are computed at once. A
/// program is recorded anew for each tile, so captured and learned values are current. Nothing is
/// allocated.
///
/// A function that branches on a score or a place, or has too many steps, cannot be recorded. The
/// program is then invalid; the function runs to its end with plain numbers (score 1/2, i = j = 0).
class LaneTape {
 public:
  static constexpr int kMost = 320;      ///< steps
  static constexpr int kMostKnown = 64;  ///< known numbers with a gradient
  static constexpr int kMostReads = 32;  ///< places where tables are read

  /// kSymbol in the backward, which needs the gradients of learned numbers.
  enum class Learned { kConstant, kSymbol };
  /// T is the type of the call; constants are computed in it.
  template <class T>
  static LaneTape of(Learned learned) {
    return LaneTape(learned, sizeof(T) == sizeof(float));
  }
  LaneTape(const LaneTape&) = delete;
  LaneTape& operator=(const LaneTape&) = delete;

  Traced score();
  /// The next of the learned numbers.
  Traced parameter(double value);
  Traced parameter(double value, index number);
  Traced place(index of_i, index of_j, index constant);
  /// These read an entry of a table: at a place, or at the whole numbers `at` (one or two).
  Traced load(const TableRead& read);
  Traced gather(const TableRead& read, std::span<const Traced> at);
  Traced record(TapeOp op, const Traced& a, const Traced& b, const Traced& c);

  /// Whether the function was recorded completely.
  bool is_valid() const { return is_valid_; }
  /// Whether it was not because it has too many steps.
  bool is_full() const { return is_full_; }
  /// The outcome of the condition `step` for the plain numbers above.
  bool branch(int step);

  /// The step that has this number.
  int step_of(const Traced& number);
  const TapeStep& step(int n) const { return steps_[static_cast<std::size_t>(n)]; }

  /// Adds the reverse differentiation of the step `result`; returns the step that is the gradient
  /// of the score. Where that of the result is 0 all of it is 0, whatever the score.
  int differentiate(int result);
  /// The known numbers that the result depends on.
  std::span<const KnownGradient> known_gradients() const { return {known_.data(), known_count_}; }
  /// Adds to the gradients of the learned numbers, given that of a known one.
  void pull_known(int known, double gradient, double* parameters) const;
  /// The steps that add to the gradients of tables.
  std::span<const int> stores() const { return {stores_.data(), store_count_}; }
  const TableRead& read(int n) const { return reads_[static_cast<std::size_t>(n)]; }
  std::span<const TableRead> reads() const { return {reads_.data(), read_count_}; }

 private:
  struct Adjoint;
  LaneTape(Learned learned, bool single) : learned_(learned), single_(single) {}
  Traced plain(double value) const { return {nullptr, -1, value, single_}; }
  Traced add(const TapeStep& step);
  Traced number(int n) { return {this, n, step(n).value, single_}; }
  Traced operand(int n) { return n < 0 ? Traced() : number(n); }
  bool is_known(const Traced& x) const { return x.program_ == nullptr || step(x.step_).known; }
  bool matters(const Traced& x) const { return x.program_ != nullptr && step(x.step_).matters; }
  bool is_constant(const Traced& x, double value) const {
    return x.program_ == nullptr && x.value_ == value;
  }
  double one_number(const Traced& x) const;
  void give_up();
  int add_read(const TableRead& read);
  void store(const TapeStep& of, const Traced& gradient);
  void give(Adjoint* adjoints, int to, const Traced& by, const Adjoint& from);
  Traced scaled(const Adjoint& adjoint);

  std::array<TapeStep, kMost> steps_;
  std::array<KnownGradient, kMostKnown> known_;
  std::size_t known_count_ = 0;
  std::array<TableRead, kMostReads> reads_;
  std::array<int, kMostReads> stores_;
  std::size_t read_count_ = 0, store_count_ = 0;
  int size_ = 0;
  index parameters_ = 0;
  Learned learned_;
  bool single_;
  bool is_valid_ = true, is_full_ = false;
  std::array<double, kMost> one_number_;  // of each step, once the program is not valid
};

}  // namespace fovea::detail

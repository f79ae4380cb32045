// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/symbols/tape.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <tuple>

namespace fovea::detail {

namespace {

// The derivatives of the operations, of plain numbers and of symbols.
double tanh_slope(double t) { return 1 - t * t; }
double floor_divide(double a, double b) { return std::floor(a / b); }
double select(bool condition, double a, double b) { return condition ? a : b; }

/// The operands of a step, as double or Traced.
template <class Number>
struct Operands {
  Number a, b, c;
  Number result;
};

/// d result / d operand `which` (0, 1, 2). At a kink it is that of the branch which tape_value()
/// takes.
template <class Number>
Number partial(TapeOp op, int which, const Operands<Number>& x) {
  using std::cos, std::sin, std::exp, std::log, std::pow;
  const Number one = 1, zero = 0;
  switch (op) {
    case TapeOp::kSub:
      return which == 0 ? one : -one;
    case TapeOp::kMul:
      return which == 0 ? x.b : x.a;
    case TapeOp::kDiv:
      return which == 0 ? one / x.b : -x.result * (one / x.b);
    case TapeOp::kNeg:
      return -one;
    case TapeOp::kAbs:
      return select(x.a < zero, -one, one);
    case TapeOp::kMin:
      return select(x.b < x.a, which == 0 ? zero : one, which == 0 ? one : zero);
    case TapeOp::kMax:
      return select(x.a < x.b, which == 0 ? zero : one, which == 0 ? one : zero);
    case TapeOp::kExp:
      return x.result;
    case TapeOp::kLog:
      return one / x.a;
    case TapeOp::kTanh:
      return tanh_slope(x.result);
    case TapeOp::kSqrt:
      return 0.5 / x.result;
    case TapeOp::kSin:
      return cos(x.a);
    case TapeOp::kCos:
      return -sin(x.a);
    case TapeOp::kErf:
      return 2 * std::numbers::inv_sqrtpi * exp(-(x.a * x.a));
    case TapeOp::kPower:
      if (which == 0) return x.b * pow(x.a, x.b - one);
      return select(x.a == zero, zero, x.result * log(x.a));
    case TapeOp::kModulo:
      return which == 0 ? one : -floor_divide(x.a, x.b);
    case TapeOp::kSelect:
      if (which == 0) return zero;
      return select(x.a != zero, which == 1 ? one : zero, which == 1 ? zero : one);
    default:
      return op == TapeOp::kAdd ? one : zero;  // comparisons have no gradient
  }
}

double in_precision(double x, bool single) {
  return single ? static_cast<double>(static_cast<float>(x)) : x;
}

// Evaluates a step in the precision of the call.
double evaluate(TapeOp op, double a, double b, double c, bool single) {
  return in_precision(
      tape_value(op, in_precision(a, single), in_precision(b, single), in_precision(c, single)),
      single);
}

// A power of two, far from 0 and infinity in float, too.
bool has_exact_inverse(double x) {
  const double size = std::abs(x);
  int exponent = 0;
  return std::frexp(size, &exponent) == 0.5 && size > 0x1p-100 && size < 0x1p100;
}

constexpr double kScoreOfOneNumber = 0.5;

TapeStep known_step(TapeOp op, double value) {
  TapeStep step{};
  step.op = op;
  step.known = true;
  step.value = value;
  return step;
}

}  // namespace

Traced Traced::record(TapeOp op, const Traced& a, const Traced& b, const Traced& c) {
  for (const Traced* x : {&a, &b, &c}) {
    if (x->program_ != nullptr) return x->program_->record(op, a, b, c);
  }
  const bool single = a.single_ || b.single_ || c.single_;
  return {nullptr, -1, evaluate(op, a.value_, b.value_, c.value_, single), single};
}

TracedBool::operator bool() const {
  if (answer_.program_ == nullptr) return answer_.value_ != 0;
  const TapeStep& step = answer_.program_->step(answer_.step_);
  return step.known ? step.value != 0 : answer_.program_->branch(answer_.step_);
}

// Adds a step to the program. If an equal step exists, returns that one.
Traced LaneTape::add(const TapeStep& step) {
  const auto key = [](const TapeStep& s) {
    const auto value = std::bit_cast<std::uint64_t>(s.value);  // 0 and -0 are two constants
    return std::tuple(s.op, s.a, s.b, s.c, s.table, value, s.of_i, s.of_j, s.constant);
  };
  for (int n = 0; n < size_; ++n) {
    if (key(steps_[static_cast<std::size_t>(n)]) == key(step)) return number(n);
  }
  if (size_ == kMost) {
    is_full_ = true;
    give_up();
    return plain(step.value);
  }
  steps_[static_cast<std::size_t>(size_)] = step;
  one_number_[static_cast<std::size_t>(size_)] = step.value;
  return number(size_++);
}

Traced LaneTape::score() {
  if (!is_valid_) return plain(kScoreOfOneNumber);
  TapeStep step{};
  step.op = TapeOp::kScore;
  step.matters = true;
  const Traced score = add(step);
  return is_valid_ ? score : plain(kScoreOfOneNumber);
}

Traced LaneTape::parameter(double value) { return parameter(value, parameters_++); }

Traced LaneTape::parameter(double value, index number) {
  if (learned_ == Learned::kConstant || !is_valid_) return plain(value);
  TapeStep step = known_step(TapeOp::kParameter, value);
  step.matters = true;
  step.constant = number;
  return add(step);
}

Traced LaneTape::place(index of_i, index of_j, index constant) {
  const Traced at_the_first = plain(static_cast<double>(constant));
  if (!is_valid_) return at_the_first;
  TapeStep step{};
  step.op = TapeOp::kPlace;
  step.of_i = of_i;
  step.of_j = of_j;
  step.constant = constant;
  const Traced place = add(step);
  return is_valid_ ? place : at_the_first;
}

int LaneTape::add_read(const TableRead& read) {
  if (read_count_ == kMostReads) {
    is_full_ = true;
    give_up();
    return 0;
  }
  reads_[read_count_] = read;
  return static_cast<int>(read_count_++);
}

// A table is read where the tile is, which one number cannot: so the program is not valid for a
// function that is computed with one.
Traced LaneTape::load(const TableRead& read) { return gather(read, {}); }

Traced LaneTape::gather(const TableRead& read, std::span<const Traced> at) {
  constexpr TapeOp kOps[] = {TapeOp::kLoad, TapeOp::kGather, TapeOp::kGather2};
  TapeStep step{};
  step.op = kOps[at.size()];
  step.matters = read.learns && learned_ == Learned::kSymbol;
  step.a = static_cast<std::int16_t>(at.empty() ? -1 : step_of(at[0]));
  step.b = static_cast<std::int16_t>(at.size() < 2 ? -1 : step_of(at[1]));
  step.c = -1;
  step.of_i = at.empty() ? read.at.of_i : 0;
  step.of_j = at.empty() ? read.at.of_j : 0;
  if (is_valid_) step.table = static_cast<std::int16_t>(add_read(read));
  return is_valid_ ? add(step) : plain(0);
}

// Adds the step that adds `gradient` to that of the table which `of` reads.
void LaneTape::store(const TapeStep& of, const Traced& gradient) {
  TapeStep step{};
  step.op = of.op == TapeOp::kLoad     ? TapeOp::kStore
            : of.op == TapeOp::kGather ? TapeOp::kScatter
                                       : TapeOp::kScatter2;
  step.a = static_cast<std::int16_t>(step_of(gradient));
  step.b = of.a;
  step.c = of.b;
  step.table = of.table;
  step.of_i = of.of_i;
  step.of_j = of.of_j;
  const Traced stored = add(step);
  if (is_valid_) stores_[store_count_++] = stored.step_;
}

int LaneTape::step_of(const Traced& number) {
  if (number.program_ != nullptr) return number.step_;
  const double value = in_precision(number.value_, single_);
  return std::max(0, add(known_step(TapeOp::kConstant, value)).step_);
}

Traced LaneTape::record(TapeOp op, const Traced& a, const Traced& b, const Traced& c) {
  const auto of_one_number = [&] {
    return plain(evaluate(op, one_number(a), one_number(b), one_number(c), single_));
  };
  if (!is_valid_) return of_one_number();
  const bool known = is_known(a) && is_known(b) && is_known(c);
  const bool matter = matters(a) || matters(b) || matters(c);
  const double value = known ? evaluate(op, a.value_, b.value_, c.value_, single_) : 0;
  if (known && !matter) return plain(value);
  const bool adds = op == TapeOp::kAdd, multiplies = op == TapeOp::kMul;
  if ((adds && is_constant(a, 0)) || (multiplies && is_constant(a, 1))) return b;
  if ((adds && is_constant(b, 0)) || (multiplies && is_constant(b, 1))) return a;
  if (op == TapeOp::kSub && is_constant(b, 0)) return a;
  if (op == TapeOp::kDiv && !known && is_known(b) && has_exact_inverse(b.value_)) {
    return a * (1 / b);  // several times faster
  }
  TapeStep step = known_step(op, value);
  step.known = known;
  step.matters = matter;
  const int count = operands(op);
  step.a = static_cast<std::int16_t>(step_of(a));
  step.b = static_cast<std::int16_t>(count > 1 ? step_of(b) : -1);
  step.c = static_cast<std::int16_t>(count > 2 ? step_of(c) : -1);
  const Traced result = add(step);
  return is_valid_ ? result : of_one_number();
}

bool LaneTape::branch(int step) {
  if (is_valid_) give_up();
  return one_number_[static_cast<std::size_t>(step)] != 0;
}

double LaneTape::one_number(const Traced& x) const {
  return x.program_ == nullptr ? x.value_ : one_number_[static_cast<std::size_t>(x.step_)];
}

void LaneTape::give_up() {
  is_valid_ = false;
  for (int n = 0; n < size_; ++n) {
    const TapeStep& s = step(n);
    const auto of = [&](std::int16_t operand) {
      return operand < 0 ? 0 : one_number_[static_cast<std::size_t>(operand)];
    };
    double& value = one_number_[static_cast<std::size_t>(n)];
    if (s.known) {
      value = s.value;
    } else if (s.op == TapeOp::kScore) {
      value = kScoreOfOneNumber;
    } else if (s.op == TapeOp::kPlace) {
      value = static_cast<double>(s.constant);
    } else {
      value = evaluate(s.op, of(s.a), of(s.b), of(s.c), single_);
    }
  }
}

// The gradient of a step is `scale` times `value`. Constant scales are multiplied while recording;
// the lanes only use the final one.
struct LaneTape::Adjoint {
  bool exists;
  double scale;
  int value;
};

Traced LaneTape::scaled(const Adjoint& adjoint) {
  if (adjoint.scale == 1) return number(adjoint.value);
  return record(TapeOp::kPull, number(adjoint.value), adjoint.scale, {});
}

// Adds `by` times the gradient `from` of a step to the gradient of step `to`, which it reads.
void LaneTape::give(Adjoint* adjoints, int to, const Traced& by, const Adjoint& from) {
  if (!step(to).matters || is_constant(by, 0)) return;
  Adjoint given = from;
  if (is_known(by)) {
    given.scale *= by.value_;
  } else {
    given.value = step_of(record(TapeOp::kPull, number(from.value), by, {}));
  }
  Adjoint& now = adjoints[to];
  if (step(to).known) {
    if (known_count_ == kMostKnown) {
      is_full_ = true;
      return give_up();
    }
    known_[known_count_++] = {to, given.value, given.scale};
  } else if (!now.exists) {
    now = given;
  } else if (now.scale == given.scale) {
    now.value = step_of(number(now.value) + number(given.value));
  } else {
    now = {true, 1, step_of(scaled(now) + scaled(given))};
  }
}

int LaneTape::differentiate(int result) {
  std::array<Adjoint, kMost> adjoints;
  for (int n = 0; n <= result; ++n) adjoints[static_cast<std::size_t>(n)].exists = false;
  TapeStep of_result{};
  of_result.op = TapeOp::kDscore;
  const Traced dscore = add(of_result);
  Traced of_score = 0;
  give(adjoints.data(), result, 1, {true, 1, step_of(dscore)});
  for (int n = result; n >= 0 && is_valid_; --n) {
    const Adjoint& adjoint = adjoints[static_cast<std::size_t>(n)];
    if (!adjoint.exists) continue;
    const TapeStep& s = step(n);
    if (s.op == TapeOp::kScore) of_score = scaled(adjoint);
    if (s.op == TapeOp::kLoad || s.op == TapeOp::kGather || s.op == TapeOp::kGather2) {
      store(TapeStep(s), scaled(adjoint));
      continue;
    }
    const Operands<Traced> x{operand(s.a), operand(s.b), operand(s.c), number(n)};
    const std::int16_t read[] = {s.a, s.b, s.c};
    for (int which = 0; which < operands(s.op); ++which) {
      give(adjoints.data(), read[which], partial(s.op, which, x), adjoint);
    }
  }
  return step_of(of_score);
}

void LaneTape::pull_known(int known, double gradient, double* parameters) const {
  std::array<double, kMost> adjoints;
  std::fill_n(adjoints.begin(), known, 0.0);
  adjoints[static_cast<std::size_t>(known)] = gradient;
  for (int n = known; n >= 0; --n) {
    const TapeStep& s = step(n);
    const double adjoint = adjoints[static_cast<std::size_t>(n)];
    if (adjoint == 0 || !s.matters) continue;
    if (s.op == TapeOp::kParameter) parameters[s.constant] += adjoint;
    const auto value = [&](int operand) { return operand < 0 ? 0 : step(operand).value; };
    const Operands<double> x{value(s.a), value(s.b), value(s.c), s.value};
    const std::int16_t read[] = {s.a, s.b, s.c};
    for (int which = 0; which < operands(s.op); ++which) {
      const auto to = static_cast<std::size_t>(read[which]);
      if (steps_[to].matters) adjoints[to] += adjoint * partial(s.op, which, x);
    }
  }
}

// Computes with whole numbers; a shift by more bits than a number has gives 0, or -1.
double bits_of(TapeOp op, double x, double y) {
  if (!(std::abs(x) < 0x1p62 && std::abs(y) < 0x1p62)) return 0;
  const auto a = static_cast<std::int64_t>(x), b = static_cast<std::int64_t>(y);
  const bool in_range = b >= 0 && b < 63;
  switch (op) {
    case TapeOp::kAnd:
      return static_cast<double>(a & b);
    case TapeOp::kOr:
      return static_cast<double>(a | b);
    case TapeOp::kXor:
      return static_cast<double>(a ^ b);
    case TapeOp::kShiftLeft:
      return in_range ? std::ldexp(x, static_cast<int>(b)) : 0;
    default:
      return static_cast<double>(a >> (in_range ? b : 63));
  }
}

namespace {

double value_of_one(TapeOp op, double a) {
  switch (op) {
    case TapeOp::kNeg:
      return -a;
    case TapeOp::kAbs:
      return a < 0 ? -a : a;
    case TapeOp::kExp:
      return std::exp(a);
    case TapeOp::kLog:
      return std::log(a);
    case TapeOp::kTanh:
      return std::tanh(a);
    case TapeOp::kSqrt:
      return std::sqrt(a);
    case TapeOp::kSin:
      return std::sin(a);
    case TapeOp::kCos:
      return std::cos(a);
    case TapeOp::kTanhSlope:
      return 1 - a * a;
    case TapeOp::kErf:
      return std::erf(a);
    case TapeOp::kFloor:
      return std::floor(a);
    case TapeOp::kRound:
      return std::nearbyint(a);
    default:
      return 0;
  }
}

}  // namespace

double tape_value(TapeOp op, double a, double b, double c) {
  if (operands(op) == 1) return value_of_one(op, a);
  switch (op) {
    case TapeOp::kAdd:
      return a + b;
    case TapeOp::kSub:
      return a - b;
    case TapeOp::kMul:
      return a * b;
    case TapeOp::kDiv:
      return a / b;
    case TapeOp::kMin:
      return b < a ? b : a;
    case TapeOp::kMax:
      return a < b ? b : a;
    case TapeOp::kLess:
      return a < b ? 1 : 0;
    case TapeOp::kLessEqual:
      return a <= b ? 1 : 0;
    case TapeOp::kEqual:
      return a == b ? 1 : 0;
    case TapeOp::kNotEqual:
      return a != b ? 1 : 0;
    case TapeOp::kSelect:
      return a != 0 ? b : c;
    case TapeOp::kPull:
      return a == 0 ? a : a * b;
    case TapeOp::kPower:
      return std::pow(a, b);
    case TapeOp::kFloorDivide:
      return std::floor(a / b);
    case TapeOp::kModulo:
      return a - b * std::floor(a / b);
    case TapeOp::kAnd:
    case TapeOp::kOr:
    case TapeOp::kXor:
    case TapeOp::kShiftLeft:
    case TapeOp::kShiftRight:
      return bits_of(op, a, b);
    default:
      return 0;
  }
}

double tape_partial(TapeOp op, int which, const std::array<double, 3>& operands, double result) {
  const auto [a, b, c] = operands;
  return partial(op, which, Operands<double>{a, b, c, result});
}

}  // namespace fovea::detail

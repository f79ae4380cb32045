// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/program/score_program.h"

#include <algorithm>
#include <cmath>

#include "fovea/base/check.h"
#include "fovea/base/error.h"

namespace fovea::detail {

namespace {

using Leaf = ScoreStep::Leaf;

constexpr NamedOp kOps[] = {
    {"neg", TapeOp::kNeg},
    {"abs", TapeOp::kAbs},
    {"exp", TapeOp::kExp},
    {"log", TapeOp::kLog},
    {"tanh", TapeOp::kTanh},
    {"sqrt", TapeOp::kSqrt},
    {"sin", TapeOp::kSin},
    {"cos", TapeOp::kCos},
    {"erf", TapeOp::kErf},
    {"floor", TapeOp::kFloor},
    {"round", TapeOp::kRound},
    {"add", TapeOp::kAdd},
    {"sub", TapeOp::kSub},
    {"mul", TapeOp::kMul},
    {"div", TapeOp::kDiv},
    {"min", TapeOp::kMin},
    {"max", TapeOp::kMax},
    {"less", TapeOp::kLess},
    {"less_equal", TapeOp::kLessEqual},
    {"equal", TapeOp::kEqual},
    {"not_equal", TapeOp::kNotEqual},
    {"power", TapeOp::kPower},
    {"floor_divide", TapeOp::kFloorDivide},
    {"modulo", TapeOp::kModulo},
    {"and", TapeOp::kAnd},
    {"or", TapeOp::kOr},
    {"xor", TapeOp::kXor},
    {"shift_left", TapeOp::kShiftLeft},
    {"shift_right", TapeOp::kShiftRight},
    {"select", TapeOp::kSelect},
};

std::array<int, 3> operands_of(const ScoreStep& step) { return {step.a, step.b, step.c}; }

// Operations that make whole numbers of whole numbers.
bool keeps_whole(TapeOp op) {
  switch (op) {
    case TapeOp::kExp:
    case TapeOp::kLog:
    case TapeOp::kTanh:
    case TapeOp::kSqrt:
    case TapeOp::kSin:
    case TapeOp::kCos:
    case TapeOp::kErf:
    case TapeOp::kDiv:
    case TapeOp::kPower:
      return false;
    default:
      return true;
  }
}

// Operations whose results are whole, whatever they are of.
bool makes_whole(TapeOp op) {
  return op == TapeOp::kFloor || op == TapeOp::kRound || op == TapeOp::kFloorDivide ||
         (op >= TapeOp::kLess && op <= TapeOp::kNotEqual);
}

bool is_whole_number(double x) { return std::floor(x) == x && std::abs(x) < 0x1p53; }

}  // namespace

index CapturedTable::count() const {
  index count = 1;
  for (const index size : sizes) count *= size;
  return count;
}

bool CapturedTable::is_contiguous() const {
  index run = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0; run *= sizes[axis]) {
    if (sizes[axis] != 1 && strides[axis] != run) return false;
  }
  return true;
}

double CapturedTable::at(index offset) const {
  double value = 0;
  with_values(values, [&](const auto* all) { value = static_cast<double>(all[offset]); });
  return value;
}

std::span<const NamedOp> score_ops() { return kOps; }

ScoreProgram::ScoreProgram(std::vector<ScoreStep> steps, std::vector<CapturedTable> tables,
                           std::vector<bool> learns)
    : steps_(std::move(steps)), tables_(std::move(tables)), learns_(std::move(learns)) {
  fovea::check(!steps_.empty(), "attention: a program has no steps");
  learns_.resize(tables_.size(), false);
  depends_.resize(steps_.size());
  whole_.resize(steps_.size());
  lines_.resize(steps_.size());
  for (int n = 0; n < size(); ++n) {
    check(n);
    describe(n);
  }
  find_score_reader();
}

// A step reads only earlier ones, and a table by all of its axes.
void ScoreProgram::check(int n) const {
  const ScoreStep& s = step(n);
  const auto is_earlier = [&](int read) { return read >= 0 && read < n; };
  if (s.leaf == Leaf::kNone) {
    const bool known = std::any_of(std::begin(kOps), std::end(kOps),
                                   [&](const NamedOp& one) { return one.op == s.op; });
    fovea::check(known, "attention: step {} of a program has no operation {}", n,
                 static_cast<int>(s.op));
    for (int which = 0; which < operands(s.op); ++which) {
      fovea::check(is_earlier(operands_of(s)[static_cast<std::size_t>(which)]),
                   "attention: step {} of a program reads a step that is not before it", n);
    }
  } else if (s.leaf == Leaf::kRead) {
    fovea::check(s.table >= 0 && s.table < static_cast<int>(tables_.size()),
                 "attention: step {} of a program reads table {}; there are {}", n, s.table,
                 tables_.size());
    const CapturedTable& of = table(s.table);
    fovea::check(of.sizes.size() == of.strides.size() && of.sizes.size() <= ScoreStep::kMostAxes,
                 "attention: a captured tensor has {} axes; at most {} are allowed",
                 of.sizes.size(), ScoreStep::kMostAxes);
    for (std::size_t axis = 0; axis < of.sizes.size(); ++axis) {
      fovea::check(is_earlier(s.at[axis]) && is_whole(s.at[axis]),
                   "attention: step {} of a program reads axis {} of a table at no whole number", n,
                   axis);
    }
  }
}

void ScoreProgram::describe(int n) {
  const ScoreStep& s = step(n);
  constexpr std::uint8_t kDepends[] = {0, 0, kOnScore, kOnBatch, kOnHead, kOnQuery, kOnKey, 0};
  std::uint8_t depends = kDepends[static_cast<std::size_t>(s.leaf)];
  bool whole = s.leaf != Leaf::kScore;
  if (s.leaf == Leaf::kConstant) whole = is_whole_number(s.value);
  if (s.leaf == Leaf::kRead) {
    whole = table(s.table).is_whole();
    if (learns(s.table)) depends |= kOnLearned;
    for (std::size_t axis = 0; axis < table(s.table).sizes.size(); ++axis) {
      depends |= this->depends(s.at[axis]);
    }
  }
  if (s.leaf == Leaf::kNone) {
    bool of_whole = true;
    for (int which = 0; which < operands(s.op); ++which) {
      const int read = operands_of(s)[static_cast<std::size_t>(which)];
      depends |= this->depends(read);
      const bool is_condition = s.op == TapeOp::kSelect && which == 0;
      of_whole = of_whole && (is_condition || is_whole(read));
    }
    whole = makes_whole(s.op) || (keeps_whole(s.op) && of_whole);
  }
  depends_[static_cast<std::size_t>(n)] = depends;
  whole_[static_cast<std::size_t>(n)] = whole;
  lines_[static_cast<std::size_t>(n)] = line_of(n);
}

ScoreProgram::Line ScoreProgram::line_of(int n) const {
  const ScoreStep& s = step(n);
  if (s.leaf == Leaf::kQuery) return {true, true, 1, 0, 0};
  if (s.leaf == Leaf::kKey) return {true, true, 0, 1, 0};
  if (!is_whole(n)) return {};
  if (s.leaf == Leaf::kConstant) return {true, true, 0, 0, static_cast<index>(s.value)};
  Line result;
  if (s.leaf == Leaf::kNone && operands(s.op) <= 2) {
    const Line a = line(s.a), b = operands(s.op) == 2 ? line(s.b) : Line{true, true};
    const auto sum = [&](index times) {
      return Line{a.is_line && b.is_line, a.is_plain && b.is_plain, a.of_query + times * b.of_query,
                  a.of_key + times * b.of_key, a.constant + times * b.constant};
    };
    const auto times = [](const Line& x, index by) {
      return Line{x.is_line, x.is_plain, x.of_query * by, x.of_key * by, x.constant * by};
    };
    const auto is_number = [](const Line& x) {
      return x.is_plain && x.of_query == 0 && x.of_key == 0;
    };
    if (s.op == TapeOp::kAdd) result = sum(1);
    if (s.op == TapeOp::kSub) result = sum(-1);
    if (s.op == TapeOp::kNeg) result = times(a, -1);
    if (s.op == TapeOp::kMul && is_number(a)) result = times(b, a.constant);
    if (s.op == TapeOp::kMul && is_number(b)) result = times(a, b.constant);
  }
  const bool is_number = is_known(n) && (depends(n) & kOnLearned) == 0;
  if (!result.is_line && is_number) return {true, false};
  return result;
}

// A score that is only added, or multiplied by what is not learned, is not read by the gradient.
void ScoreProgram::find_score_reader() {
  enum Degree { kNone, kAdded, kRead };
  std::vector<Degree> degrees(steps_.size(), kNone);
  for (int n = 0; n < size(); ++n) {
    const ScoreStep& s = step(n);
    if (s.leaf == Leaf::kScore) degrees[static_cast<std::size_t>(n)] = kAdded;
    if (s.leaf == Leaf::kRead && (depends(n) & kOnScore) != 0) {
      degrees[static_cast<std::size_t>(n)] = kRead;
    }
    if (s.leaf != Leaf::kNone || (depends(n) & kOnScore) == 0) continue;
    const auto of = [&](int read) {
      return read < 0 ? kNone : degrees[static_cast<std::size_t>(read)];
    };
    const Degree most = std::max({of(s.a), of(s.b), of(s.c)});
    bool added = false;
    switch (s.op) {
      case TapeOp::kAdd:
      case TapeOp::kSub:
      case TapeOp::kNeg:
        added = true;
        break;
      case TapeOp::kMul: {
        const int other = of(s.a) == kNone ? s.a : s.b;
        added = of(other) == kNone && (depends(other) & kOnLearned) == 0;
        break;
      }
      case TapeOp::kDiv:
        added = of(s.b) == kNone && (depends(s.b) & kOnLearned) == 0;
        break;
      case TapeOp::kSelect:
        added = of(s.a) == kNone;
        break;
      default:
        break;
    }
    degrees[static_cast<std::size_t>(n)] = added ? most : kRead;
  }
  gradient_reads_score_ = degrees.back() == kRead;
}

index ScoreProgram::on_axis(const CapturedTable& table, int number, std::size_t axis, double at) {
  const index size = table.sizes[axis];
  const double place = at < 0 ? at + static_cast<double>(size) : at;
  if (!(place >= 0 && place < static_cast<double>(size))) fail_beyond(table, number, axis, at);
  return static_cast<index>(place);
}

void ScoreProgram::fail_beyond(const CapturedTable& table, int number, std::size_t axis,
                               double at) {
  std::string sizes;
  for (const index size : table.sizes) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  throw Error(ErrorCode::kShape,
              fmt::format("attention: index {} is beyond axis {} of captured tensor {}, [{}]", at,
                          axis, number, sizes),
              "an index is at least minus the size of its axis, and below it, for every query and "
              "key, the masked ones, too: clamp it");
}

index ScoreProgram::offset(int read, std::span<const double> values) const {
  const ScoreStep& s = step(read);
  const CapturedTable& of = table(s.table);
  index offset = 0;
  for (std::size_t axis = 0; axis < of.sizes.size(); ++axis) {
    const double at = values[static_cast<std::size_t>(s.at[axis])];
    offset += on_axis(of, s.table, axis, at) * of.strides[axis];
  }
  return offset;
}

double ScoreProgram::evaluate_step(int n, const ScorePlace& place, double score,
                                   std::span<const double> values) const {
  const ScoreStep& s = step(n);
  const auto value = [&](int read) {
    return read < 0 ? 0 : values[static_cast<std::size_t>(read)];
  };
  switch (s.leaf) {
    case Leaf::kConstant:
      return s.value;
    case Leaf::kScore:
      return score;
    case Leaf::kBatch:
      return static_cast<double>(place.batch);
    case Leaf::kHead:
      return static_cast<double>(place.head);
    case Leaf::kQuery:
      return static_cast<double>(place.query);
    case Leaf::kKey:
      return static_cast<double>(place.key);
    case Leaf::kRead:
      return table(s.table).at(offset(n, values));
    default:
      return tape_value(s.op, value(s.a), value(s.b), value(s.c));
  }
}

void ScoreProgram::evaluate(const ScorePlace& place, double score, std::span<double> values) const {
  for (int n = 0; n < size(); ++n) {
    values[static_cast<std::size_t>(n)] = evaluate_step(n, place, score, values);
  }
}

double ScoreProgram::value(const ScorePlace& place, double score) const {
  std::vector<double> values(steps_.size());
  evaluate(place, score, values);
  return values.back();
}

void ScoreProgram::evaluate_known(index batch, index head, std::span<double> values) const {
  for (int n = 0; n < size(); ++n) {
    if (!is_known(n)) continue;
    values[static_cast<std::size_t>(n)] = evaluate_step(n, {batch, head, 0, 0}, 0, values);
  }
}

void ScoreProgram::pull_step(int n, std::span<const double> values,
                             std::span<double> gradients) const {
  const ScoreStep& s = step(n);
  const auto value = [&](int read) {
    return read < 0 ? 0 : values[static_cast<std::size_t>(read)];
  };
  for (int which = 0; which < operands(s.op); ++which) {
    const auto read = static_cast<std::size_t>(operands_of(s)[static_cast<std::size_t>(which)]);
    const double by = tape_partial(s.op, which, {value(s.a), value(s.b), value(s.c)},
                                   values[static_cast<std::size_t>(n)]);
    // A factor of 0 stops it, whatever the gradient is.
    if (by != 0) gradients[read] += gradients[static_cast<std::size_t>(n)] * by;
  }
}

}  // namespace fovea::detail

// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/program/planned_program.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>

#include "fovea/base/check.h"

namespace fovea::detail {

namespace {

using Leaf = ScoreStep::Leaf;
using Line = ScoreProgram::Line;

constexpr std::size_t kMostIndices = 2;
// A table has at most so many sums; each head of each chunk of keys has as many.
constexpr index kMostSums = index{1} << 20;

}  // namespace

std::uint64_t PlannedProgram::next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

PlannedProgram::PlannedProgram(ScoreProgram program, const AttentionSizes& sizes,
                               std::vector<void*> gradients, double exact_to)
    : program_(std::move(program)),
      ranges_(program_),
      sizes_(sizes),
      gradients_(std::move(gradients)),
      plans_(static_cast<std::size_t>(program_.size())),
      serial_(next_serial()) {
  gradients_.resize(program_.tables().size());
  if (sizes.B == 0 || sizes.H == 0 || sizes.T == 0 || sizes.S == 0) {
    plan_no_scores();
    return;
  }
  std::vector<Range> ranges(static_cast<std::size_t>(program_.size()));
  ranges_.evaluate(everywhere(), ranges);
  check_numbers(ranges, exact_to);
  for (int n = 0; n < program_.size(); ++n) {
    if (program_.step(n).leaf != Leaf::kRead) continue;
    ReadPlan& plan = plans_[static_cast<std::size_t>(n)] = plan_of(n, ranges);
    if (plan.gradient != TableGradient::kSums) continue;
    plan.sums = sums_;
    sums_ += plan.sums_count;
    by_batch_ = by_batch_ || plan.by_batch;
  }
}

void PlannedProgram::check_sizes(const AttentionSizes& sizes, std::string_view what) const {
  const auto [B, T, S, H, G, D, Dv] = sizes_;
  check(sizes.B == B && sizes.T == T && sizes.S == S && sizes.H == H,
        "attention: the traced {} is for B={}, T={}, S={}, H={}; the call has {}, {}, {}, {}", what,
        B, T, S, H, sizes.B, sizes.T, sizes.S, sizes.H);
}

PlaceRanges PlannedProgram::everywhere() const {
  const auto below = [](index size) { return Range{0, static_cast<double>(size - 1)}; };
  return {below(sizes_.B), below(sizes_.H), below(sizes_.T), below(sizes_.S)};
}

void PlannedProgram::check_numbers(std::span<const Range> ranges, double exact_to) const {
  for (int n = 0; n < program_.size(); ++n) {
    const Range& range = ranges[static_cast<std::size_t>(n)];
    const bool bounded = std::isfinite(range.low) && std::isfinite(range.high);
    const double most = std::max(std::abs(range.low), std::abs(range.high));
    check(!program_.is_whole(n) || !bounded || most <= exact_to,
          Hint{"number what is captured from 0 on, or give query, key and value in float64"},
          "attention: a whole number of a program may be {}, and float32 has not all beyond {}",
          most, exact_to);
  }
}

// Nothing is read; gradients are set to 0.
void PlannedProgram::plan_no_scores() {
  for (int n = 0; n < program_.size(); ++n) {
    const ScoreStep& s = program_.step(n);
    if (s.leaf != Leaf::kRead || !program_.learns(s.table)) continue;
    ReadPlan& plan = plans_[static_cast<std::size_t>(n)];
    plan.gradient = TableGradient::kDirect;
    plan.own_batch = plan.own_head = true;
  }
}

ReadPlan PlannedProgram::plan_of(int n, std::span<const Range> ranges) const {
  const ScoreStep& s = program_.step(n);
  const CapturedTable& table = program_.table(s.table);
  ReadPlan plan;
  plan.by_place = true;
  plan.sums_count = 1;
  std::uint8_t depends = 0;
  for (std::size_t axis = 0; axis < table.sizes.size(); ++axis) {
    const Range& at = ranges[static_cast<std::size_t>(s.at[axis])];
    const auto size = static_cast<double>(table.sizes[axis]);
    if (!(at.low < size && at.high >= -size)) {
      ScoreProgram::fail_beyond(table, s.table, axis, at.low < size ? at.high : at.low);
    }
    if (program_.is_known(s.at[axis])) {
      const Leaf leaf = program_.step(s.at[axis]).leaf;
      depends |= program_.depends(s.at[axis]);
      plan.own_batch = plan.own_batch || leaf == Leaf::kBatch;
      plan.own_head = plan.own_head || leaf == Leaf::kHead;
      continue;
    }
    plan.axes.push_back(axis);
    plan.sums_count *= table.sizes[axis];
    plan.by_place =
        plan.by_place && program_.line(s.at[axis]).is_line && ranges_.is_inside(n, axis, ranges);
  }
  check(plan.by_place || plan.axes.size() <= kMostIndices,
        Hint{"read it by fewer: as table[i * width + j] of a flattened tensor"},
        "attention: captured tensor {} is read by {} indices that depend on the query or the key; "
        "{} may be other than sums of multiples of q_idx and kv_idx",
        s.table, plan.axes.size(), kMostIndices);
  plan.by_batch = (depends & ScoreProgram::kOnBatch) != 0;
  plan.own_batch = plan.own_batch || sizes_.B == 1;
  plan.own_head = plan.own_head || sizes_.H == 1;
  if (!program_.learns(s.table)) return plan;
  plan.gradient = adds_directly(n, plan) ? TableGradient::kDirect : TableGradient::kSums;
  check(plan.gradient == TableGradient::kDirect || plan.sums_count <= kMostSums,
        Hint{"use a smaller table, or read it at [q_idx, kv_idx]"},
        "attention: captured tensor {} has a gradient of {} entries that several keys share; {} "
        "are allowed",
        s.table, plan.sums_count, kMostSums);
  return plan;
}

// Whether each entry belongs to one query and key.
bool PlannedProgram::adds_directly(int n, const ReadPlan& plan) const {
  if (!plan.by_place) return false;
  const ScoreStep& s = program_.step(n);
  const auto line = [&](std::size_t which) { return program_.line(s.at[plan.axes[which]]); };
  if (plan.axes.size() == 1) {
    const index q = std::abs(line(0).of_query), k = std::abs(line(0).of_key);
    return q != 0 && k != 0 && (q >= k * sizes_.S || k >= q * sizes_.T);
  }
  bool query = false, key = false;
  for (std::size_t which = 0; which < plan.axes.size(); ++which) {
    query = query || (line(which).of_query != 0 && line(which).of_key == 0);
    key = key || (line(which).of_key != 0 && line(which).of_query == 0);
  }
  return query && key;
}

namespace {

// A number of the tape, or a sum of multiples of i and j with whole numbers.
struct Number {
  Traced traced;
  bool is_place = false;
  index of_i = 0, of_j = 0, constant = 0;
};

class Recorder {
 public:
  Recorder(const PlannedProgram& planned, LaneTape& tape, const Sequence& sequence, index head)
      : planned_(planned),
        program_(planned.program()),
        tape_(tape),
        known_(static_cast<std::size_t>(program_.size())),
        numbers_(static_cast<std::size_t>(program_.size())) {
    program_.evaluate_known(sequence.number, head, known_);
  }

  Traced run() {
    for (int n = 0; n < program_.size(); ++n) {
      numbers_[static_cast<std::size_t>(n)] = number(n);
    }
    return traced(numbers_.back());
  }

 private:
  Number number(int n);
  Number operation(const ScoreStep& s);
  Number read(int n);
  Traced traced(const Number& x) {
    if (!x.is_place) return x.traced;
    if (x.of_i == 0 && x.of_j == 0) return Traced(static_cast<double>(x.constant));
    return tape_.place(x.of_i, x.of_j, x.constant);
  }
  const Number& of(int n) const { return numbers_[static_cast<std::size_t>(n)]; }
  void find_gradient(int n, TableRead& read) const;

  const PlannedProgram& planned_;
  const ScoreProgram& program_;
  LaneTape& tape_;
  std::vector<double> known_;
  std::vector<Number> numbers_;
};

Number place(index of_i, index of_j, index constant) { return {{}, true, of_i, of_j, constant}; }
Number plain(double value) {
  const bool whole = std::floor(value) == value && std::abs(value) < 0x1p53;
  const bool negative_zero = value == 0 && std::signbit(value);
  if (whole && !negative_zero) return place(0, 0, static_cast<index>(value));
  return {Traced(value)};
}

Number Recorder::number(int n) {
  const ScoreStep& s = program_.step(n);
  const bool learns = (program_.depends(n) & ScoreProgram::kOnLearned) != 0;
  if (program_.is_known(n) && !learns) return plain(known_[static_cast<std::size_t>(n)]);
  switch (s.leaf) {
    case Leaf::kScore:
      return {tape_.score()};
    case Leaf::kQuery:
      return place(1, 0, 0);
    case Leaf::kKey:
      return place(0, 1, 0);
    case Leaf::kRead:
      return read(n);
    default:
      return operation(s);
  }
}

Number Recorder::operation(const ScoreStep& s) {
  const Number none;
  const Number& a = of(s.a);
  const Number& b = operands(s.op) > 1 ? of(s.b) : none;
  if (a.is_place && s.op == TapeOp::kNeg) return place(-a.of_i, -a.of_j, -a.constant);
  if (a.is_place && b.is_place) {
    const auto is_number = [](const Number& x) { return x.of_i == 0 && x.of_j == 0; };
    const auto sum = [&](index times) {
      return place(a.of_i + times * b.of_i, a.of_j + times * b.of_j,
                   a.constant + times * b.constant);
    };
    const auto times = [](const Number& x, index by) {
      return place(x.of_i * by, x.of_j * by, x.constant * by);
    };
    if (s.op == TapeOp::kAdd) return sum(1);
    if (s.op == TapeOp::kSub) return sum(-1);
    if (s.op == TapeOp::kMul && is_number(b)) return times(a, b.constant);
    if (s.op == TapeOp::kMul && is_number(a)) return times(b, a.constant);
    // Exact at any length: the difference is compared with 0.
    if (s.op >= TapeOp::kLess && s.op <= TapeOp::kNotEqual) {
      return {tape_.record(s.op, traced(sum(-1)), Traced(0), {})};
    }
  }
  const Number& c = operands(s.op) > 2 ? of(s.c) : none;
  return {tape_.record(s.op, traced(a), operands(s.op) > 1 ? traced(b) : Traced(),
                       operands(s.op) > 2 ? traced(c) : Traced())};
}

Number Recorder::read(int n) {
  const ScoreStep& s = program_.step(n);
  const CapturedTable& table = program_.table(s.table);
  const ReadPlan& plan = planned_.plan(n);
  const auto value = [&](std::size_t axis) { return known_[static_cast<std::size_t>(s.at[axis])]; };
  if (plan.axes.empty()) {  // a learned number of the head
    return {tape_.parameter(known_[static_cast<std::size_t>(n)], plan.sums)};
  }
  TableRead read{};
  read.table = table.values;
  read.number = s.table;
  read.learns = plan.gradient != TableGradient::kNone;
  Traced at[kMostIndices];
  std::size_t count = 0;
  for (std::size_t axis = 0; axis < table.sizes.size(); ++axis) {
    const index stride = table.strides[axis];
    const bool known = program_.is_known(s.at[axis]);
    const Number& index_of_axis = of(s.at[axis]);
    if (known) {
      read.at.constant += ScoreProgram::on_axis(table, s.table, axis, value(axis)) * stride;
    } else if (plan.by_place) {
      read.at.constant += index_of_axis.constant * stride;
      read.at.of_i += index_of_axis.of_i * stride;
      read.at.of_j += index_of_axis.of_j * stride;
    } else {
      read.at.stride[count] = stride;
      read.size[count] = table.sizes[axis];
      at[count++] = traced(index_of_axis);
    }
  }
  if (read.learns) find_gradient(n, read);
  if (plan.by_place) return {tape_.load(read)};
  return {tape_.gather(read, {at, count})};
}

// The gradient of a table is contiguous; sums have the axes that are not the same all over a head.
void Recorder::find_gradient(int n, TableRead& read) const {
  const ScoreStep& s = program_.step(n);
  const CapturedTable& table = program_.table(s.table);
  const ReadPlan& plan = planned_.plan(n);
  const bool direct = plan.gradient == TableGradient::kDirect;
  read.gradient = direct ? planned_.gradient(s.table) : nullptr;
  TableRead::Spot& spot = read.gradient_at;
  spot.constant = direct ? 0 : plan.sums;
  index stride = 1;
  std::size_t count = plan.axes.size();
  for (std::size_t axis = table.sizes.size(); axis-- > 0;) {
    const Number& at = of(s.at[axis]);
    const bool known = program_.is_known(s.at[axis]);
    if (known && !direct) continue;
    if (known) {
      const double value = known_[static_cast<std::size_t>(s.at[axis])];
      spot.constant += ScoreProgram::on_axis(table, s.table, axis, value) * stride;
    } else if (plan.by_place) {
      spot.constant += at.constant * stride;
      spot.of_i += at.of_i * stride;
      spot.of_j += at.of_j * stride;
    } else {
      spot.stride[--count] = stride;
    }
    stride *= table.sizes[axis];
  }
}

}  // namespace

void PlannedProgram::fail_beyond(const TableRead& read, const TileSite& site) const {
  std::vector<double> values(static_cast<std::size_t>(program_.size()));
  for (index i = site.query; i < site.query + site.queries; ++i) {
    for (index j = site.key; j < site.key + site.keys; ++j) {
      program_.evaluate({site.sequence.number, site.head, i, j}, 0, values);
    }
  }
  fail(ErrorCode::kShape,
       "attention: an index that depends on the score is beyond an axis of captured tensor {}",
       read.number);
}

Traced PlannedProgram::record(LaneTape& tape, const Sequence& sequence, index head) const {
  return Recorder(*this, tape, sequence, head).run();
}

namespace {

// Within a call what is captured does not change, so a program is compiled again only for another
// head, or another sequence.
struct Key {
  std::uint64_t serial = 0;  // no program has this one
  LanesFor use = LanesFor::kScores;
  index sequence = 0, head = 0;

  bool operator==(const Key&) const = default;
};

template <class T>
struct Entry {
  Key key;
  bool fits = false;
  std::unique_ptr<CompiledLanes<T>> lanes;
};

template <class T>
struct Kept {
  std::array<Entry<T>, 4> entries;
  std::size_t next = 0;
};

template <class T>
Kept<T>& kept() {
  thread_local Kept<T> kept;
  return kept;
}

template <class T>
void compile(const PlannedProgram& program, const Key& key, const Sequence& sequence,
             Entry<T>& to) {
  to.key = {};  // an exception leaves no entry
  const bool backward = key.use == LanesFor::kGradients;
  to.lanes = std::make_unique<CompiledLanes<T>>(backward ? LaneTape::Learned::kSymbol
                                                         : LaneTape::Learned::kConstant);
  LaneTape& tape = to.lanes->tape();
  Traced result = program.record(tape, sequence, key.head);
  if (key.use == LanesFor::kMask) {
    const Traced dropped = -std::numeric_limits<double>::infinity();
    result = tape.record(TapeOp::kSelect, result, tape.score(), dropped);
  }
  to.fits = to.lanes->compile(tape.is_valid() ? tape.step_of(result) : 0);
  to.key = key;
}

}  // namespace

template <class T>
const CompiledLanes<T>* lanes_of(const PlannedProgram& program, LanesFor use,
                                 const Sequence& sequence, index head) {
  const Key key{program.serial(), use, sequence.number, head};
  Kept<T>& all = kept<T>();
  for (const Entry<T>& entry : all.entries) {
    if (entry.key == key) return entry.fits ? entry.lanes.get() : nullptr;
  }
  Entry<T>& entry = all.entries[all.next];
  all.next = (all.next + 1) % all.entries.size();
  compile(program, key, sequence, entry);
  return entry.fits ? entry.lanes.get() : nullptr;
}

template const CompiledLanes<float>* lanes_of(const PlannedProgram&, LanesFor, const Sequence&,
                                              index);
template const CompiledLanes<double>* lanes_of(const PlannedProgram&, LanesFor, const Sequence&,
                                               index);

}  // namespace fovea::detail

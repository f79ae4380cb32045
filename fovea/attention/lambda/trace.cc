// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/trace.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <utility>

#include "fovea/base/check.h"

namespace fovea {

namespace detail {

namespace {

using Leaf = ScoreStep::Leaf;

// 0 and -0 are two constants: 1 / x tells them apart.
bool is_same(const ScoreStep& a, const ScoreStep& b) {
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  return a.leaf == b.leaf && a.op == b.op && a.a == b.a && a.b == b.b && a.c == b.c &&
         bits(a.value) == bits(b.value) && a.table == b.table && a.at == b.at;
}

// Whether the step is 1 or 0: a comparison, or such steps joined by && and ||.
bool is_truth(std::span<const ScoreStep> steps, int n) {
  const ScoreStep& step = steps[static_cast<std::size_t>(n)];
  if (step.leaf == Leaf::kConstant) return step.value == 0 || step.value == 1;
  if (step.leaf != Leaf::kNone) return false;
  if (step.op == TapeOp::kMin || step.op == TapeOp::kMax) {
    return is_truth(steps, step.a) && is_truth(steps, step.b);
  }
  return step.op >= TapeOp::kLess && step.op <= TapeOp::kNotEqual;
}

// The steps that the last one is made of, in order.
std::vector<ScoreStep> needed_steps(std::vector<ScoreStep> steps) {
  std::vector<bool> needed(steps.size());
  needed.back() = true;
  std::vector<int> number(steps.size());
  const auto for_each_read = [](ScoreStep& step, const auto& f) {
    for (int* const read : {&step.a, &step.b, &step.c}) {
      if (*read >= 0) f(*read);
    }
    if (step.leaf != Leaf::kRead) return;
    for (int& at : step.at) {
      if (at >= 0) f(at);
    }
  };
  for (std::size_t n = steps.size(); n-- > 0;) {
    if (!needed[n]) continue;
    for_each_read(steps[n], [&](int read) { needed[static_cast<std::size_t>(read)] = true; });
  }
  std::vector<ScoreStep> kept;
  for (std::size_t n = 0; n < steps.size(); ++n) {
    if (!needed[n]) continue;
    number[n] = static_cast<int>(kept.size());
    for_each_read(steps[n], [&](int& read) { read = number[static_cast<std::size_t>(read)]; });
    kept.push_back(steps[n]);
  }
  return kept;
}

}  // namespace

/// The steps of a function while it runs.
class Trace {
 public:
  Trace() : outer_(running_) {
    static std::atomic<std::uint64_t> last{0};
    number_ = ++last;
    running_ = this;
  }
  ~Trace() { running_ = outer_; }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  static Trace& running() {
    if (running_ != nullptr) return *running_;
    fail(ErrorCode::kUsage,
         Hint{"use its numbers and captured tensors inside the function that bias::traced() or "
              "mask::traced() calls"},
         "attention: no traced function is being called");
  }
  static bool is_constant(const TracedNumber& x) { return x.trace_ == 0; }
  static double constant(const TracedNumber& x) { return x.value_; }

  TracedNumber leaf(Leaf leaf) { return add({.leaf = leaf}); }
  TracedPlace place() {
    return {leaf(Leaf::kBatch), leaf(Leaf::kHead), leaf(Leaf::kQuery), leaf(Leaf::kKey)};
  }

  TracedNumber record(TapeOp op, std::span<const TracedNumber> operands) {
    ScoreStep step{.op = op};
    int* const reads[] = {&step.a, &step.b, &step.c};
    for (std::size_t n = 0; n < operands.size(); ++n) *reads[n] = step_of(operands[n]);
    return add(step);
  }

  TracedNumber read(const CapturedTable& table, void* gradient, std::span<const TracedNumber> at) {
    check(at.size() == table.sizes.size(), Hint{"give one index for each axis"},
          "attention: a captured tensor of {} axes is read at {} indices", table.sizes.size(),
          at.size());
    ScoreStep step{.leaf = Leaf::kRead};
    step.at.fill(-1);
    for (std::size_t axis = 0; axis < at.size(); ++axis) step.at[axis] = step_of(at[axis]);
    step.table = number_of(table, gradient);
    return add(step);
  }

  TracedNumber truth(const TracedNumber& x) {
    if (is_truth(steps_, step_of(x))) return x;
    return record(TapeOp::kNotEqual, std::array{x, TracedNumber(0)});
  }

  enum class Use { kBias, kMask };

  /// The program of that result, for calls of T.
  template <class T>
  std::shared_ptr<const PlannedProgram> plan(const TracedNumber& result,
                                             const AttentionSizes& sizes, Use use = Use::kBias) {
    for (const void* const gradient : gradients_) {
      check(use == Use::kBias || gradient == nullptr, Hint{"leave it out"},
            "attention: a mask has no gradient, and so none of what it reads");
    }
    steps_.resize(static_cast<std::size_t>(step_of(result)) + 1);
    std::vector<ScoreStep> steps = needed_steps(std::move(steps_));
    std::vector<bool> learns(tables_.size());
    for (std::size_t n = 0; n < tables_.size(); ++n) learns[n] = gradients_[n] != nullptr;
    check_learned<T>(steps);
    constexpr double kExactTo = sizeof(T) == sizeof(float) ? 0x1p24 : 0x1p53;
    return std::make_shared<const PlannedProgram>(
        ScoreProgram(std::move(steps), std::move(tables_), std::move(learns)), sizes,
        std::move(gradients_), kExactTo);
  }

 private:
  int step_of(const TracedNumber& x) {
    if (is_constant(x)) return add({.leaf = Leaf::kConstant, .value = x.value_}).step_;
    if (x.trace_ == number_) return x.step_;
    fail(ErrorCode::kUsage, Hint{"use the numbers that this call of the function has got"},
         "attention: a traced number belongs to another function, or another call");
  }

  TracedNumber add(const ScoreStep& step) {
    const auto found = std::find_if(steps_.begin(), steps_.end(),
                                    [&](const ScoreStep& one) { return is_same(one, step); });
    TracedNumber result = 0;
    result.trace_ = number_;
    result.step_ = static_cast<int>(found - steps_.begin());
    if (found == steps_.end()) steps_.push_back(step);
    return result;
  }

  int number_of(const CapturedTable& table, void* gradient) {
    for (std::size_t n = 0; n < tables_.size(); ++n) {
      if (tables_[n].values.data == table.values.data && tables_[n].sizes == table.sizes &&
          gradients_[n] == gradient) {
        return static_cast<int>(n);
      }
    }
    tables_.push_back(table);
    gradients_.push_back(gradient);
    if (table.is_whole() && table.count() > 0) find_bounds(tables_.back());
    return static_cast<int>(tables_.size()) - 1;
  }

  static void find_bounds(CapturedTable& table) {
    table.low = table.high = table.at(0);
    for (index n = 1, count = table.count(); n < count; ++n) {
      const double value = table.at(n);
      table.low = std::min(table.low, value);
      table.high = std::max(table.high, value);
    }
  }

  template <class T>
  void check_learned(std::span<const ScoreStep> steps) const {
    constexpr auto kType =
        sizeof(T) == sizeof(float) ? LaneTable::Type::kFloat : LaneTable::Type::kDouble;
    std::vector<int> reads(tables_.size());
    for (const ScoreStep& step : steps) {
      if (step.leaf != Leaf::kRead) continue;
      const auto table = static_cast<std::size_t>(step.table);
      if (gradients_[table] == nullptr) continue;
      check(tables_[table].values.type == kType, Hint{"give both in float, or both in double"},
            "attention: captured tensor {} has a gradient, and another type than the call", table);
      check(++reads[table] <= 1, Hint{"read it once, and use that number twice"},
            "attention: captured tensor {} has a gradient, and is read at two indices", table);
    }
    for (std::size_t table = 0; table < tables_.size(); ++table) {
      check(gradients_[table] == nullptr || reads[table] == 1,
            Hint{"leave its gradient out, or use what is read"},
            "attention: captured tensor {} has a gradient, but the result does not depend on it",
            table);
    }
  }

  static thread_local Trace* running_;
  Trace* outer_;
  std::uint64_t number_;
  std::vector<ScoreStep> steps_;
  std::vector<CapturedTable> tables_;
  std::vector<void*> gradients_;  // of each table
};

thread_local Trace* Trace::running_ = nullptr;

TracedNumber record_step(TapeOp op, std::initializer_list<TracedNumber> operands) {
  if (!std::all_of(operands.begin(), operands.end(), &Trace::is_constant)) {
    return Trace::running().record(op, {operands.begin(), operands.size()});
  }
  std::array<double, 3> values = {};
  std::transform(operands.begin(), operands.end(), values.begin(), &Trace::constant);
  return tape_value(op, values[0], values[1], values[2]);
}

TracedNumber record_read(const CapturedTable& table, void* gradient,
                         std::span<const TracedNumber> at) {
  return Trace::running().read(table, gradient, at);
}

TracedNumber record_truth(const TracedNumber& condition) {
  if (Trace::is_constant(condition)) return Trace::constant(condition) != 0;
  return Trace::running().truth(condition);
}

namespace {

template <class V>
constexpr LaneTable::Type type_of() {
  if (std::is_same_v<V, float>) return LaneTable::Type::kFloat;
  if (std::is_same_v<V, double>) return LaneTable::Type::kDouble;
  if (std::is_same_v<V, std::int32_t>) return LaneTable::Type::kInt32;
  return std::is_same_v<V, std::int64_t> ? LaneTable::Type::kInt64 : LaneTable::Type::kByte;
}

}  // namespace

}  // namespace detail

template <class V>
Captured<V>::Captured(const V* values, const std::vector<index>& sizes)
    : table_{{values, detail::type_of<V>()}, sizes, std::vector<index>(sizes.size()), 0, 1} {
  constexpr std::size_t kMost = detail::ScoreStep::kMostAxes;
  check(sizes.size() <= kMost, "attention: a captured tensor has {} axes; at most {} are allowed",
        sizes.size(), kMost);
  index count = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    check(sizes[axis] >= 0, "attention: axis {} of a captured tensor has size {}", axis,
          sizes[axis]);
    table_.strides[axis] = count;
    count = checked_product(count, sizes[axis], "attention: the size of a captured tensor");
  }
  check(count == 0 || values != nullptr, "attention: a captured tensor has sizes but no data");
}

namespace bias {

template <class T>
Bias<T> traced(const AttentionSizes& sizes,
               const std::function<TracedNumber(TracedNumber, const TracedPlace&)>& function) {
  detail::Trace trace;
  const TracedNumber score = trace.leaf(detail::ScoreStep::Leaf::kScore);
  const TracedNumber result = function(score, trace.place());
  return detail::ProgramBias<T>(trace.plan<T>(result, sizes));
}

}  // namespace bias

namespace mask {

Mask traced(const AttentionSizes& sizes,
            const std::function<TracedNumber(const TracedPlace&)>& function) {
  detail::Trace trace;
  const TracedNumber result = function(trace.place());
  // A plan for float serves calls of double too, which have the same whole numbers.
  return detail::ProgramMask(trace.plan<float>(result, sizes, detail::Trace::Use::kMask));
}

}  // namespace mask

template class Captured<float>;
template class Captured<double>;
template class Captured<std::int32_t>;
template class Captured<std::int64_t>;
template class Captured<std::uint8_t>;
template class Captured<bool>;

#define FOVEA_INSTANTIATE(T)     \
  template Bias<T> bias::traced( \
      const AttentionSizes&,     \
      const std::function<TracedNumber(TracedNumber, const TracedPlace&)>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea

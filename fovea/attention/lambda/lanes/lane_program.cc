// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/lanes/lane_program.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "fovea/simd/prefetch.h"

namespace fovea::detail {

namespace {

constexpr std::int16_t kAlways = LaneTape::kMost;  // read at the end

std::array<int, 3> operands_of(const TapeStep& step) { return {step.a, step.b, step.c}; }

}  // namespace

LaneProgram::LaneProgram(const LaneTape& program, int result, std::span<const int> sums)
    : sums_(sums.size()), last_(result), result_step_(result) {
  for (const int n : sums) last_ = std::max(last_, n);
  for (const int n : program.stores()) last_ = std::max(last_, n);
  find_diagonals(program);
  std::fill_n(last_reader_.begin(), last_ + 1, kNone);
  std::fill_n(sum_.begin(), last_ + 1, kNone);
  std::int16_t number = 0;
  for (const int n : sums) {
    last_reader_[at(n)] = static_cast<std::int16_t>(n);
    sum_[at(n)] = number++;
  }
  for (const int n : program.stores()) last_reader_[at(n)] = static_cast<std::int16_t>(n);
  last_reader_[at(result)] = kAlways;
  find_readers(program);
  add_steps(program);
  result_ = strip_[at(result)];
}

LaneProgram LaneProgram::of_diagonals(const LaneTape& program, const LaneProgram& lane_program) {
  LaneProgram result;
  result.diagonals_count_ = lane_program.diagonals_count_;
  result.last_ = lane_program.last_;
  const auto count = static_cast<std::size_t>(result.last_) + 1;
  std::fill_n(result.on_diagonals_.begin(), count, false);
  std::fill_n(result.last_reader_.begin(), count, kNone);
  std::fill_n(result.sum_.begin(), count, kNone);
  for (std::size_t n = 0; n < result.diagonals_count_; ++n) {
    result.diagonals_[n] = lane_program.diagonals_[n];
    result.last_reader_[at(result.diagonals_[n])] = kAlways;
  }
  result.find_readers(program);
  result.add_steps(program);
  return result;
}

void LaneProgram::find_diagonals(const LaneTape& program) {
  for (int n = 0; n <= last_; ++n) {
    const TapeStep& step = program.step(n);
    const bool by_place =
        step.op == TapeOp::kPlace || step.op == TapeOp::kLoad || step.op == TapeOp::kStore;
    bool all = !step.known && (by_place ? step.of_i == -step.of_j : operands(step.op) > 0);
    if (is_store(step.op)) {
      // The values that it adds may differ; the places where it adds may not.
      for (int which = 1; which < operands(step.op); ++which) {
        all = all && on_diagonals_[at(operands_of(step)[at(which)])];
      }
      on_diagonals_[at(n)] = all;
      continue;
    }
    for (int which = 0; which < operands(step.op); ++which) {
      const int read = operands_of(step)[at(which)];
      all = all && (program.step(read).known || on_diagonals_[at(read)]);
    }
    on_diagonals_[at(n)] = all;
  }
}

void LaneProgram::find_readers(const LaneTape& program) {
  std::fill_n(readers_.begin(), last_ + 1, std::int16_t{0});
  std::fill_n(factor_of_.begin(), last_ + 1, kNone);
  for (int n = last_; n >= 0; --n) {
    const TapeStep& step = program.step(n);
    if (last_reader_[at(n)] == kNone || step.known) continue;
    if (step.op == TapeOp::kDscore) dscore_step_ = n;
    reads_score_ = reads_score_ || step.op == TapeOp::kScore;
    reads_dscore_ = reads_dscore_ || step.op == TapeOp::kDscore;
    if (on_diagonals_[at(n)] && !is_store(step.op)) continue;
    for (int which = 0; which < operands(step.op); ++which) {
      const std::size_t read = at(operands_of(step)[at(which)]);
      last_reader_[read] = std::max(last_reader_[read], static_cast<std::int16_t>(n));
      ++readers_[read];
    }
  }
}

// Merges a factor into the step that uses it: tanh(s / 30) becomes one step.
void LaneProgram::join_factors(const LaneTape& program) {
  for (int n = 0; n <= last_; ++n) {
    const TapeStep& step = program.step(n);
    const bool takes_factor = step.op == TapeOp::kTanh || step.op == TapeOp::kExp;
    if (last_reader_[at(n)] == kNone || step.known || on_diagonals_[at(n)] || !takes_factor)
      continue;
    const TapeStep& product = program.step(step.a);
    const bool divides = product.op == TapeOp::kDiv;
    if ((product.op != TapeOp::kMul && !divides) || last_reader_[at(step.a)] != n ||
        readers_[at(step.a)] > 1) {
      continue;
    }
    const bool a_known = program.step(product.a).known;
    if (a_known == program.step(product.b).known || (divides && a_known)) continue;
    const std::int16_t other = program.step(product.a).known ? product.b : product.a;
    factor_of_[at(n)] = step.a;
    last_reader_[at(step.a)] = kNone;
    last_reader_[at(other)] = std::max(last_reader_[at(other)], static_cast<std::int16_t>(n));
  }
}

void LaneProgram::add_steps(const LaneTape& program) {
  join_factors(program);
  const auto add_all = [&](bool known) {
    for (int n = 0; n <= last_; ++n) {
      if (last_reader_[at(n)] != kNone && program.step(n).known == known) add(program, n);
    }
  };
  add_all(true);
  constants_ = count_;
  add_all(false);
}

void LaneProgram::add(const LaneTape& program, int n) {
  const TapeStep& from = program.step(n);
  if (from.op == TapeOp::kScore || from.op == TapeOp::kDscore) {
    strip_[at(n)] = from.op == TapeOp::kScore ? kScores : kValues;
    if (sum_[at(n)] == kNone) return;
  }
  LaneStep& step = steps_[count_++];
  step.table = from.table;
  step.op = from.known ? TapeOp::kConstant : from.op;
  step.value = from.value;
  step.of_i = from.of_i;
  step.of_j = from.of_j;
  step.constant = from.constant;
  step.sum = sum_[at(n)];
  step.on_diagonals = on_diagonals_[at(n)];
  if (step.on_diagonals && !is_store(from.op)) {
    step.op = TapeOp::kPlace;
    step.a = static_cast<std::int16_t>(diagonals_count_);
    diagonals_[diagonals_count_++] = static_cast<std::int16_t>(n);
  } else if (factor_of_[at(n)] != kNone) {
    const TapeStep& product = program.step(factor_of_[at(n)]);
    const bool first = program.step(product.a).known;
    const double factor = program.step(first ? product.a : product.b).value;
    step.value = product.op == TapeOp::kDiv ? 1 / factor : factor;
    step.a = operand(program, n, first ? product.b : product.a);
  } else {
    const int count = operands(step.op);
    if (!from.known) step.value = 1;
    if (count > 0) step.a = operand(program, n, from.a);
    if (count > 1) step.b = operand(program, n, from.b);
    if (count > 2) step.c = operand(program, n, from.c);
  }
  if (is_store(from.op)) {
    step.to = step.on_diagonals ? static_cast<std::int16_t>(diagonal_stores_++) : kNone;
    if (step.on_diagonals && operands(from.op) > 1) step.of_i = diagonal_of(from.b);
    if (step.on_diagonals && operands(from.op) > 2) step.of_j = diagonal_of(from.c);
    return;
  }
  step.to = strip_[at(n)] = strip_for(program, n);
  if (last_reader_[at(n)] == n) release(n);
}

index LaneProgram::diagonal_of(int n) const {
  return std::find(diagonals_.begin(), diagonals_.begin() + diagonals_count_, n) -
         diagonals_.begin();
}

// A step may overwrite a strip if it is the last step that reads it.
std::int16_t LaneProgram::operand(const LaneTape& program, int reader, int n) {
  const bool is_last = last_reader_[at(n)] == reader && !released_[at(n)];
  if (is_last && !program.step(n).known) release(n);
  return strip_[at(n)];
}

void LaneProgram::release(int n) {
  if (strip_[at(n)] > kValues) free_[free_count_++] = strip_[at(n)];
  released_[at(n)] = true;
}

std::int16_t LaneProgram::strip_for(const LaneTape& program, int n) {
  const TapeOp op = program.step(n).op;
  if (op == TapeOp::kScore || op == TapeOp::kDscore) return strip_[at(n)];
  if (op == TapeOp::kPull && last_reader_[at(n)] == n) return kNone;
  if (n == result_step_ && !program.step(n).known) {
    // The strip kValues holds dscore until the last step that reads it.
    const bool is_free =
        dscore_step_ == kNone || released_[at(dscore_step_)] || last_reader_[at(dscore_step_)] <= n;
    if (is_free) return kValues;
  }
  if (free_count_ > 0) return free_[--free_count_];
  return strips_++;
}

namespace {

// The rows of a table [.., T, S] or [.., S, T] that a tile reads; of other tables, none.
template <class V>
Rows<const V> rows_of_tile(const V* table, const TableRead::Spot& spot, const TileSite& site) {
  const V* const first = table + spot.constant + spot.of_i * site.query + spot.of_j * site.key;
  if (spot.of_j == 1 && spot.of_i > 1) return {first, site.queries, site.keys, spot.of_i};
  if (spot.of_i == 1 && spot.of_j > 1) return {first, site.keys, site.queries, spot.of_j};
  return {};
}

}  // namespace

template <class T>
bool CompiledLanes<T>::compile(int result) {
  if (tape_.is_valid() && differentiates_) result = tape_.differentiate(result);
  if (!tape_.is_valid()) return false;
  for (const KnownGradient& known : tape_.known_gradients()) {
    int* const end = sums_.data() + sum_count_;
    if (std::find(sums_.data(), end, known.sum) == end) sums_[sum_count_++] = known.sum;
  }
  lanes_.emplace(tape_, result, std::span<const int>(sums_.data(), sum_count_));
  return true;
}

template <class T>
const TableRead* CompiledLanes<T>::apply(const TileSite& site, const ScoreTile<T>& tile) const {
  const Rows<T> values = tile.rows(site);
  return read(run_lanes<T>(tape_, *lanes_, {values, values, tile.lanes, site.query, site.key},
                           nullptr, nullptr));
}

template <class T>
const TableRead* CompiledLanes<T>::pull(const TileSite& site, const ScoreTile<T>& scores,
                                        const ScoreTile<T>& dscores, double* parameters) const {
  std::array<double, LaneTape::kMostKnown> sums;
  const int beyond = run_lanes<T>(
      tape_, *lanes_, {scores.rows(site), dscores.rows(site), dscores.lanes, site.query, site.key},
      sums.data(), parameters);
  for (const KnownGradient& known : tape_.known_gradients()) {
    const auto number =
        std::find(sums_.data(), sums_.data() + sum_count_, known.sum) - sums_.data();
    const double sum = sums[static_cast<std::size_t>(number)];
    tape_.pull_known(known.known, known.scale * sum, parameters);
  }
  return read(beyond);
}

template <class T>
void CompiledLanes<T>::prefetch_apply(const TileSite& site, Prefetch& prefetch) const {
  for (const TableRead& read : tape_.reads()) {
    with_values(read.table, [&](const auto* values) {
      prefetch.add_soon(rows_of_tile(values, read.at, site));
    });
  }
}

template <class T>
void CompiledLanes<T>::prefetch_pull(const TileSite& site, Prefetch& prefetch) const {
  for (const TableRead& read : tape_.reads()) {
    if (read.gradient == nullptr) continue;
    prefetch.add_soon(rows_of_tile(static_cast<const T*>(read.gradient), read.gradient_at, site));
  }
}

template class CompiledLanes<float>;
template class CompiledLanes<double>;

}  // namespace fovea::detail

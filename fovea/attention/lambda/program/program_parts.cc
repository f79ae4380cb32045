// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/program/program_parts.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "fovea/attention/lambda/program/planned_program.h"
#include "fovea/base/check.h"

namespace fovea::detail {

namespace {

using Leaf = ScoreStep::Leaf;

ScorePlace place_of(const ScoreSite& site) {
  return {site.sequence.number, site.head, site.i, site.j};
}

// The index of the sum that a read at this place adds to.
index sum_of(const PlannedProgram& planned, int read, std::span<const double> values) {
  const ScoreStep& s = planned.program().step(read);
  const CapturedTable& table = planned.program().table(s.table);
  const ReadPlan& plan = planned.plan(read);
  index at = 0;
  for (const std::size_t axis : plan.axes) {
    const double value = values[static_cast<std::size_t>(s.at[axis])];
    at = at * table.sizes[axis] + ScoreProgram::on_axis(table, s.table, axis, value);
  }
  return plan.sums + at;
}

// The index of the entry in the contiguous gradient of the table.
index entry_of(const PlannedProgram& planned, int read, std::span<const double> values) {
  const ScoreStep& s = planned.program().step(read);
  const CapturedTable& table = planned.program().table(s.table);
  index at = 0;
  for (std::size_t axis = 0; axis < table.sizes.size(); ++axis) {
    const double value = values[static_cast<std::size_t>(s.at[axis])];
    at = at * table.sizes[axis] + ScoreProgram::on_axis(table, s.table, axis, value);
  }
  return at;
}

// Calls f(step, plan, table) for each step that reads a table with a gradient of this kind.
template <class F>
void for_each_learned(const PlannedProgram& planned, TableGradient kind, const F& f) {
  const ScoreProgram& program = planned.program();
  for (int n = 0; n < program.size(); ++n) {
    if (program.step(n).leaf != Leaf::kRead || planned.plan(n).gradient != kind) continue;
    f(n, planned.plan(n), program.table(program.step(n).table));
  }
}

}  // namespace

template <class T>
T ProgramBias<T>::apply_one(const ScoreSite& site, const ScoreRows<T>&, T score) const {
  return static_cast<T>(program_->program().value(place_of(site), static_cast<double>(score)));
}

template <class T>
T ProgramBias<T>::pull_one(const ScoreSite& site, const ScoreRows<T>&, T score, T dscore,
                           const ScoreGradients<T>& gradients) const {
  const ScoreProgram& program = program_->program();
  std::vector<double> values(static_cast<std::size_t>(program.size()));
  program.evaluate(place_of(site), static_cast<double>(score), values);
  const auto add = [&](int read, double gradient) {
    if (program_->plan(read).gradient == TableGradient::kSums) {
      gradients.parameters[sum_of(*program_, read, values)] += gradient;
    } else {
      T* const of_table = static_cast<T*>(program_->gradient(program.step(read).table));
      of_table[entry_of(*program_, read, values)] += static_cast<T>(gradient);
    }
  };
  return static_cast<T>(program.pull(values, static_cast<double>(dscore), add));
}

template <class T>
void ProgramBias<T>::apply(const TileSite& site, const TileRows<T>& rows,
                           const ScoreTile<T>& tile) const {
  const auto* const lanes = lanes_of<T>(*program_, LanesFor::kScores, site.sequence, site.head);
  if (lanes == nullptr) return BiasPart<T>::apply(site, rows, tile);
  const TableRead* const beyond = lanes->apply(site, tile);
  if (beyond != nullptr) program_->fail_beyond(*beyond, site);
}

template <class T>
void ProgramBias<T>::pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>& scores,
                          const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const {
  const auto* const lanes = lanes_of<T>(*program_, LanesFor::kGradients, site.sequence, site.head);
  if (lanes == nullptr) return BiasPart<T>::pull(site, rows, scores, dscores, gradients);
  lanes->pull(site, scores, dscores, gradients.parameters);
}

template <class T>
void ProgramBias<T>::prefetch_apply(const TileSite& site, Prefetch& prefetch) const {
  const auto* const lanes = lanes_of<T>(*program_, LanesFor::kScores, site.sequence, site.head);
  if (lanes != nullptr) lanes->prefetch_apply(site, prefetch);
}

template <class T>
void ProgramBias<T>::prefetch_pull(const TileSite& site, Prefetch& prefetch) const {
  const auto* const lanes = lanes_of<T>(*program_, LanesFor::kGradients, site.sequence, site.head);
  if (lanes != nullptr) lanes->prefetch_pull(site, prefetch);
}

template <class T>
void ProgramBias<T>::store_gradient(const double* sums, index heads) const {
  for_each_learned(
      *program_, TableGradient::kSums,
      [&](int read, const ReadPlan&, const CapturedTable&) { store(read, sums, heads); });
}

// Adds the sums of all heads at the places that they have in the table.
template <class T>
void ProgramBias<T>::store(int read, const double* sums, index heads) const {
  const ScoreProgram& program = program_->program();
  const ScoreStep& s = program.step(read);
  const CapturedTable& table = program.table(s.table);
  const ReadPlan& plan = program_->plan(read);
  std::vector<double> known(static_cast<std::size_t>(program.size()));
  std::vector<double> total(static_cast<std::size_t>(table.count()));
  std::vector<index> places(static_cast<std::size_t>(plan.sums_count));
  std::vector<index> strides(table.sizes.size());
  index all = 1;
  for (std::size_t axis = strides.size(); axis-- > 0; all *= table.sizes[axis]) strides[axis] = all;
  for (std::size_t n = 0; n < places.size(); ++n) {
    auto rest = static_cast<index>(n);
    for (std::size_t which = plan.axes.size(); which-- > 0;) {
      const index size = table.sizes[plan.axes[which]];
      places[n] += rest % size * strides[plan.axes[which]];
      rest /= size;
    }
  }
  for (index row = 0; row < heads; ++row) {
    program.evaluate_known(row / program_->sizes().H, row % program_->sizes().H, known);
    index first = 0;
    for (std::size_t axis = 0; axis < table.sizes.size(); ++axis) {
      if (!program.is_known(s.at[axis])) continue;
      const double value = known[static_cast<std::size_t>(s.at[axis])];
      first += ScoreProgram::on_axis(table, s.table, axis, value) * strides[axis];
    }
    const double* const own = sums + row * program_->sums() + plan.sums;
    for (std::size_t n = 0; n < places.size(); ++n) {
      total[static_cast<std::size_t>(first + places[n])] += own[n];
    }
  }
  T* const to = static_cast<T*>(program_->gradient(s.table));
  std::transform(total.begin(), total.end(), to, [](double x) { return static_cast<T>(x); });
}

template <class T>
void ProgramBias<T>::start_gradient(const Context& ctx) const {
  const ScoreProgram& program = program_->program();
  for_each_learned(*program_, TableGradient::kDirect,
                   [&](int read, const ReadPlan&, const CapturedTable& table) {
                     T* const to = static_cast<T*>(program_->gradient(program.step(read).table));
                     ctx.for_ranges(table.count(), sizeof(T), [&](index begin, index end) {
                       std::fill(to + begin, to + end, T{0});
                     });
                   });
}

template <class T>
SharedGradient ProgramBias<T>::shared_gradient() const {
  SharedGradient shared;
  for_each_learned(*program_, TableGradient::kDirect,
                   [&](int, const ReadPlan& plan, const CapturedTable&) {
                     shared.batch = shared.batch || !plan.own_batch;
                     shared.heads = shared.heads || !plan.own_head;
                   });
  return shared;
}

template <class T>
void ProgramBias<T>::name_parameters(OverlapCheck& memory) const {
  name_tables(program_->program().tables(), memory);
}

template <class T>
void ProgramBias<T>::name_gradients(OverlapCheck& memory) const {
  const ScoreProgram& program = program_->program();
  for (int n = 0; n < static_cast<int>(program.tables().size()); ++n) {
    if (!program.learns(n)) continue;
    memory.write("the gradient of a captured tensor",
                 Vec<T>{static_cast<T*>(program_->gradient(n)), program.table(n).count()});
  }
}

template <class T>
void ProgramBias<T>::check_shape(const AttentionSizes& sizes) const {
  program_->check_sizes(sizes, "function");
}

template <class T>
std::string ProgramBias<T>::name() const {
  const bool any = program_->sizes().T > 0 && program_->sizes().S > 0 && program_->sizes().B > 0;
  const Sequence sequence{.queries = program_->sizes().T, .keys = program_->sizes().S};
  const bool fits = !any || lanes_of<T>(*program_, LanesFor::kGradients, sequence, 0) != nullptr;
  return fits ? "traced" : "traced (score by score: it takes too many steps)";
}

template class ProgramBias<float>;
template class ProgramBias<double>;

namespace {

using Line = ScoreProgram::Line;

constexpr index kFar = index{1} << 60;
// Ranges of so few rows are asked for within a tile, which is computed anyway.
constexpr index kFewRows = 16;

// The first and the last block of [0, blocks) that is not empty: [begin, end).
template <class IsEmpty>
index first_block(index begin, index end, const IsEmpty& is_empty) {
  if (begin >= end || is_empty(begin, end)) return end;
  if (end - begin == 1) return begin;
  const index middle = begin + (end - begin) / 2, found = first_block(begin, middle, is_empty);
  return found < middle ? found : first_block(middle, end, is_empty);
}
template <class IsEmpty>
index last_block(index begin, index end, const IsEmpty& is_empty) {
  if (begin >= end || is_empty(begin, end)) return begin;
  if (end - begin == 1) return end;
  const index middle = begin + (end - begin) / 2, found = last_block(middle, end, is_empty);
  return found > middle ? found : last_block(begin, middle, is_empty);
}

// A range without the blocks at its ends of which nothing is kept. is_empty(begin, end) looks at
// rows.
template <class IsEmpty>
std::pair<index, index> without_empty_ends(std::pair<index, index> range, const IsEmpty& is_empty) {
  if (range.first >= range.second) return range;
  const auto blocks_empty = [&](index begin, index end) {
    return is_empty(std::max(range.first, begin * kRowBlock),
                    std::min(range.second, end * kRowBlock));
  };
  const index begin = range.first / kRowBlock, end = (range.second + kRowBlock - 1) / kRowBlock;
  const index first = first_block(begin, end, blocks_empty);
  if (first == end) return {range.first, range.first};
  const index last = last_block(first, end, blocks_empty);
  return {std::max(range.first, first * kRowBlock), std::min(range.second, last * kRowBlock)};
}

}  // namespace

ProgramMask::ProgramMask(std::shared_ptr<const PlannedProgram> program)
    : program_(std::move(program)), band_{-kFar, kFar, 0, kFar, 0, kFar} {
  find_band(program_->program().result());
}

// Steps that are joined by `and`, which of conditions is the smaller one.
void ProgramMask::find_band(int n) {
  const ScoreProgram& program = program_->program();
  const ScoreStep& s = program.step(n);
  if (s.leaf == Leaf::kNone && s.op == TapeOp::kMin) {
    find_band(s.a);
    find_band(s.b);
    return;
  }
  if (s.leaf == Leaf::kConstant && s.value != 0) return;
  const bool compares =
      s.leaf == Leaf::kNone && (s.op == TapeOp::kLess || s.op == TapeOp::kLessEqual);
  if (!compares) {
    is_band_ = false;
    return;
  }
  const index strict = s.op == TapeOp::kLess ? 1 : 0;
  const Line a = program.line(s.a), b = program.line(s.b);
  const ScoreStep& of_a = program.step(s.a);
  if (a.is_plain && b.is_plain) {
    // a <= b, as 0 <= b - a
    keep_below({true, true, b.of_query - a.of_query, b.of_key - a.of_key,
                b.constant - a.constant - strict});
  } else if (of_a.leaf == Leaf::kNone && of_a.op == TapeOp::kAbs && b.is_plain && b.of_query == 0 &&
             b.of_key == 0) {
    keep_distance(program.line(of_a.a), b.constant - strict);
  } else {
    is_band_ = false;
  }
}

// Keeps 0 <= line.
void ProgramMask::keep_below(const Line& line) {
  const auto [is_line, is_plain, q, k, c] = line;
  if (q == 1 && k == -1) {
    band_.high = std::min(band_.high, c);
  } else if (q == -1 && k == 1) {
    band_.low = std::max(band_.low, -c);
  } else if (q == 0 && k == -1) {
    band_.last_key = std::min(band_.last_key, c);
  } else if (q == 0 && k == 1) {
    band_.first_key = std::max(band_.first_key, -c);
  } else if (q == -1 && k == 0) {
    band_.last_query = std::min(band_.last_query, c);
  } else if (q == 1 && k == 0) {
    band_.first_query = std::max(band_.first_query, -c);
  } else {
    is_band_ = false;
  }
}

// Keeps |line| <= most.
void ProgramMask::keep_distance(const Line& line, index most) {
  if (!line.is_plain) {
    is_band_ = false;
    return;
  }
  keep_below({true, true, line.of_query, line.of_key, line.constant + most});
  keep_below({true, true, -line.of_query, -line.of_key, most - line.constant});
}

bool ProgramMask::keeps(const ScoreSite& site) const {
  return program_->program().value({site.sequence.number, site.head, site.i, site.j}, 0) != 0;
}

TileKind ProgramMask::kind(const TileSite& site) const {
  const Range range = program_->ranges().result(ranges_of(site));
  if (range.is_zero()) return TileKind::kNone;
  return range.has_zero() ? TileKind::kSome : TileKind::kAll;
}

TileKind ProgramMask::classify(const TileSite& site) const { return kind(site); }

template <class T>
void ProgramMask::apply_lanes(const TileSite& site, const ScoreTile<T>& tile) const {
  const auto* const lanes = lanes_of<T>(*program_, LanesFor::kMask, site.sequence, site.head);
  if (lanes == nullptr) return MaskPart::apply(site, tile);
  const TableRead* const beyond = lanes->apply(site, tile);
  if (beyond != nullptr) program_->fail_beyond(*beyond, site);
}

void ProgramMask::apply(const TileSite& site, const ScoreTile<float>& tile) const {
  apply_lanes(site, tile);
}
void ProgramMask::apply(const TileSite& site, const ScoreTile<double>& tile) const {
  apply_lanes(site, tile);
}

std::pair<index, index> ProgramMask::key_range(const Sequence& sequence, index head, index query,
                                               index queries) const {
  const index last = query + queries - 1;
  if (last < band_.first_query || query > band_.last_query || queries == 0) return {0, 0};
  const index begin = std::max({index{0}, band_.first_key, query + band_.low});
  const index end = std::min({sequence.keys, band_.last_key + 1, last + band_.high + 1});
  const std::pair<index, index> range{std::min(begin, sequence.keys), std::max(begin, end)};
  if (range.first >= range.second) return {0, 0};
  if (is_band_ || queries <= kFewRows) return range;
  return without_empty_ends(range, [&](index from, index to) {
    return keeps_none({sequence, head, query, queries, from, to - from});
  });
}

std::pair<index, index> ProgramMask::query_range(const Sequence& sequence, index head, index key,
                                                 index keys) const {
  const index last = key + keys - 1;
  if (last < band_.first_key || key > band_.last_key || keys == 0) return {0, 0};
  const index begin = std::max({index{0}, band_.first_query, key - band_.high});
  const index end = std::min({sequence.queries, band_.last_query + 1, last - band_.low + 1});
  const std::pair<index, index> range{std::min(begin, sequence.queries), std::max(begin, end)};
  if (range.first >= range.second) return {0, 0};
  if (is_band_ || keys <= kFewRows) return range;
  return without_empty_ends(range, [&](index from, index to) {
    return keeps_none({sequence, head, from, to - from, key, keys});
  });
}

void ProgramMask::check_shape(const AttentionSizes& sizes) const {
  program_->check_sizes(sizes, "mask");
}

}  // namespace fovea::detail

// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/lambda/program_bias.h"

#include <algorithm>
#include <vector>

#include "fovea/attention/lambda/program_lanes.h"
#include "fovea/base/check.h"

namespace fovea::detail {

namespace {

using Leaf = ScoreStep::Leaf;

ScorePlace place_of(const ScoreSite& site) {
  return {site.sequence.number, site.head, site.i, site.j};
}

// Where a read at this place has its sum.
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

// Where it is in the contiguous gradient of the table.
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

}  // namespace fovea::detail

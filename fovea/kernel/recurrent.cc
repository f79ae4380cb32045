// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/recurrent.h"

#include <algorithm>
#include <array>
#include <optional>

#include "fovea/base/profile.h"
#include "fovea/kernel/recurrent_steps.h"

namespace fovea {

namespace {

index parts_of(index n, index size) { return (n + size - 1) / size; }

// ---------------------------------------------------------------------------- which sequences

/// Sequences of a batch by falling length, every `stride`-th from `first` on: of equal lengths as
/// far as possible, so that groups end together. Those that are not over form a prefix.
struct Group {
  Vec<const index> order;
  index first = 0, stride = 1;

  index size() const { return parts_of(order.size - first, stride); }
  index operator[](index member) const { return order[first + member * stride]; }
};

index length_of(Vec<const std::int32_t> offsets, index s) { return offsets[s + 1] - offsets[s]; }

/// The sequences that have rows, the longest first, equals in their order.
Vec<const index> by_length(Vec<const std::int32_t> offsets, Scratch& scratch) {
  const index sequences = std::max<index>(0, offsets.size - 1);
  index* const order = scratch.allocate<index>(sequences);
  index count = 0;
  for (index s = 0; s < sequences; ++s) {
    if (length_of(offsets, s) > 0) order[count++] = s;
  }
  std::sort(order, order + count, [&](index a, index b) {
    const index la = length_of(offsets, a), lb = length_of(offsets, b);
    return la != lb ? la > lb : a < b;
  });
  return {order, count};
}

// ------------------------------------------------------------------------- a group through time

/// The walk along sequences. Step t is row number t of a sequence, or in reverse the t-th last.
template <class T>
class Walk {
 public:
  Walk(const RecurrentRun<T>& run, const Group& group)
      : run_(run), group_(group), steps_(recurrent_steps<T>(run.kind)) {}

  index length() const { return group_.size() == 0 ? 0 : length_of(run_.offsets, group_[0]); }

 protected:
  /// How many of the first `most` members have a step t.
  index count_at(index t, index most) const {
    while (most > 0 && length_of(run_.offsets, group_[most - 1]) <= t) --most;
    return most;
  }
  index row(index member, index t) const {
    const index s = group_[member];
    return is_reverse() ? run_.offsets[s + 1] - 1 - t : run_.offsets[s] + t;
  }
  /// The row of the step after, or before.
  index after(index row) const { return is_reverse() ? row - 1 : row + 1; }
  index before(index row) const { return is_reverse() ? row + 1 : row - 1; }
  bool is_reverse() const { return run_.direction == TimeDirection::kReverse; }
  bool is_lstm() const { return run_.kind == RecurrentKind::kLstm; }

  const RecurrentRun<T> run_;
  const Group group_;
  const RecurrentSteps<T> steps_;
};

template <class T>
class ForwardWalk : Walk<T> {
  using Base = Walk<T>;
  using Base::row, Base::before, Base::run_, Base::group_, Base::steps_;

 public:
  using Value = T;
  struct Run {
    RecurrentRun<T> run;
    const T* packed;
    const RecurrentRun<T>& operator*() const { return run; }
  };

  ForwardWalk(const Run& run, const Group& group, Scratch& scratch)
      : Base(run.run, group),
        packed_(run.packed),
        rows_(scratch.allocate<ForwardRow<T>>(group.size())),
        previous_(scratch.allocate<const T*>(group.size())),
        count_(group.size()) {}

  using Base::length;
  index blocks() const { return parts_of(run_.hidden.columns, steps_.forward_lanes); }

  /// To the next step, `step` in ascending order.
  void move_to(index step) {
    count_ = this->count_at(step, count_);
    for (index m = 0; m < count_; ++m) {
      const index n = row(m, step), s = group_[m];
      const bool first = step == 0;
      previous_[m] = first ? initial(run_.first_hidden, s) : run_.hidden[before(n)];
      const T* const cell = !this->is_lstm() ? nullptr
                            : first          ? initial(run_.first_cell, s)
                                             : run_.cells[before(n)];
      rows_[m] = {.gates = run_.gates[n],
                  .hidden = run_.hidden[n],
                  .cell = run_.cells[n],
                  .cell_tanh = run_.cell_tanh[n],
                  .previous_hidden = previous_[m],
                  .previous_cell = cell};
    }
  }
  void run_blocks(index begin, index end) const {
    const bool has_previous = count_ > 0 && previous_[0] != nullptr;
    steps_.forward({.rows = rows_,
                    .previous = has_previous ? previous_ : nullptr,
                    .count = count_,
                    .weight = packed_,
                    .bias_hn = run_.bias_hn.data,
                    .hidden = run_.hidden.columns,
                    .first_block = begin,
                    .last_block = end});
  }

 private:
  static const T* initial(Rows<const T> state, index s) {
    return state.data == nullptr ? nullptr : state[s];
  }

  const T* packed_;
  ForwardRow<T>* rows_;
  const T** previous_;
  index count_;
};

template <class T>
class BackwardWalk : Walk<T> {
  using Base = Walk<T>;
  using Base::row, Base::before, Base::after, Base::run_, Base::group_, Base::steps_;

 public:
  using Value = T;
  struct Run {
    RecurrentGradient<T> gradient;
    const RecurrentRun<T>& operator*() const { return gradient.run; }
  };

  BackwardWalk(const Run& run, const Group& group, Scratch& scratch)
      : Base(*run, group),
        weight_(run.gradient.weight),
        dy_(run.gradient.dy),
        rows_(scratch.allocate<BackwardRow<T>>(group.size())),
        next_(scratch.allocate<const T*>(group.size())),
        carry_(scratch.allocate<T>(group.size() * run_.hidden.columns), group.size(),
               run_.hidden.columns) {}

  using Base::length;
  index blocks() const { return parts_of(run_.hidden.columns, steps_.backward_lanes); }

  /// To the next step, `step` in ascending order: from the last row of the longest sequence back.
  void move_to(index step) {
    const index t = length() - 1 - step;
    with_next_ = count_;
    while (count_ < group_.size() && length_of(run_.offsets, group_[count_]) > t) ++count_;
    for (index m = 0; m < count_; ++m) {
      const index n = row(m, t);
      const bool has_cell = this->is_lstm() && t > 0;
      rows_[m] = {.gates = run_.gates[n],
                  .dy = dy_[n],
                  .hidden = run_.hidden[n],
                  .cell_tanh = run_.cell_tanh[n],
                  .previous_hidden = t > 0 ? run_.hidden[before(n)] : nullptr,
                  .previous_cell = has_cell ? run_.cells[before(n)] : nullptr,
                  .carry = carry_[m]};
      if (m < with_next_) next_[m] = run_.gates[after(n)];
    }
  }
  void run_blocks(index begin, index end) const {
    BackwardStep<T> step{.rows = rows_,
                         .next = next_,
                         .count = with_next_,
                         .weight = weight_.data,
                         .panel_stride = weight_.panel_stride,
                         .hidden = run_.hidden.columns,
                         .first_block = begin,
                         .last_block = end};
    steps_.backward(step);
    step.rows += with_next_;
    step.next = nullptr;
    step.count = count_ - with_next_;
    steps_.backward(step);
  }

 private:
  const Panels<T> weight_;
  const Rows<const T> dy_;
  BackwardRow<T>* rows_;
  const T** next_;
  const Rows<T> carry_;
  index count_ = 0, with_next_ = 0;
};

// ------------------------------------------------------------------------------- the two ways

constexpr index kMostRuns = 2;

// A thread takes a part of the sequences through all their steps, so that threads never wait for
// one another.
template <class W, class Run>
void walk_in_groups(const Context& ctx, std::span<const Run> runs, Vec<const index> order,
                    index groups) {
  ctx.for_each(std::ssize(runs) * groups, [&](index item) {
    Scratch scratch;
    const Run& run = runs[static_cast<std::size_t>(item / groups)];
    W walk(run, {order, item % groups, groups}, scratch);
    for (index step = 0; step < walk.length(); ++step) {
      walk.move_to(step);
      walk.run_blocks(0, walk.blocks());
    }
  });
}

// Threads divide each step by columns, and wait for one another after it.
template <class W, class Run>
void walk_in_columns(const Context& ctx, std::span<const Run> runs, Vec<const index> order) {
  Scratch scratch;
  std::array<std::optional<W>, kMostRuns> walks;
  for (std::size_t r = 0; r < runs.size(); ++r) walks[r].emplace(runs[r], Group{order}, scratch);
  const index blocks = walks[0]->blocks(), count = std::ssize(runs);
  const index parts = std::min<index>(blocks, parts_of(ctx.threads(), count));
  for (index step = 0; step < walks[0]->length(); ++step) {
    for (index r = 0; r < count; ++r) walks[static_cast<std::size_t>(r)]->move_to(step);
    ctx.for_each(count * parts, [&](index item) {
      const index part = item / count;
      walks[static_cast<std::size_t>(item % count)]->run_blocks(part * blocks / parts,
                                                                (part + 1) * blocks / parts);
    });
  }
}

// Which way is faster; no bit depends on it.
template <class W, class Run>
void walk(const Context& ctx, std::span<const Run> runs) {
  if (runs.empty()) return;
  const RecurrentRun<typename W::Value>& run = *runs[0];
  Scratch scratch;
  const Vec<const index> order = by_length(run.offsets, scratch);
  if (order.empty()) return;
  const index items = parts_of(ctx.threads(), std::ssize(runs));
  const index groups = std::min<index>(order.size, items);
  if (groups < items) return walk_in_columns<W, Run>(ctx, runs, order);
  walk_in_groups<W, Run>(ctx, runs, order, groups);
}

// -------------------------------------------------------------------------------------- checks

template <class T>
void check_run(const char* name, const RecurrentRun<T>& run) {
  const index N = run.hidden.rows, H = run.hidden.columns;
  check(run.kind != RecurrentKind::kSru, "{}: an SRU has kernels of its own (sru.h)", name);
  check(run.offsets.size >= 1 && run.offsets[0] == 0 && run.offsets[run.offsets.size - 1] == N,
        "{}: offsets must run from 0 to the {} rows", name, N);
  check_rows(name, "weight", run.weight, recurrent_gates(run.kind) * H, H);
  check_rows(name, "gates", run.gates, N, recurrent_blocks(run.kind) * H);
  check_optional(name, "bias_hn", run.bias_hn, "H", H);
  const index S = run.offsets.size - 1;
  if (run.first_hidden.data != nullptr) check_rows(name, "first_hidden", run.first_hidden, S, H);
  if (run.kind != RecurrentKind::kLstm) return;
  check_rows(name, "cells", run.cells, N, H);
  check_rows(name, "cell_tanh", run.cell_tanh, N, H);
  if (run.first_cell.data != nullptr) check_rows(name, "first_cell", run.first_cell, S, H);
}

template <class T>
Work work_of(std::string_view what, const RecurrentRun<T>& run, index runs) {
  const auto N = static_cast<double>(run.hidden.rows), H = static_cast<double>(run.hidden.columns);
  const auto gates = static_cast<double>(recurrent_gates(run.kind) * runs);
  return {what,
          {run.hidden.rows, recurrent_gates(run.kind) * run.hidden.columns, run.hidden.columns},
          2 * gates * N * H * H,
          gates * (2 * N * H + H * H) * sizeof(T)};
}

}  // namespace

template <class T>
void PackedGates<T>::pack(const Context& ctx, RecurrentKind kind, Rows<const T> weight) {
  const index H = weight.columns, gates = recurrent_gates(kind);
  check_rows("recurrent", "weight", weight, gates * H, H);
  const auto steps = recurrent_steps<T>(kind);
  kind_ = kind;
  hidden_ = H;
  isa_ = current_isa();
  const index blocks = parts_of(H, steps.forward_lanes);
  const index block_size = H * gates * steps.forward_lanes;
  const auto bytes = static_cast<std::size_t>(checked_product(blocks, block_size, "packed gates") *
                                              static_cast<index>(sizeof(T)));
  if (bytes > capacity_) {
    bytes_ = allocate_aligned(bytes);
    capacity_ = bytes;
  }
  T* const to = reinterpret_cast<T*>(bytes_.get());
  const ProfileScope scope(ctx, pass_over<T>("pack", gates * H, H, 2));
  ctx.for_ranges(blocks, 2.0 * static_cast<double>(block_size), [&](index begin, index end) {
    for (index b = begin; b < end; ++b) steps.pack(weight, gates, b, to + b * block_size);
  });
}

template <class T>
void recurrent_forward(const Context& ctx, std::span<const RecurrentRun<T>> runs,
                       std::span<const PackedGates<T>* const> packed) {
  check(runs.size() <= kMostRuns && packed.size() == runs.size(),
        "recurrent: at most {} runs, each with its packed weight; got {} and {}", kMostRuns,
        runs.size(), packed.size());
  if (runs.empty()) return;
  std::array<typename ForwardWalk<T>::Run, kMostRuns> walked;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    check_run("recurrent", runs[r]);
    const PackedGates<T>& p = *packed[r];
    if (p.isa() != current_isa() || p.kind() != runs[r].kind ||
        p.hidden() != runs[r].hidden.columns) {
      fail(ErrorCode::kInternal,
           "recurrent: the weight was packed for another instruction set, "
           "kind or width");
    }
    walked[r] = {runs[r], p.data()};
  }
  const ProfileScope scope(ctx, work_of("recurrent steps", runs[0], std::ssize(runs)));
  walk<ForwardWalk<T>, typename ForwardWalk<T>::Run>(ctx, {walked.data(), runs.size()});
}

template <class T>
void recurrent_backward(const Context& ctx, std::span<const RecurrentGradient<T>> gradients) {
  check(gradients.size() <= kMostRuns, "recurrent backward: at most {} runs; got {}", kMostRuns,
        gradients.size());
  if (gradients.empty()) return;
  std::array<typename BackwardWalk<T>::Run, kMostRuns> walked;
  for (std::size_t r = 0; r < gradients.size(); ++r) {
    const RecurrentGradient<T>& g = gradients[r];
    check_run("recurrent backward", g.run);
    check_rows("recurrent backward", "dy", g.dy, g.run.hidden.rows, g.run.hidden.columns);
    if (g.weight.isa != current_isa() || g.weight.pack) {
      fail(ErrorCode::kInternal,
           "recurrent backward: the weight was packed for another "
           "instruction set, or not at all");
    }
    walked[r] = {g};
  }
  const ProfileScope scope(
      ctx, work_of("recurrent steps backward", gradients[0].run, std::ssize(gradients)));
  walk<BackwardWalk<T>, typename BackwardWalk<T>::Run>(ctx, {walked.data(), gradients.size()});
}

template <class T>
void previous_rows(const Context& ctx, const RecurrentRun<T>& run, Rows<T> previous) {
  const index H = run.hidden.columns;
  check_rows("recurrent", "previous", previous, run.hidden.rows, H);
  const ProfileScope scope(ctx, pass_over<T>("copy", run.hidden.rows, H, 2));
  const index sequences = std::max<index>(0, run.offsets.size - 1);
  const bool reverse = run.direction == TimeDirection::kReverse;
  const double cost =
      static_cast<double>(run.hidden.rows * H) / static_cast<double>(std::max<index>(1, sequences));
  ctx.for_ranges(sequences, cost, [&](index first, index last) {
    for (index s = first; s < last; ++s) {
      const index begin = run.offsets[s], end = run.offsets[s + 1];
      for (index n = begin; n < end; ++n) {
        const index from = reverse ? n + 1 : n - 1;
        if (from < begin || from >= end) {
          std::fill_n(previous[n], H, T{0});
        } else {
          std::copy_n(run.hidden[from], H, previous[n]);
        }
      }
    }
  });
}

#define FOVEA_INSTANTIATE(T)                                                               \
  template class PackedGates<T>;                                                           \
  template void recurrent_forward(const Context&, std::span<const RecurrentRun<T>>,        \
                                  std::span<const PackedGates<T>* const>);                 \
  template void recurrent_backward(const Context&, std::span<const RecurrentGradient<T>>); \
  template void previous_rows(const Context&, const RecurrentRun<T>&, Rows<T>);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea

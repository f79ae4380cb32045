// SPDX-License-Identifier: Apache-2.0
// The threads that do the work, and its precision: first parameter of every kernel and of the
// operator.
#pragma once

#include <type_traits>
#include <utility>

#include "fovea/base/precision.h"
#include "fovea/base/types.h"

namespace fovea {

class Plan;
class Profile;
class Team;

/// Says how many threads a call may use, and how it computes products. Cheap to copy; the threads
/// themselves are one pool of the process, started when first needed, or a team of the caller. Any
/// number of threads may use the library at once.
class Context {
 public:
  /// `threads` <= 0: all cores that this process may run on. Over 1024: Error(kOptionValue).
  explicit Context(int threads = 0);

  int threads() const { return threads_; }

  /// A context of these threads with products in that precision for float32 values (kernel/gemm.h).
  Context with(Precision precision) const {
    Context context = *this;
    context.precision_ = precision;
    return context;
  }
  Precision precision() const { return precision_; }

  /// As many threads, but those of the team wherever it has that size (base/team.h). It must
  /// outlive the context.
  Context on(const Team& team) const {
    Context context = *this;
    context.team_ = &team;
    return context;
  }

  /// These threads with a profile of what they do (base/profile.h), which must outlive the context.
  Context profiled(Profile& profile) const {
    Context context = *this;
    context.profile_ = &profile;
    return context;
  }
  /// The profile, for the thread that it belongs to; else null.
  Profile* profile() const { return profile_ == nullptr ? nullptr : profile_of_this_thread(); }

  /// A context of a plan (base/profile.h): for_each calls nothing.
  Context planned(Plan& plan) const {
    Context context = *this;
    context.plan_ = &plan;
    return context;
  }
  /// The plan, or null.
  Plan* plan() const { return plan_; }

  /// Calls f(item) for every item in [0, items), on up to threads() threads, and returns when all
  /// are done. A thread begins with a range of items of its own, the same in every call with as
  /// many items and threads, and then takes those of others, so f must not depend on its thread.
  /// Split sums by the size of the problem, never by threads(): then the bits of the result do not
  /// depend on the number of threads. If items throw, the exception of the lowest such item is
  /// thrown here. An item may call for_each itself; the nested call may use the same threads.
  template <class F>
  void for_each(index items, F&& f) const {
    run(items, f, false);
  }

  /// for_each in which each thread takes the lowest item that is left: for few, long items, the
  /// longest first, so that threads end together.
  template <class F>
  void for_each_in_order(index items, F&& f) const {
    run(items, f, true);
  }

  /// Calls f on this thread, but not in a plan: for the few values that a kernel writes outside of
  /// its loops.
  template <class F>
  void run_here(F&& f) const {
    if (plan_ == nullptr) f();
  }

  /// Calls f(begin, end) over [0, n) in ranges that depend on n and `cost` alone. `cost` is the
  /// work for one of the n elements, in flops or bytes. A range is long enough to be worth handing
  /// to another thread.
  template <class F>
  void for_ranges(index n, double cost, F&& f) const {
    const index length = range_length(n, cost);
    for_each((n + length - 1) / length, [&](index item) {
      const index begin = item * length;
      f(begin, begin + length < n ? begin + length : n);
    });
  }

  /// How many items of this process were run by a thread of the pool other than the caller of
  /// for_each; tests use it to show that several workers took part.
  static index items_run_by_helpers();

 private:
  using Invoke = void (*)(void* callable, index item);
  template <class F>
  void run(index items, F& f, bool in_order) const {
    run(
        items, const_cast<void*>(static_cast<const void*>(&f)),
        [](void* callable, index item) { (*static_cast<F*>(callable))(item); }, in_order);
  }
  void run(index items, void* callable, Invoke invoke, bool in_order) const;
  static index range_length(index n, double cost);
  Profile* profile_of_this_thread() const;

  int threads_;
  Precision precision_ = Precision::kFloat32;
  Profile* profile_ = nullptr;
  Plan* plan_ = nullptr;
  const Team* team_ = nullptr;
};

/// The number of cores that this process may run on: its affinity mask, and its cgroup quota if one
/// is set.
int available_cores();

}  // namespace fovea

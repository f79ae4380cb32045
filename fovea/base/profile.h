// SPDX-License-Identifier: Apache-2.0
// The cost of work: its time, measured (Profile), or its memory, without the work (Plan).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <thread>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/memory.h"

namespace fovea {

// Where the time of a piece of work goes. A kernel says what it does and how much of that there is:
//
//   const Work work{.what = "product", .shape = {M, N, K}, .flops = flops};
//   const ProfileScope scope(ctx, work);
//
// That costs a comparison unless the context has a profile (Context::profiled). Time of a scope
// inside another counts for the inner one alone. Time in which the thread waits for the process's
// pool counts for no scope; on a Team of its own, waiting counts for the scope that waits.

/// A piece of work: its kind, its sizes and its amount.
struct Work {
  std::string_view what;  ///< a literal
  std::array<index, 3> shape = {};
  double flops = 0;  ///< multiplications and additions
  double bytes = 0;  ///< read and written, each tensor once

  bool is_like(const Work& other) const { return what == other.what && shape == other.shape; }
};

/// Work that passes over `tensors` matrices of T, each [rows, columns].
template <class T>
Work pass_over(std::string_view what, index rows, index columns, int tensors) {
  const double values = static_cast<double>(rows) * static_cast<double>(columns) * tensors;
  return {.what = what, .shape = {rows, columns, 0}, .bytes = values * sizeof(T)};
}

/// Belongs to the thread that made it: scopes of other threads do not count.
class Profile {
 public:
  /// All the work of one kind and shape.
  struct Part {
    Work work;  ///< of all calls together
    index calls = 0;
    double seconds = 0;  ///< without those in which the thread waited
  };

  /// In the order in which they began first.
  const std::vector<Part>& parts() const { return parts_; }
  /// In which the thread waited for others to end.
  double waiting_seconds() const { return waiting_; }
  /// Forgets everything. Throws Error(kInternal) while a scope is open.
  void clear();

  bool is_of_this_thread() const { return thread_ == std::this_thread::get_id(); }
  void add_waiting(double seconds) { waiting_ += seconds; }

 private:
  friend class ProfileScope;
  std::size_t number_of(const Work& work);

  std::thread::id thread_ = std::this_thread::get_id();
  std::vector<Part> parts_;
  double waiting_ = 0;
  double counted_ = 0;  // seconds of all parts
  int open_ = 0;        // scopes
};

/// Adds the time from its beginning to its end to the profile of a context, if it has one.
class ProfileScope {
 public:
  ProfileScope(const Context& ctx, const Work& work);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  Profile* profile_;
  std::size_t part_ = 0;
  double begin_ = 0, elsewhere_ = 0;  // what had been counted or waited before
};

// A plan of work: the code itself runs, checks its shapes and takes its memory, but the loops of
// its kernels are left out (Context::for_each), so no value is computed.
//
//   Plan plan;
//   Tape tape(context.planned(plan));  // memory that is allocated from here on is addresses alone
//   tape.backward(model.loss(tape, batch));
//
// The cost of the work is then read off: tape.peak(), plan.buffer_peak(), plan.scratch_peak(), and
// the FLOPs of a Profile. Kernels tell the plan of what they allocate within their loops.

/// Belongs to the thread that made it, and must outlive what that thread allocates meanwhile.
class Plan {
 public:
  /// A thread needs so many bytes within the loop of a kernel.
  void add_thread_bytes(double bytes) { of_thread_ = std::max(of_thread_, bytes); }

  /// The most that a kernel's loop takes of each thread that works in it.
  double thread_bytes() const { return of_thread_; }
  /// The most that was in use at once of scratch memory of the calling thread, outside of loops.
  std::size_t scratch_peak() const { return memory_.scratch_peak(); }
  /// The most that existed at once of tensors and other buffers: values, gradients, packed weights.
  std::size_t buffer_peak() const { return memory_.buffer_peak(); }
  /// If the plan ended with kOutOfMemory, since not even the addresses could be had (ulimit -v, or
  /// more than 16 TiB): the least that the work would take. Else 0.
  std::size_t refused_bytes() const { return memory_.refused_bytes(); }

 private:
  LazyMemory memory_;
  double of_thread_ = 0;
};

/// The most bytes of scratch memory that the calling thread has had in use at once: what a plan
/// foresees of a thread.
std::size_t scratch_peak_of_thread();

/// For a loop whose items take scratch memory: tells the plan of ctx, if there is one, what `item`
/// takes. `item(alone)` allocates as an item of the loop does; `alone` is a context of its thread.
template <class F>
void plan_item(const Context& ctx, F&& item) {
  if (ctx.plan() == nullptr) return;
  Plan of_item;
  item(Context(1).planned(of_item));
  ctx.plan()->add_thread_bytes(static_cast<double>(of_item.scratch_peak()) +
                               of_item.thread_bytes());
}

}  // namespace fovea

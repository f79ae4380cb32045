// SPDX-License-Identifier: Apache-2.0
// A plan of work: the code itself runs, checks its shapes and takes its memory, but the loops of
// its kernels are left out (Context::for_each), so no value is computed.
//
//   Plan plan;
//   Tape tape(context.planned(plan));  // memory that is allocated from here on is addresses alone
//   tape.backward(model.loss(tape, batch));
//
// The cost of the work is then read off: tape.peak(), plan.buffer_peak(), plan.scratch_peak(), and
// the FLOPs of a Profile. Kernels tell the plan of what they allocate within their loops.
#pragma once

#include <algorithm>
#include <cstddef>

#include "fovea/base/context.h"
#include "fovea/base/memory.h"

namespace fovea {

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

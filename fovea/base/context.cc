// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/context.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "fovea/base/check.h"
#include "fovea/base/interruption.h"
#include "fovea/base/machine.h"
#include "fovea/base/pool.h"
#include "fovea/base/profile.h"
#include "fovea/base/team.h"

namespace fovea {

namespace {

// Work below this many operations is not worth handing to another thread (a hand-over costs about
// a microsecond); ranges are cut so that each does at least as much.
constexpr double kRangeCost = 32768;
constexpr index kMostRanges = 256;
// More than any machine has: threads beyond the cores only take memory, a stack each.
constexpr int kMostThreads = 1024;

}  // namespace

int available_cores() {
  cpu_set_t set;  // too small for more than 1024 cores: then all cores count
  const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  const int cores = known ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency());
  static const double quota = processor_quota();
  return static_cast<int>(
      std::clamp(std::ceil(quota), 1.0, double{1} * std::clamp(cores, 1, kMostThreads)));
}

Context::Context(int threads) : threads_(threads > 0 ? threads : available_cores()) {
  if (threads <= kMostThreads) return;
  fail(ErrorCode::kOptionValue, Hint{"leave the number out: all cores then work"},
       "context: there may be at most {} threads; got {}", kMostThreads, threads);
}

void Context::run(index items, void* callable, Invoke invoke, bool in_order) const {
  if (items <= 0 || plan_ != nullptr) return;
  if (threads_ == 1 || items == 1) {
    // The first item that throws is the lowest one.
    const Interruption* const interruption = InterruptionScope::current();
    for (index item = 0; item < items; ++item) {
      stop_if_requested(interruption);
      invoke(callable, item);
    }
    return;
  }
  if (team_ != nullptr && team_->is_of(threads_)) {
    return Pool::run_on(*team_, {items, threads_, in_order, callable, invoke});
  }
  Profile* const profile = this->profile();
  double waited = 0;
  Pool::process_pool().run({items, threads_, in_order, callable, invoke},
                           profile ? &waited : nullptr);
  if (profile) profile->add_waiting(waited);
}

Profile* Context::profile_of_this_thread() const {
  return profile_->is_of_this_thread() ? profile_ : nullptr;
}

index Context::range_length(index n, double cost) {
  const auto enough = static_cast<index>(std::ceil(kRangeCost / std::max(cost, 1.0)));
  return std::max({index{1}, enough, (n + kMostRanges - 1) / kMostRanges});
}

index Context::items_run_by_helpers() { return Pool::process_pool().items_run_by_helpers(); }

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// The threads behind Context. Nothing outside base needs this header.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "fovea/base/interruption.h"
#include "fovea/base/shares.h"
#include "fovea/base/types.h"

namespace fovea {

class Team;

/// One pool for the whole process. A call posts a job and works on it itself; idle workers help. It
/// waits only for items that a worker has already begun, so nested and concurrent calls cannot
/// block each other. Workers spin for some microseconds after their last job, then sleep. After
/// fork, the child gets a pool of its own (a call that was running when the process forked cannot
/// be continued in the child).
class alignas(64) Pool {
 public:
  struct Task {
    index items;
    int threads;    // the caller and at most threads - 1 workers
    bool in_order;  // all items are one share
    void* callable;
    void (*invoke)(void* callable, index item);
  };

  static Pool& process_pool();

  /// `waited`, if given: seconds in which the caller waited for workers.
  void run(const Task& task, double* waited = nullptr);
  /// Runs the task on threads that are not the pool's.
  static void run_on(const Team& team, const Task& task);

  index items_run_by_helpers() const { return helped_.load(std::memory_order_relaxed); }

 private:
  // The work that a worker found: a job, and the share that it begins with.
  struct Job;
  struct Place {
    Job* job = nullptr;
    int share = 0;
  };

  // Lives on the stack of the caller. The caller returns only when no worker can find the job any
  // more and `active` is 0. On x86-64 all that a worker needs to begin is in the first cache line,
  // but for its share, the error and the interruption.
  struct alignas(64) Job {
    explicit Job(const Task& t)
        : task(t), shares_count(Shares::count(t.items, t.in_order ? 1 : t.threads)) {}
    Place join(int number);
    bool has_items_left(int first_share);
    int give_share(int wanted);

    const Task task;
    const int shares_count;
    // Guarded by Pool::mutex_:
    int places = 0;           // workers that may still join
    std::uint64_t taken = 1;  // a bit for each share that some thread begins with
    Job* next = nullptr;      // in the pool's list

    std::atomic<bool> listed{false};  // may workers still find it? written under Pool::mutex_
    std::atomic<int> active{0};       // workers in the job, plus kCallerSleeps
    LowestError error;
    const Interruption* const interruption = InterruptionScope::current();
    Shares shares{{task.items, shares_count}};
  };
  static_assert(Shares::kMost <= 64, "a share has a bit in Job::taken");

  // Part of Job::active while the caller sleeps: only then must the last worker wake it.
  static constexpr int kCallerSleeps = 1 << 30;

  Pool() = default;
  void grow(int workers);
  void post(Job& job);
  void withdraw(Job& job);
  void unlist(Job& job, Job* before);
  void wait_for_workers(Job& job);
  void worker_main(int number);
  int workers_to_wake(const Job& job) const;
  Place wait_for_place(int number);
  Place look_for_place(int number);
  Place take_place(int number);
  void leave(Job& job);
  static index work_on(Job& job, int share);
  static index run_share(Job& job, int share);

  // One cache line on x86-64: a core that shares no cache with the last one to post a job or to
  // join one waits for it once.
  std::mutex mutex_;
  std::atomic<Job*> first_{nullptr};  // of the list of those that a worker may join, the oldest
  Job* last_ = nullptr;               // of that list; it and `workers_` are guarded by mutex_
  int workers_ = 0;
  std::atomic<int> looking_{0};  // workers that will look at the list before they sleep

  alignas(64) std::condition_variable work_posted_;
  std::condition_variable job_left_;
  std::atomic<index> helped_{0};
};

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// The threads behind Context. Nothing outside base needs this header.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "fovea/base/lowest_error.h"
#include "fovea/base/shares.h"
#include "fovea/base/types.h"

namespace fovea {

class Team;

/// One pool for the whole process. A call posts a job and works on it itself; idle workers help. It
/// waits only for items that a worker has already begun, so nested and concurrent calls cannot
/// block each other. Workers spin for some microseconds after their last job, then sleep. After
/// fork, the child gets a pool of its own (a call that was running when the process forked cannot
/// be continued in the child).
class Pool {
 public:
  struct Task {
    index items;
    int threads;    // the caller and at most threads - 1 workers
    bool in_order;  // all items are one share
    void* callable;
    void (*invoke)(void* callable, index item);
    double* waited = nullptr;  // if set: seconds in which the caller waited for workers
  };

  static Pool& process_pool();

  void run(const Task& task);
  /// The same on threads that are not the pool's; task.waited is left as it is.
  static void run_on(const Team& team, const Task& task);

  index items_run_by_helpers() const { return helped_.load(std::memory_order_relaxed); }

 private:
  // Lives on the stack of the caller. The caller returns only when no worker can find the job any
  // more and `active` is 0.
  struct Job {
    explicit Job(const Task& t) : task(t), shares(t.items, t.in_order ? 1 : t.threads) {}
    const Task task;
    Shares shares;
    std::atomic<int> active{0};       // workers in the job, plus kCallerSleeps
    std::atomic<bool> listed{false};  // may workers still find it? written under Pool::mutex_
    int places = 0;                   // workers that may still join; guarded by Pool::mutex_
    LowestError error;
  };

  static constexpr int kCallerSleeps = 1 << 30;

  Pool() = default;
  void grow(int workers);
  void post(Job& job);
  void withdraw(Job& job);
  void unlist(std::vector<Job*>::iterator job);
  void wait_for_workers(Job& job);
  void worker_main();
  Job* wait_for_job();
  Job* join_job();
  void leave(Job& job);
  static index work_on(Job& job, int own);
  static index run_share(Job& job, int share);

  std::mutex mutex_;
  std::condition_variable work_posted_;
  std::condition_variable job_left_;
  std::vector<Job*> jobs_;         // those that a worker may join; guarded by mutex_
  int workers_ = 0;                // guarded by mutex_
  std::atomic<int> open_jobs_{0};  // jobs_.size(), readable while spinning
  std::atomic<index> helped_{0};
};

}  // namespace fovea

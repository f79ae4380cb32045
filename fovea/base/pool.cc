// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/pool.h"

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <system_error>
#include <thread>

#include "fovea/base/clock.h"
#include "fovea/base/team.h"

namespace fovea {

namespace {

// About 50 microseconds: longer than the gap between two kernels of a training step, so that a
// worker does not fall asleep within the step, and short enough to waste little when the work is
// over.
constexpr int kSpins = 1500;
constexpr int kPausesBetweenLooks = 8;
constexpr int kLooks = kSpins / kPausesBetweenLooks;

// More threads than any machine has. A larger number is probably mistyped and gets no more threads.
constexpr int kMostWorkers = 1023;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

constinit std::atomic<Pool*> pool_of_process{nullptr};

// A child of fork could not report that there is no memory for its pool, so the memory is reserved
// here.
alignas(Pool) constinit std::byte room_of_pool[sizeof(Pool)]{};

// The pool's mutex is held for some nanoseconds at a time: to sleep until it is free, and be woken,
// would take a thousand times as long.
std::unique_lock<std::mutex> lock_soon(std::mutex& mutex) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (mutex.try_lock()) return std::unique_lock(mutex, std::adopt_lock);
    pause();
  }
  return std::unique_lock(mutex);
}

}  // namespace

// The pool is never destroyed: its workers sleep in it until the process ends. In a forked child
// the workers are gone and the mutex may be locked, so a new pool is built in the same place.
// pthread_once, unlike a static local, also works if the process forks while it runs.
Pool& Pool::process_pool() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (Pool* const pool = pool_of_process.load(std::memory_order_acquire)) return *pool;
  pthread_once(&once, [] {
    const auto begin = [] { pool_of_process = new (room_of_pool) Pool; };
    pthread_atfork(nullptr, nullptr, begin);  // if it fails, only a child of fork is affected
    begin();
  });
  return *pool_of_process.load(std::memory_order_acquire);
}

void Pool::run(const Task& task) {
  Job job(task);
  const int own = job.shares.own();  // before a worker can take it
  post(job);
  work_on(job, own);
  withdraw(job);
  const double begin = task.waited ? monotonic_seconds() : 0;
  wait_for_workers(job);
  if (task.waited) *task.waited = monotonic_seconds() - begin;
  job.error.rethrow();
}

void Pool::run_on(const Team& team, const Task& task) {
  Job job(task);
  team.run(
      task.threads,
      [](void* data) {
        Job& shared = *static_cast<Job*>(data);
        work_on(shared, shared.shares.own());
      },
      &job);
  job.error.rethrow();
}

void Pool::post(Job& job) {
  const index wanted = std::min<index>(job.task.threads, job.task.items) - 1;
  job.places = static_cast<int>(std::min<index>(wanted, kMostWorkers));
  if (job.places <= 0) return;
  const auto lock = lock_soon(mutex_);
  grow(job.places);
  jobs_.push_back(&job);
  job.listed.store(true, std::memory_order_relaxed);
  open_jobs_.store(static_cast<int>(jobs_.size()), std::memory_order_release);
  for (int i = 0; i < job.places; ++i) work_posted_.notify_one();
}

// Most jobs are off the list by now: then the mutex need not be taken.
void Pool::withdraw(Job& job) {
  if (!job.listed.load(std::memory_order_acquire)) return;
  const auto lock = lock_soon(mutex_);
  const auto place = std::find(jobs_.begin(), jobs_.end(), &job);
  if (place != jobs_.end()) unlist(place);
}

void Pool::unlist(std::vector<Job*>::iterator job) {
  Job& left = **job;
  jobs_.erase(job);
  open_jobs_.store(static_cast<int>(jobs_.size()), std::memory_order_release);
  left.listed.store(false, std::memory_order_release);  // from here on the job may be destroyed
}

// The caller sets kCallerSleeps before it sleeps: the last worker wakes it only if that is set.
void Pool::wait_for_workers(Job& job) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (job.active.load(std::memory_order_acquire) == 0) return;
    pause();
  }
  std::unique_lock lock(mutex_);
  if (job.active.fetch_add(kCallerSleeps, std::memory_order_acq_rel) == 0) return;
  job_left_.wait(lock, [&] { return job.active.load(std::memory_order_acquire) == kCallerSleeps; });
}

void Pool::grow(int workers) {
  for (; workers_ < workers; ++workers_) {
    try {
      std::thread([this] { worker_main(); }).detach();
    } catch (const std::system_error&) {
      return;  // the system starts no more threads: go on with those that run
    } catch (const std::bad_alloc&) {
      return;  // no memory for another thread: likewise
    }
  }
}

void Pool::worker_main() {
  for (;;) {
    Job* const job = wait_for_job();
    helped_.fetch_add(work_on(*job, job->shares.own()), std::memory_order_relaxed);
    leave(*job);
  }
}

Pool::Job* Pool::wait_for_job() {
  for (int look = 0; look < kLooks; ++look) {
    if (open_jobs_.load(std::memory_order_acquire) > 0 && mutex_.try_lock()) {
      const std::lock_guard lock(mutex_, std::adopt_lock);
      if (Job* const job = join_job()) return job;
    }
    // Pause between looks: a thread that posts a job needs the lock.
    for (int i = 0; i < kPausesBetweenLooks; ++i) pause();
  }
  std::unique_lock lock(mutex_);
  for (;;) {
    if (Job* const job = join_job()) return job;
    work_posted_.wait(lock);
  }
}

// The oldest job that has a place and an item left; mutex_ is held. A job leaves the list when its
// last place or item is taken, so that idle workers can sleep while it still runs.
Pool::Job* Pool::join_job() {
  Job* found = nullptr;
  while (found == nullptr && !jobs_.empty()) {
    Job* const job = jobs_.front();
    if (job->shares.any_left()) {
      --job->places;
      job->active.fetch_add(1, std::memory_order_relaxed);
      found = job;
    }
    if (found == nullptr || job->places == 0) unlist(jobs_.begin());
  }
  return found;
}

void Pool::leave(Job& job) {
  const bool wakes = job.active.fetch_sub(1, std::memory_order_acq_rel) == kCallerSleeps + 1;
  // From here on the job may be destroyed.
  if (!wakes) return;
  const auto lock = lock_soon(mutex_);
  job_left_.notify_all();
}

// Runs items until none is left; returns how many this thread ran.
index Pool::work_on(Job& job, int own) {
  const int shares = job.shares.size();
  index done = 0;
  for (int k = 0; k < shares; ++k) done += run_share(job, (own + k) % shares);
  return done;
}

index Pool::run_share(Job& job, int share) {
  index done = 0;
  for (index item = job.shares.take(share); item >= 0; item = job.shares.take(share)) {
    if (!job.error.concerns(item)) return done;  // nor do those after it
    try {
      job.task.invoke(job.task.callable, item);
    } catch (...) {
      job.error.keep(item);
    }
    ++done;
  }
  return done;
}

}  // namespace fovea

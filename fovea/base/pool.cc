// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
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
constexpr int kPausesBetweenLooks = 2;
constexpr int kLooks = kSpins / kPausesBetweenLooks;

constexpr std::chrono::milliseconds kBetweenLooksForRequest{10};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

constinit std::atomic<Pool*> pool_of_process{nullptr};

// A child of fork could not report that there is no memory for its pool, so the memory is reserved
// here.
alignas(Pool) constinit std::byte room_of_pool[sizeof(Pool)]{};

// The pool's mutex is held for less than a microsecond at a time: to sleep until it is free, and be
// woken, would take many times as long.
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

// The caller begins with the first share.
void Pool::run(const Task& task, double* waited) {
  Job job(task);
  post(job);
  work_on(job, 0);
  withdraw(job);
  const double begin = waited ? monotonic_seconds() : 0;
  wait_for_workers(job);
  if (waited) *waited = monotonic_seconds() - begin;
  job.error.rethrow();
  stop_if_requested(job.interruption);  // all items may be done when the wait sees the request
}

void Pool::run_on(const Team& team, const Task& task) {
  Job job(task);
  team.run(
      task.threads,
      [](void* data, int thread) {
        Job& shared = *static_cast<Job*>(data);
        work_on(shared, thread % shared.shares_count);
      },
      &job);
  job.error.rethrow();
}

void Pool::post(Job& job) {
  const index wanted = std::min<index>(job.task.threads, job.task.items) - 1;
  job.places = static_cast<int>(wanted);
  if (job.places <= 0) return;
  const auto lock = lock_soon(mutex_);
  grow(job.places);
  job.listed.store(true, std::memory_order_relaxed);
  if (last_ == nullptr) {
    first_.store(&job, std::memory_order_release);
  } else {
    last_->next = &job;
  }
  last_ = &job;
  for (int i = workers_to_wake(job); i > 0; --i) work_posted_.notify_one();
}

// Those who look find the jobs of the list, this one among them, without being woken.
int Pool::workers_to_wake(const Job& job) const {
  index places = 0;
  for (const Job* at = first_.load(std::memory_order_relaxed); at != nullptr; at = at->next) {
    places += at->places;
  }
  return static_cast<int>(
      std::min<index>(job.places, places - looking_.load(std::memory_order_relaxed)));
}

// Most jobs are off the list by now: then the mutex need not be taken.
void Pool::withdraw(Job& job) {
  if (!job.listed.load(std::memory_order_acquire)) return;
  const auto lock = lock_soon(mutex_);
  Job* before = nullptr;
  for (Job* at = first_.load(std::memory_order_relaxed); at != nullptr; at = at->next) {
    if (at == &job) return unlist(job, before);
    before = at;
  }
}

// `before`: the job before it in the list, if it is not the first.
void Pool::unlist(Job& job, Job* before) {
  if (last_ == &job) last_ = before;
  if (before == nullptr) {
    first_.store(job.next, std::memory_order_release);
  } else {
    before->next = job.next;
  }
  job.listed.store(false, std::memory_order_release);  // from here on the job may be destroyed
}

void Pool::wait_for_workers(Job& job) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (job.active.load(std::memory_order_acquire) == 0) return;
    pause();
  }
  std::unique_lock lock(mutex_);
  if (job.active.fetch_add(kCallerSleeps, std::memory_order_acq_rel) == 0) return;
  const auto all_left = [&] { return job.active.load(std::memory_order_acquire) == kCallerSleeps; };
  if (job.interruption == nullptr) return job_left_.wait(lock, all_left);
  // The request may be one that this thread alone can see (Python's signals), so it looks now and
  // then.
  while (!job_left_.wait_for(lock, kBetweenLooksForRequest, all_left)) {
    lock.unlock();
    job.interruption->requested();
    lock.lock();
  }
}

void Pool::grow(int workers) {
  for (; workers_ < workers; ++workers_) {
    try {
      std::thread([this, number = workers_] { worker_main(number); }).detach();
    } catch (const std::system_error&) {
      return;  // the system starts no more threads: go on with those that run
    } catch (const std::bad_alloc&) {
      return;  // no memory for another thread: likewise
    }
  }
}

void Pool::worker_main(int number) {
  for (;;) {
    const Place place = wait_for_place(number);
    helped_.fetch_add(work_on(*place.job, place.share), std::memory_order_relaxed);
    leave(*place.job);
  }
}

Pool::Place Pool::wait_for_place(int number) {
  looking_.fetch_add(1, std::memory_order_relaxed);
  for (;;) {
    if (const Place place = look_for_place(number); place.job != nullptr) return place;
    std::unique_lock lock(mutex_);
    if (const Place place = take_place(number); place.job != nullptr) return place;
    // Who is woken too late for a job looks for the next one before it sleeps again: else it would
    // miss every short one.
    looking_.fetch_sub(1, std::memory_order_relaxed);
    work_posted_.wait(lock);
    looking_.fetch_add(1, std::memory_order_relaxed);
  }
}

// Looks for some microseconds, without sleeping.
Pool::Place Pool::look_for_place(int number) {
  for (int look = 0; look < kLooks; ++look) {
    if (first_.load(std::memory_order_acquire) != nullptr && mutex_.try_lock()) {
      const std::lock_guard lock(mutex_, std::adopt_lock);
      if (const Place place = take_place(number); place.job != nullptr) return place;
    }
    // Pause between looks: a thread that posts a job needs the cache line that this one reads.
    for (int i = 0; i < kPausesBetweenLooks; ++i) pause();
  }
  return {};
}

// In the oldest job that has a place and an item left; mutex_ is held. A job leaves the list when
// its last place or item is taken, so that idle workers can sleep while it still runs.
Pool::Place Pool::take_place(int number) {
  while (Job* const job = first_.load(std::memory_order_relaxed)) {
    const Place place = job->join(number);
    if (place.job == nullptr || job->places == 0) unlist(*job, nullptr);
    if (place.job != nullptr) {
      looking_.fetch_sub(1, std::memory_order_relaxed);
      return place;
    }
  }
  return {};
}

// None if no item is left. Worker n begins with share n + 1, as far as there are so many.
Pool::Place Pool::Job::join(int number) {
  const int wanted = (number + 1) % shares_count;
  if (!has_items_left(wanted)) return {};
  --places;
  active.fetch_add(1, std::memory_order_relaxed);
  return {this, give_share(wanted)};
}

bool Pool::Job::has_items_left(int first_share) {
  for (int k = 0; k < shares_count; ++k) {
    if (shares.any_left((first_share + k) % shares_count)) return true;
  }
  return false;
}

// The share `wanted`, or if another thread has that, the next one that is free; `wanted` if none
// is.
int Pool::Job::give_share(int wanted) {
  for (int k = 0; k < shares_count; ++k) {
    const int share = (wanted + k) % shares_count;
    const std::uint64_t bit = std::uint64_t{1} << share;
    if ((taken & bit) == 0) {
      taken |= bit;
      return share;
    }
  }
  return wanted;
}

void Pool::leave(Job& job) {
  const bool wakes = job.active.fetch_sub(1, std::memory_order_acq_rel) == kCallerSleeps + 1;
  // From here on the job may be destroyed.
  if (!wakes) return;
  const auto lock = lock_soon(mutex_);
  job_left_.notify_all();
}

// Runs items until none is left; returns how many this thread ran.
index Pool::work_on(Job& job, int share) {
  const InterruptionScope scope(job.interruption);
  const int shares = job.shares_count;
  index done = 0;
  for (int k = 0; k < shares; ++k) done += run_share(job, (share + k) % shares);
  return done;
}

index Pool::run_share(Job& job, int share) {
  const Task task = job.task;  // a copy: workers that join write the line of the job
  index done = 0;
  for (index item = job.shares.take(share); item >= 0; item = job.shares.take(share)) {
    if (!job.error.concerns(item)) return done;  // nor do those after it
    try {
      stop_if_requested(job.interruption);
      task.invoke(task.callable, item);
    } catch (...) {
      job.error.keep(item);
    }
    ++done;
  }
  return done;
}

}  // namespace fovea

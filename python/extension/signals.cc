// SPDX-License-Identifier: Apache-2.0
#include "python/extension/signals.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "fovea/base/clock.h"

namespace nb = nanobind;

namespace fovea::python {

namespace {

constexpr double kSecondsBetweenLooks = 0.03;
// A thread of Python that computes gives the lock away after 5 ms: then no more than a twentieth of
// the time is spent on waiting for it.
constexpr double kWaitsBetweenLooks = 20;

// Good to some milliseconds, and many times as quick as a precise clock: every call reads it.
double coarse_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

bool is_main_thread() { return ::gettid() == ::getpid(); }

}  // namespace

bool Signals::requested() const {
  if (flag_.requested()) return true;
  if (std::this_thread::get_id() != thread_) return false;
  const double now = coarse_seconds();
  if (now < next_look_) return false;
  if (next_look_ == 0) {
    next_look_ = now + kSecondsBetweenLooks;
  } else if (!is_main_thread()) {
    next_look_ = std::numeric_limits<double>::infinity();
  } else {
    run_handlers();
  }
  return flag_.requested();
}

void Signals::run_handlers() const {
  const double begin = monotonic_seconds();
  const nb::gil_scoped_acquire python;
  const double waited = monotonic_seconds() - begin;
  if (PyErr_CheckSignals() != 0) {
    raised_.emplace();
    flag_.request();
  }
  next_look_ = coarse_seconds() + std::max(kSecondsBetweenLooks, kWaitsBetweenLooks * waited);
}

void Signals::raise() const { throw nb::python_error(*raised_); }

}  // namespace fovea::python

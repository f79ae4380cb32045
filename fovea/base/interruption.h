// SPDX-License-Identifier: Apache-2.0
// To end a call before it is done.
//
//   InterruptionFlag stop;  // stop.request() may be called by a signal handler or another thread
//   const InterruptionScope scope(stop);
//   attention_forward<float>(Context(), attention, in, out);  // throws Interrupted if it was asked
//
// All threads that work for the calls inside the scope look between items of work, and between
// blocks of keys or queries inside long ones (some microseconds to a millisecond). The outputs of
// the call then have any values; nothing else is left of it, and the next call may begin.
#pragma once

#include <atomic>
#include <exception>

namespace fovea {

/// Thrown by a call that was interrupted. It is no Error, since nothing went wrong.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// Who may ask calls to end.
class Interruption {
 public:
  Interruption() = default;
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  virtual ~Interruption() = default;

  /// Whether it asks now. Once true, it must stay so for the length of the scope. All threads that
  /// work call it, often, so it must be quick.
  virtual bool requested() const = 0;
};

/// The request is a flag.
class InterruptionFlag final : public Interruption {
 public:
  void request() noexcept { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const override { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_{false};
};

/// While it lives, `interruption` may end the calls of this thread; the scope that surrounds it
/// does not count.
class InterruptionScope {
 public:
  explicit InterruptionScope(const Interruption& interruption) : InterruptionScope(&interruption) {}
  /// Takes the interruption of another thread, which this one works for; or null.
  explicit InterruptionScope(const Interruption* interruption);
  InterruptionScope(const InterruptionScope&) = delete;
  InterruptionScope& operator=(const InterruptionScope&) = delete;
  ~InterruptionScope();

  /// The interruption of this thread; null if no scope is open.
  static const Interruption* current();

 private:
  const Interruption* before_;
};

/// Throws Interrupted if `interruption`, which may be null, asks for that.
inline void stop_if_requested(const Interruption* interruption) {
  if (interruption != nullptr && interruption->requested()) throw Interrupted();
}

/// For loops inside an item of work that may take longer than some milliseconds.
inline void stop_if_interrupted() { stop_if_requested(InterruptionScope::current()); }

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Ctrl-C, and other signals whose handlers are functions of Python, during a call.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <thread>

#include "fovea/base/interruption.h"

namespace fovea::python {

/// Asks the calls of the main thread to end when a handler of a signal has raised an exception.
/// Python runs handlers in its main thread, when that thread asks for it; so while it computes, it
/// asks some times a second. (It waits for the lock of Python then: the longer it waited, the later
/// it asks again.)
class Signals final : public Interruption {
 public:
  bool requested() const override;
  /// Throws what the handler has raised, with the lock of Python.
  [[noreturn]] void raise() const;

 private:
  void run_handlers() const;

  const std::thread::id thread_ = std::this_thread::get_id();
  // State of the thread that made it:
  mutable double next_look_ = 0;  // 0: it has not asked yet
  mutable std::optional<nanobind::python_error> raised_;
  mutable InterruptionFlag flag_;
};

/// f(), while other threads of Python run. Signals are heard: what a handler raises ends f and is
/// thrown here.
template <class F>
auto while_others_run(F&& f) {
  const Signals signals;
  try {
    const nanobind::gil_scoped_release others_run;
    const InterruptionScope scope(signals);
    return f();
  } catch (const Interrupted&) {
    signals.raise();
  }
}

}  // namespace fovea::python

// SPDX-License-Identifier: Apache-2.0
// Tapes of inference for threads that take batches in turn.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/grad/tape.h"

namespace fovea {

/// A tape is lent to one batch at a time. There are as many as batches ever ran at once.
class LentTapes {
 public:
  explicit LentTapes(const Context& context)
      : whole_(context, TapeMode::kInference), alone_(Context(1).with(context.precision())) {}

  /// The tape whose kernels use all threads.
  Tape& whole() { return whole_; }

  /// Calls f with a tape of one thread that nobody else uses. Any thread may call it.
  template <class F>
  void lend(F&& f) {
    std::unique_ptr<Tape> tape = take();
    f(*tape);
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(tape));
  }

 private:
  std::unique_ptr<Tape> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Tape>(alone_, TapeMode::kInference);
    std::unique_ptr<Tape> tape = std::move(free_.back());
    free_.pop_back();
    return tape;
  }

  Tape whole_;
  const Context alone_;  // of one thread
  std::mutex mutex_;
  std::vector<std::unique_ptr<Tape>> free_;
};

}  // namespace fovea

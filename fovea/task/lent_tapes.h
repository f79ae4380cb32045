// SPDX-License-Identifier: Apache-2.0
// Tapes of inference for threads that take batches in turn.
#pragma once

#include <memory>

#include "fovea/base/context.h"
#include "fovea/base/lent.h"
#include "fovea/grad/tape.h"

namespace fovea {

/// A tape is lent to one batch at a time.
class LentTapes {
 public:
  explicit LentTapes(const Context& context)
      : whole_(context, TapeMode::kInference), alone_(Context(1).with(context.precision())) {}

  /// The tape whose kernels use all threads.
  Tape& whole() { return whole_; }

  /// Calls f with a tape of one thread that nobody else uses. Any thread may call it.
  template <class F>
  void lend(F&& f) {
    tapes_.lend([&] { return std::make_unique<Tape>(alone_, TapeMode::kInference); }, f);
  }

 private:
  Tape whole_;
  const Context alone_;  // of one thread
  Lent<Tape> tapes_;
};

}  // namespace fovea

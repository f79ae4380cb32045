// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/interruption.h"

#include <utility>

namespace fovea {

namespace {

constinit thread_local const Interruption* of_this_thread = nullptr;

}  // namespace

InterruptionScope::InterruptionScope(const Interruption* interruption)
    : before_(std::exchange(of_this_thread, interruption)) {}

InterruptionScope::~InterruptionScope() { of_this_thread = before_; }

const Interruption* InterruptionScope::current() { return of_this_thread; }

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Signals as requests: a handler sets a flag, which the training reads between its steps.
#pragma once

#include <filesystem>

#include "fovea/train/trainer.h"

namespace fovea::cli {

/// For a process that will train, until it has read its data and writes: SIGINT, SIGTERM and SIGHUP
/// end it at once, with the exit status of a training that they stop; SIGUSR1 and SIGUSR2 are kept.
void prepare_for_signals();

/// SIGINT, SIGTERM and SIGHUP remove this file before they end the process; "": none any more.
void remove_if_stopped(const std::filesystem::path& file);

/// From now on the signals are requests.
/// SIGINT, SIGTERM, SIGHUP: save and stop; a second SIGINT or SIGTERM ends the process at once.
/// SIGHUP is ignored where the caller ignores it (nohup). SIGUSR1: save and go on. SIGUSR2: save
/// and stop, successfully.
void listen_to_signals();

/// The request since the last call. After kStop, every call returns kStop.
Request requested();

/// The exit status of a run that stopped by request: 129, 130, 143, or 0 (SIGUSR2).
int stop_status();

}  // namespace fovea::cli

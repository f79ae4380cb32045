// SPDX-License-Identifier: Apache-2.0
// Signals as wishes: a handler sets a flag, and the work looks at it between its steps.
#pragma once

#include "fovea/train/trainer.h"

namespace fovea::cli {

/// SIGINT, SIGTERM, SIGHUP: save and stop; a second SIGINT or SIGTERM ends the process at once.
/// SIGHUP is ignored where the caller ignores it (nohup). SIGUSR1: save and go on. SIGUSR2: save
/// and stop, successfully.
void listen_to_signals();

/// What has been asked for since the last call; kStop again and again.
Request requested();

/// The exit status of a run that stopped by request: 129, 130, 143, or 0 (SIGUSR2).
int stop_status();

}  // namespace fovea::cli

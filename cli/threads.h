// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command_line.h"
#include "fovea/base/context.h"

namespace fovea::cli {

/// As --threads says. Throws kOptionValue.
Context context_of(int threads);

/// As --threads (or else FOVEA_THREADS) says. Throws kOptionValue.
Context context_of(const Arguments& arguments);

/// The option itself.
OptionSpec threads_option();

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command_line.h"
#include "fovea/base/context.h"

namespace fovea::cli {

/// A context with the number of threads from --threads. Throws kOptionValue.
Context context_of(int threads);

/// The same from --threads, or else from FOVEA_THREADS. Throws kOptionValue.
Context context_of(const Arguments& arguments);

/// The option --threads.
OptionSpec threads_option();

}  // namespace fovea::cli

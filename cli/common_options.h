// SPDX-License-Identifier: Apache-2.0
// The options that most commands have: threads, precision, and those of messages, for commands
// without a TOML configuration.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "fovea/base/context.h"

namespace fovea::cli {

/// A context with the number of threads from --threads. Throws kOptionValue.
Context context_of(int threads);

/// A context with the threads of --threads, or else of FOVEA_THREADS. Throws kOptionValue.
Context context_of(const Arguments& arguments);
/// A context for a command that computes with a model, in the precision of --precision or
/// FOVEA_PRECISION.
Context model_context_of(const Arguments& arguments);

/// The option --threads, and that of the precision.
OptionSpec threads_option();
OptionSpec precision_option();

/// "2 threads".
std::string thread_words(int threads);
/// Tells them and the instruction set, where details are wanted.
void tell_threads(const Context& context);

/// Says so if products of that precision are computed by conversion on this machine.
void note_conversion(Precision precision);

std::vector<OptionSpec> message_options();

/// Calls set_messages with the options, or else the environment. Throws as set_messages does.
void set_messages_from(const Arguments& arguments);

}  // namespace fovea::cli

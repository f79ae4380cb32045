// SPDX-License-Identifier: Apache-2.0
// The two streams: results go to stdout, what is said about the work to stderr.
#pragma once

#include <exception>
#include <string_view>

namespace fovea::cli {

enum class ErrorFormat { kText, kJson };

/// To stdout, at once. Throws kWrite if it cannot be written.
void print(std::string_view text);

/// One line to stderr; what comes from data is made safe for a terminal.
void say(std::string_view line);
void warn(std::string_view line);

/// One line "error[E0303]: ..." and one line "hint: ..." on stderr; with kJson also one object
/// {"error": ..., "message": ..., "hint": ...} on stdout. Returns the exit status.
int report(const std::exception& error, ErrorFormat format);

}  // namespace fovea::cli

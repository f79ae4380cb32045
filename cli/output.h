// SPDX-License-Identifier: Apache-2.0
// The two streams: results go to stdout, what is said about the work to stderr (and, if so wished,
// to a file).
#pragma once

#include <exception>
#include <ostream>
#include <string>
#include <string_view>

#include "fovea/base/fields.h"
#include "fovea/report/terminal.h"

namespace fovea::cli {

enum class ErrorFormat { kText, kJson };
enum class Coloring { kAuto, kAlways, kNever };

inline constexpr EnumName<Coloring> kColoringNames[] = {
    {Coloring::kAuto, "auto"}, {Coloring::kAlways, "always"}, {Coloring::kNever, "never"}};
inline std::span<const EnumName<Coloring>> enum_names(Coloring) { return kColoringNames; }

/// How much is said, and where.
struct MessageOptions {
  Coloring color = Coloring::kAuto;
  bool quiet = false;
  bool verbose = false;
  std::string log_file;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("color", color, "colours on stderr; auto: on a terminal");
    visit("quiet", quiet, "print only warnings and errors");
    visit("verbose", verbose, "also print what is used and found");
    visit("log_file", log_file, "append messages to this file, too");
  }
};

/// From now on. Throws kUsage if both more and less is wished, kWrite if the log cannot be written.
void set_messages(const MessageOptions& options, ErrorFormat errors);
/// Closes the log. Throws kDiskFull or kWrite if not all of it could be written; that it ends early
/// was warned of at once.
void close_log();

/// What stands behind stderr, with the colours that were wished.
Terminal message_terminal();
/// The log, or nullptr.
std::ostream* log_stream();
bool quiet();

/// Opens stdin, stdout and stderr where the process was started without them, so that no file that
/// is opened later gets their number: nothing can be read, what is printed is an error, and what is
/// said goes nowhere. Comes before anything else is opened.
void open_standard_streams() noexcept;

/// To stdout, at once. Says false if it is a pipe that nobody reads any more, which is no error:
/// the command goes on, or ends, with the status that it would have had. Throws kWrite if it cannot
/// be written.
bool print(std::string_view text);

/// One line to stderr and the log; what comes from data is made safe for a terminal.
void say(std::string_view line);
/// The same, unless quiet.
void note(std::string_view line);
/// The same, if verbose.
void detail(std::string_view line);
void warn(std::string_view line);

/// One line "error[E0303]: ..." and one line "hint: ..." on stderr; with kJson (or where
/// set_messages said so) also one object {"error": ..., "message": ..., "hint": ...} on stdout.
/// Returns the exit status. Where there is no memory left to say what went wrong, it says that.
int report(const std::exception& error, ErrorFormat format) noexcept;

}  // namespace fovea::cli

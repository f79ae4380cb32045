// SPDX-License-Identifier: Apache-2.0
// Output: results go to stdout; messages go to stderr and, with --log-file, to a file; a page goes
// to a file that is checked before anything is computed.
#pragma once

#include <exception>
#include <filesystem>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "fovea/base/fields.h"
#include "fovea/config/json.h"
#include "fovea/report/html.h"
#include "fovea/report/terminal.h"

namespace fovea::cli {

enum class ErrorFormat { kText, kJson };
enum class Coloring { kAuto, kAlways, kNever };

inline constexpr EnumName<Coloring> kColoringNames[] = {
    {Coloring::kAuto, "auto"}, {Coloring::kAlways, "always"}, {Coloring::kNever, "never"}};
inline std::span<const EnumName<Coloring>> enum_names(Coloring) { return kColoringNames; }

/// How many messages are printed, and where.
struct MessageOptions {
  Coloring color = Coloring::kAuto;
  bool quiet = false;
  bool verbose = false;
  std::string log_file;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("color", color, "colours on stderr; auto: on a terminal");
    visit("quiet", quiet, "print only warnings and errors", {.also = "q"});
    visit("verbose", verbose, "also print what is used and found", {.also = "v"});
    visit("log_file", log_file, "append messages to this file, too", {.shown = "FILE"});
  }
};

/// Sets the options of all later messages. Throws kUsage if both quiet and verbose are set, kWrite
/// if the log cannot be written.
void set_messages(const MessageOptions& options, ErrorFormat errors);
/// Whether a file lies in the folder, or would. In "" lies none.
bool lies_in(const std::filesystem::path& file, const std::filesystem::path& folder);
/// Throws kUsage if the log is one of these files or lies in `folder` ("": none), and writes
/// nothing to it. Call it before the first message.
void check_log_is_apart(std::span<const std::string> files, const std::filesystem::path& folder);
/// Throws kUsage if the output is the file that is read ("-": standard input), or lies in the
/// folder of the model.
void check_output_is_apart(const std::string& output, const std::string& input,
                           const std::filesystem::path& model);
/// Closes the log. Throws kDiskFull or kWrite if not all of it could be written. (A warning was
/// printed when the write failed.)
void close_log();

/// The terminal of stderr, and that of stdout, with colours as --color says.
Terminal message_terminal();
Terminal result_terminal();
/// Columns of the terminal of stdout; 80 if it is none.
int result_columns();
/// The stream of the log, or nullptr.
std::ostream* log_stream();
bool quiet();

/// Opens stdin, stdout and stderr if the process was started without them, so that no file that is
/// opened later gets their numbers. Then reading from stdin gives nothing, printing is an error,
/// and messages are discarded. Call it before anything else is opened.
void open_standard_streams() noexcept;

/// Writes to stdout, unbuffered: to a file or a pipe byte for byte, to a terminal with characters
/// that could control it escaped (escape_lines). `text` ends with a whole character. Returns false
/// if stdout is a pipe whose reader is gone. That is no error and does not change the exit status.
/// Throws kWrite for any other failure.
bool print(std::string_view text);
/// print of an object in one line.
bool print_json(Json::Object object);
/// print for text with colours: the caller has escaped the parts that came from others.
bool print_colored(std::string_view text);

/// Stdout is a pipe, and its reader is gone: nothing that is computed after is of use. run() of
/// main.cc takes it for the successful end of the command.
class NobodyReads final : public std::exception {};

/// print, for commands that answer line by line. Throws NobodyReads where print returns false.
void print_answers(std::string_view text);

/// Writes one line to stderr and the log, in the language of the user (language.h). Characters that
/// could control a terminal are escaped.
void say(std::string_view line);
/// say, unless quiet.
void note(std::string_view line);
/// say, if verbose.
void detail(std::string_view line);
void warn(std::string_view line);

/// One line "error[E0303]: ..." and one line "hint: ..." on stderr; with kJson (here or in
/// set_messages) also one object {"error": ..., "message": ..., "hint": ...} on stdout. Returns the
/// exit status. If there is no memory left for the message, it reports that.
int report(const std::exception& error, ErrorFormat format) noexcept;

struct PageFile {
  std::string_view option;  ///< that names it, with dashes
  std::string file;
  bool overwrite = false;  ///< a page that fovea has written may be replaced; nothing else is
  std::string_view kind = "page", ending = ".html";  ///< its name in messages, and its usual suffix
  /// In the first lines of what fovea has written; "": any file may be replaced.
  std::string_view mark = kGeneratorMark;
};

/// Before anything is computed. Throws kOptionValue for no name, kWrite where no file can be, and
/// kOutputExists.
void check_page_file(const PageFile& page);

}  // namespace fovea::cli

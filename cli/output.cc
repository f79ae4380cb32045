// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>

#include "cli/log_file.h"
#include "fovea/base/error.h"
#include "fovea/config/json.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

// The process has one stderr, so its options are global.
struct Messages {
  Messages() { log.exceptions(std::ios::badbit); }  // so that a lack of memory is not ignored

  MessageOptions options;
  LogFile log_file;
  std::ostream log{&log_file};
};
Messages& messages() {
  static Messages state;
  return state;
}

// Not a member of Messages: it is read when there is no memory for Messages.
constinit ErrorFormat format_of_errors = ErrorFormat::kText;

constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kYellow = "\x1b[33m";
constexpr std::string_view kCyan = "\x1b[36m";
constexpr std::string_view kPlain = "\x1b[0m";

// Returns 0, or errno of the write that failed. Nothing is allocated.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {  // O_NONBLOCK
      pollfd room{.fd = descriptor, .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, -1);
      continue;
    }
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// A line with colours for stderr and without for the log. If stderr cannot be written, the command
// goes on.
struct Line {
  std::string colored, plain;

  void say() const {
    write_all(STDERR_FILENO, colored);
    if (std::ostream* log = log_stream()) *log << plain << std::flush;
  }
};

// "error[E0301]: what", with the label in colour if colours are on.
Line labelled(std::string_view label, std::string_view ink, std::string_view text) {
  const std::string safe = escape_text(text);
  Line line{.colored = {}, .plain = fmt::format("{}: {}\n", label, safe)};
  line.colored =
      message_terminal().color ? fmt::format("{}{}:{} {}\n", ink, label, kPlain, safe) : line.plain;
  return line;
}

struct ErrorReport {
  std::string error;
  std::string message;
  std::string hint;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("error", error, "code, as the documentation lists it");
    visit("message", message, "what, where, expected and got");
    visit("hint", hint, "what to do about it");
  }
};

// Besides std::bad_alloc, the system has an error code for this: when it lists a folder or starts a
// thread.
bool is_out_of_memory(const std::exception& error) {
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         (system != nullptr && system->code() == std::errc::not_enough_memory);
}

// Writes what report would write, from constants: there is no memory to format it.
void say_memory_is_out(ErrorFormat format) {
  write_all(STDERR_FILENO,
            "error[E0601]: not enough memory\n"
            "hint: free some memory, or make what is computed smaller\n");
  if (format != ErrorFormat::kJson) return;
  write_all(STDOUT_FILENO,
            "{\"error\":\"E0601\",\"message\":\"not enough memory\","
            "\"hint\":\"free some memory, or make what is computed smaller\"}\n");
}

ErrorReport describe(const std::exception& error, ErrorCode& code) {
  std::string hint;
  code = ErrorCode::kInternal;
  std::string message = error.what();
  if (const auto* known = dynamic_cast<const Error*>(&error)) {
    code = known->code();
    hint = known->hint();
  } else if (is_out_of_memory(error)) {
    code = ErrorCode::kOutOfMemory;
    message = "not enough memory";
  } else if (dynamic_cast<const std::filesystem::filesystem_error*>(&error) != nullptr) {
    code = ErrorCode::kRead;
  }
  if (hint.empty()) hint = info(code).hint;
  return {std::string(info(code).name), std::move(message), std::move(hint)};
}

}  // namespace

void open_standard_streams() noexcept {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() returns the lowest free number, which is this one. If there is no /dev, open a folder
    // instead: it cannot be written either.
    const int mode = descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", mode) < 0) ::open("/", O_RDONLY);
  }
}

bool print(std::string_view text) {
  if (::isatty(STDOUT_FILENO) == 1) return print_colored(escape_lines(text));
  return print_colored(text);
}

void print_answers(std::string_view text) {
  if (!print(text)) throw NobodyReads();
}

bool print_colored(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0 || error == EPIPE) return error == 0;  // the reader of the pipe is gone: no error
  throw Error(ErrorCode::kWrite, fmt::format("standard output: {}", std::strerror(error)),
              "check where the output goes");
}

void set_messages(const MessageOptions& options, ErrorFormat errors) {
  if (options.quiet && options.verbose) {
    throw Error(ErrorCode::kUsage, "--quiet and --verbose exclude each other",
                "choose one: --quiet says less, --verbose says more");
  }
  messages().options = options;
  format_of_errors = errors;
  if (options.log_file.empty()) return;
  messages().log_file.open(options.log_file);
}

void check_log_is_apart(std::span<const std::string> files, const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  const std::string& log = messages().options.log_file;
  if (log.empty()) return;
  std::error_code ignored;
  const auto is_log = [&](const std::string& file) { return fs::equivalent(file, log, ignored); };
  const fs::path inside = fs::weakly_canonical(folder, ignored);
  const fs::path place = fs::weakly_canonical(log, ignored);
  const bool is_inside =
      !folder.empty() &&
      std::mismatch(inside.begin(), inside.end(), place.begin(), place.end()).first == inside.end();
  if (!is_inside && std::none_of(files.begin(), files.end(), is_log)) return;
  close_log();
  if (fs::is_empty(log, ignored)) fs::remove(log, ignored);  // it was made for the log
  throw Error(ErrorCode::kUsage,
              is_inside ? fmt::format("--log-file: {} lies in the folder of the model", log)
                        : fmt::format("--log-file: {} is a file that the command reads", log),
              "choose another file for the log");
}

void close_log() { messages().log_file.close(); }

namespace {

Terminal terminal_of(int descriptor) {
  Terminal terminal = inspect_terminal(descriptor);
  const Coloring wished = messages().options.color;
  if (wished != Coloring::kAuto) terminal.color = wished == Coloring::kAlways;
  return terminal;
}

}  // namespace

Terminal message_terminal() { return terminal_of(STDERR_FILENO); }
Terminal result_terminal() { return terminal_of(STDOUT_FILENO); }
int result_columns() { return terminal_columns(STDOUT_FILENO); }

std::ostream* log_stream() { return messages().log_file.is_open() ? &messages().log : nullptr; }

bool quiet() { return messages().options.quiet; }

void say(std::string_view line) {
  const std::string safe = escape_text(line) + "\n";
  Line{.colored = safe, .plain = safe}.say();
}

void note(std::string_view line) {
  if (!quiet()) say(line);
}

void detail(std::string_view line) {
  if (messages().options.verbose) say(line);
}

void warn(std::string_view line) { labelled("warning", kYellow, line).say(); }

int report(const std::exception& error, ErrorFormat format) noexcept {
  if (format_of_errors == ErrorFormat::kJson) format = ErrorFormat::kJson;
  int status = 0;
  try {
    ErrorCode code;
    const ErrorReport described = describe(error, code);
    const Line what = labelled(fmt::format("error[{}]", described.error), kRed, described.message);
    const Line hint = labelled("hint", kCyan, described.hint);
    const std::string object = to_json_line(described) + "\n";
    const std::string both = what.colored + hint.colored;
    // From here on only the log allocates memory, so it is written last.
    write_all(STDERR_FILENO, both);
    if (format == ErrorFormat::kJson) write_all(STDOUT_FILENO, object);
    status = info(code).exit_status;
    if (std::ostream* log = log_stream()) *log << what.plain << hint.plain << std::flush;
  } catch (...) {
    if (status != 0) return status;
    say_memory_is_out(format);
    status = info(ErrorCode::kOutOfMemory).exit_status;
  }
  return status;
}

}  // namespace fovea::cli

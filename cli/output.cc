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
#include <fstream>
#include <new>
#include <streambuf>
#include <string>
#include <system_error>
#include <utility>

#include "cli/language.h"
#include "fovea/base/check.h"
#include "fovea/base/error.h"
#include "fovea/base/file.h"
#include "fovea/report/html.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

// Whether a file looks like text: appending log lines to a binary file would damage it.
bool holds_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char begin[512];
  file.read(begin, sizeof(begin));
  return std::find(begin, begin + file.gcount(), '\0') == begin + file.gcount();
}

// A stream buffer that appends to a file at every flush. After the first write that fails it warns
// on stderr and writes nothing more; the command goes on.
class LogFile final : public std::streambuf {
 public:
  LogFile() = default;
  ~LogFile() override {
    if (is_open()) ::close(file_);
  }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  bool is_open() const { return file_ >= 0; }

  // Throws kWrite if the file cannot be opened or created.
  void open(const std::string& path) {
    std::error_code ignored;  // if this fails, opening the file reports the error
    if (fs::is_regular_file(path, ignored) && !holds_text(path)) {
      throw Error(ErrorCode::kUsage, fmt::format("--log-file: {}: there is no text in it", path),
                  "name a new file, or a log that goes on");
    }
    path_ = path;
    // O_NONBLOCK: opening a FIFO must not wait for a reader.
    file_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (file_ >= 0) return;
    throw Error(ErrorCode::kWrite, fmt::format("--log-file: {}: {}", path, std::strerror(errno)),
                "name a file in a folder that exists and may be written");
  }

  // Throws kDiskFull or kWrite if a write has failed since it was opened.
  void close() {
    if (is_open() && ::close(std::exchange(file_, -1)) != 0 && error_ == 0) error_ = errno;
    if (error_ == 0) return;
    throw Error(code_of_failed_write(error_),
                fmt::format("--log-file: {}: the log ends early: {}", path_, std::strerror(error_)),
                "all else is done; what was said is on stderr");
  }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    pending_.push_back(traits_type::to_char_type(c));
    return c;
  }

  std::streamsize xsputn(const char* text, std::streamsize size) override {
    pending_.append(text, static_cast<std::size_t>(size));
    return size;
  }

  int sync() override {
    const bool lost = is_open() && write_pending() != 0;
    pending_.clear();
    if (!lost) return 0;
    ::close(std::exchange(file_, -1));
    warn(fmt::format("--log-file: {}: {}; nothing more is added to it", path_,
                     std::strerror(error_)));
    return 0;  // so that the stream stays usable
  }

 private:
  // 0, or -1 with the reason in error_.
  int write_pending() {
    for (std::string_view rest = pending_; !rest.empty();) {
      const ssize_t written = ::write(file_, rest.data(), rest.size());
      if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
      if (written > 0 || (written < 0 && errno == EINTR)) continue;
      error_ = written < 0 ? errno : EIO;
      return -1;
    }
    return 0;
  }

  std::string path_, pending_;
  int file_ = -1;
  int error_ = 0;  // errno of the first failure
};

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
  const std::string safe = escape_text(in_language(text));
  const std::string_view colon = colon_of_language(), blank = colon == ":" ? " " : "";
  Line line{.colored = {}, .plain = fmt::format("{}{}{}{}\n", label, colon, blank, safe)};
  line.colored = message_terminal().color
                     ? fmt::format("{}{}{}{}{}{}\n", ink, label, colon, kPlain, blank, safe)
                     : line.plain;
  return line;
}

struct ErrorReport {
  std::string error, message, hint;
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
  write_all(STDERR_FILENO, language() == PageLanguage::kChinese
                               ? "错误[E0601]：内存不足\n"
                                 "提示：释放一些内存，或减小计算规模\n"
                               : "error[E0601]: not enough memory\n"
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

// Beside it a file with a longer name is written first.
constexpr std::size_t kLongestName = 200;

bool has_mark(const fs::path& path, std::string_view mark) {
  std::string begin(512, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin.find(mark) != std::string::npos;
}

Terminal terminal_of(int descriptor) {
  Terminal terminal = inspect_terminal(descriptor);
  const Coloring wished = messages().options.color;
  if (wished != Coloring::kAuto) terminal.color = wished == Coloring::kAlways;
  return terminal;
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

bool print_json(Json::Object object) { return print(Json(std::move(object)).line() + "\n"); }

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

bool lies_in(const fs::path& file, const fs::path& folder) {
  if (folder.empty()) return false;
  std::error_code ignored;
  const fs::path inside = fs::weakly_canonical(folder, ignored);
  const fs::path place = fs::weakly_canonical(file, ignored);
  return std::mismatch(inside.begin(), inside.end(), place.begin(), place.end()).first ==
         inside.end();
}

void check_output_is_apart(const std::string& output, const std::string& input,
                           const std::filesystem::path& model) {
  std::error_code ignored;
  const std::string& read = input == "-" ? std::string("/dev/stdin") : input;
  const bool is_input = std::filesystem::equivalent(output, read, ignored);
  if (!is_input && !lies_in(output, model)) return;
  throw Error(ErrorCode::kUsage,
              is_input ? fmt::format("--output: {} is the file that is read", output)
                       : fmt::format("--output: {} lies in the folder of the model", output),
              "choose another file");
}

void check_log_is_apart(std::span<const std::string> files, const std::filesystem::path& folder) {
  const std::string& log = messages().options.log_file;
  if (log.empty()) return;
  std::error_code ignored;
  const auto is_log = [&](const std::string& file) { return fs::equivalent(file, log, ignored); };
  const bool is_inside = lies_in(log, folder);
  if (!is_inside && std::none_of(files.begin(), files.end(), is_log)) return;
  close_log();
  if (fs::is_empty(log, ignored)) fs::remove(log, ignored);  // it was made for the log
  throw Error(ErrorCode::kUsage,
              is_inside ? fmt::format("--log-file: {} lies in the folder of the model", log)
                        : fmt::format("--log-file: {} is a file that the command reads", log),
              "choose another file for the log");
}

void close_log() { messages().log_file.close(); }

Terminal message_terminal() { return terminal_of(STDERR_FILENO); }
Terminal result_terminal() { return terminal_of(STDOUT_FILENO); }
int result_columns() { return terminal_columns(STDOUT_FILENO); }

std::ostream* log_stream() { return messages().log_file.is_open() ? &messages().log : nullptr; }

bool quiet() { return messages().options.quiet; }

void say(std::string_view line) {
  const std::string safe = escape_text(in_language(line)) + "\n";
  Line{.colored = safe, .plain = safe}.say();
}

void note(std::string_view line) {
  if (!quiet()) say(line);
}

void detail(std::string_view line) {
  if (messages().options.verbose) say(line);
}

void warn(std::string_view line) { labelled(in_language("warning"), kYellow, line).say(); }

int report(const std::exception& error, ErrorFormat format) noexcept {
  if (format_of_errors == ErrorFormat::kJson) format = ErrorFormat::kJson;
  int status = 0;
  try {
    ErrorCode code;
    const ErrorReport described = describe(error, code);
    const Line what = labelled(fmt::format("{}[{}]", in_language("error"), described.error), kRed,
                               described.message);
    const Line hint = labelled(in_language("hint"), kCyan, described.hint);
    const std::string object = Json(Json::Object{{"error", described.error},
                                                 {"message", described.message},
                                                 {"hint", described.hint}})
                                   .line() +
                               "\n";
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

void check_page_file(const PageFile& page) {
  const fs::path path(page.file);
  const auto refuse = [&](ErrorCode code, std::string_view what, std::string_view hint) {
    const std::string name = excerpt(page.file);
    throw Error(code, fmt::format("{}: {}{}", page.option, name.empty() ? "" : name + ": ", what),
                std::string(hint));
  };
  if (page.file.empty()) {
    refuse(ErrorCode::kOptionValue, "expected the name of a file, got nothing",
           fmt::format("name one that ends in {}", page.ending));
  }
  if (page.file == "-") {
    refuse(ErrorCode::kUsage,
           fmt::format("a {} is written to a file, not to standard output", page.kind),
           fmt::format("name one that ends in {} (./- is a file of this name)", page.ending));
  }
  if (path.filename().string().size() > kLongestName) {
    refuse(ErrorCode::kWrite, "the name is too long", "choose a shorter one");
  }
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error)) {
    refuse(ErrorCode::kWrite, fmt::format("no such folder: {}", excerpt(folder.string())),
           "make the folder, or choose another file");
  }
  const fs::file_status found = fs::status(path, error);
  if (fs::is_directory(found)) {
    refuse(ErrorCode::kWrite, "is a folder", "name a file in it");
  }
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type == fs::file_type::not_found) return;
  if (type == fs::file_type::none)
    refuse(ErrorCode::kWrite, error.message(), "choose another file");
  if (!page.overwrite) {
    refuse(ErrorCode::kOutputExists, "exists already", "choose another file, or say --overwrite");
  }
  if (!fs::is_regular_file(found) || (!page.mark.empty() && !has_mark(path, page.mark))) {
    refuse(ErrorCode::kOutputExists, fmt::format("is no {} that fovea has written", page.kind),
           "choose another file");
  }
}

}  // namespace fovea::cli

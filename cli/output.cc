// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>

#include "cli/log_file.h"
#include "fovea/base/error.h"
#include "fovea/config/json.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

// One process has one stderr: how it is used is a state of the process.
struct Messages {
  MessageOptions options;
  ErrorFormat errors = ErrorFormat::kText;
  LogFile log_file;
  std::ostream log{&log_file};
};
Messages& messages() {
  static Messages state;
  return state;
}

constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kYellow = "\x1b[33m";
constexpr std::string_view kCyan = "\x1b[36m";
constexpr std::string_view kPlain = "\x1b[0m";

// "error[E0301]: what", the label in its colour where there are colours.
void say_labelled(std::string_view label, std::string_view ink, std::string_view text) {
  const std::string safe = escape_text(text);
  const bool color = message_terminal().color;
  const std::string line = color ? fmt::format("{}{}:{} {}\n", ink, label, kPlain, safe)
                                 : fmt::format("{}: {}\n", label, safe);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  if (std::ostream* log = log_stream()) *log << label << ": " << safe << std::endl;
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

// For errors that carry no hint of their own.
std::string_view hint_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInternal:
      return "this is a defect of fovea: please report it, with the command line";
    case ErrorCode::kUsage:
      return "see: fovea --help";
    case ErrorCode::kShape:
      return "make the sizes agree; the command's --help says what it takes";
    case ErrorCode::kOptionValue:
      return "see the command's --help for what each option takes";
    case ErrorCode::kConfig:
      return "correct the file, or leave it out";
    case ErrorCode::kOutputExists:
      return "choose another folder, or say --resume or --overwrite";
    case ErrorCode::kMissingInput:
      return "check the path";
    case ErrorCode::kEmptyInput:
    case ErrorCode::kNotARegularFile:
    case ErrorCode::kInputFormat:
      return "name a regular file that holds text";
    case ErrorCode::kEncoding:
      return "convert the file to UTF-8, or use --tokenizer byte";
    case ErrorCode::kInputTooSmall:
      return "give more text, or a smaller --block";
    case ErrorCode::kModelDamaged:
      return "restore the model from a copy, or train it again; fovea inspect --verify names what "
             "is damaged";
    case ErrorCode::kModelWrongKind:
    case ErrorCode::kModelMissing:
      return "name a folder that fovea train has written";
    case ErrorCode::kNoCheckpoint:
      return "train from the start, without --resume";
    case ErrorCode::kWrite:
    case ErrorCode::kRead:
      return "check the path and its permissions";
    case ErrorCode::kDiskFull:
      return "free some space, or write to another disk";
    case ErrorCode::kOutOfMemory:
      return "use a smaller model, --batch-size or --block";
    case ErrorCode::kDiverged:
      return "lower --lr, warm up longer (--warmup) or clip (--clip 1)";
  }
  return "see: fovea --help";
}

ErrorReport describe(const std::exception& error, ErrorCode& code) {
  std::string hint;
  code = ErrorCode::kInternal;
  std::string message = error.what();
  if (const auto* known = dynamic_cast<const Error*>(&error)) {
    code = known->code();
    hint = known->hint();
  } else if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    code = ErrorCode::kOutOfMemory;
    message = "not enough memory";
  } else if (dynamic_cast<const std::filesystem::filesystem_error*>(&error) != nullptr) {
    code = ErrorCode::kRead;
  }
  if (hint.empty()) hint = hint_for(code);
  return {std::string(info(code).name), std::move(message), std::move(hint)};
}

}  // namespace

bool print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return true;
  }
  if (errno == EPIPE) return false;  // not our error
  throw Error(ErrorCode::kWrite, fmt::format("standard output: {}", std::strerror(errno)),
              "check where the output goes");
}

void set_messages(const MessageOptions& options, ErrorFormat errors) {
  if (options.quiet && options.verbose) {
    throw Error(ErrorCode::kUsage, "--quiet and --verbose exclude each other",
                "choose one: --quiet says less, --verbose says more");
  }
  messages().options = options;
  messages().errors = errors;
  if (options.log_file.empty()) return;
  messages().log_file.open(options.log_file);
}

void close_log() { messages().log_file.close(); }

Terminal message_terminal() {
  Terminal terminal = inspect_terminal(STDERR_FILENO);
  const Coloring wished = messages().options.color;
  if (wished != Coloring::kAuto) terminal.color = wished == Coloring::kAlways;
  return terminal;
}

std::ostream* log_stream() { return messages().log_file.is_open() ? &messages().log : nullptr; }

bool quiet() { return messages().options.quiet; }

void say(std::string_view line) {
  const std::string safe = escape_text(line) + "\n";
  std::fwrite(safe.data(), 1, safe.size(), stderr);
  std::fflush(stderr);
  if (std::ostream* log = log_stream()) *log << safe << std::flush;
}

void note(std::string_view line) {
  if (!quiet()) say(line);
}

void detail(std::string_view line) {
  if (messages().options.verbose) say(line);
}

void warn(std::string_view line) { say_labelled("warning", kYellow, line); }

int report(const std::exception& error, ErrorFormat format) {
  ErrorCode code;
  const ErrorReport described = describe(error, code);
  say_labelled(fmt::format("error[{}]", described.error), kRed, described.message);
  say_labelled("hint", kCyan, described.hint);
  if (format == ErrorFormat::kJson || messages().errors == ErrorFormat::kJson) {
    std::fprintf(stdout, "%s\n", to_json_line(described).c_str());
    std::fflush(stdout);
  }
  return info(code).exit_status;
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>

#include "fovea/base/error.h"
#include "fovea/config/json.h"
#include "fovea/text/utf8.h"

namespace fovea::cli {

namespace {

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

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return;
  }
  if (errno == EPIPE) return;  // nobody reads on: not our error
  throw Error(ErrorCode::kWrite, fmt::format("standard output: {}", std::strerror(errno)),
              "check where the output goes");
}

void say(std::string_view line) {
  const std::string safe = escape_text(line) + "\n";
  std::fwrite(safe.data(), 1, safe.size(), stderr);
  std::fflush(stderr);
}

void warn(std::string_view line) { say(fmt::format("warning: {}", line)); }

int report(const std::exception& error, ErrorFormat format) {
  ErrorCode code;
  const ErrorReport described = describe(error, code);
  say(fmt::format("error[{}]: {}", described.error, described.message));
  say(fmt::format("hint: {}", described.hint));
  if (format == ErrorFormat::kJson) {
    std::fprintf(stdout, "%s\n", to_json_line(described).c_str());
    std::fflush(stdout);
  }
  return info(code).exit_status;
}

}  // namespace fovea::cli

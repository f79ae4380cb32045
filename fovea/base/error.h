// SPDX-License-Identifier: Apache-2.0
// The one exception type of the library, and the codes it carries.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

namespace fovea {

/// The classes of errors, so that a program can act on them. Each code has a name such as E0303,
/// which is printed and documented; its first two digits are the exit status of the command.
enum class ErrorCode {
  kInternal,
  kUsage,
  kShape,
  kOptionValue,
  kConfig,
  kOutputExists,
  kMissingInput,
  kEmptyInput,
  kNotARegularFile,
  kEncoding,
  kInputTooSmall,
  kInputFormat,
  kModelDamaged,
  kModelWrongKind,
  kModelMissing,
  kNoCheckpoint,
  kWrite,
  kRead,
  kDiskFull,
  kOutOfMemory,
  kDiverged,
};

struct ErrorCodeInfo {
  ErrorCode code;
  std::string_view name;
  int exit_status;
  std::string_view meaning;
  std::string_view hint;  ///< the advice, if an error has no hint of its own
};

/// Every code, in the order of the enum; docs/errors.md is made from this table.
inline constexpr std::array kErrorCodes = {
    ErrorCodeInfo{ErrorCode::kInternal, "E0101", 1, "a defect in fovea itself",
                  "this is a defect of fovea: please report it, with what led to it"},
    ErrorCodeInfo{ErrorCode::kUsage, "E0201", 2, "unknown option or command, or a missing argument",
                  "see: fovea --help"},
    ErrorCodeInfo{ErrorCode::kShape, "E0202", 2, "sizes or shapes that do not fit together",
                  "make the sizes agree with what the message asks for"},
    ErrorCodeInfo{ErrorCode::kOptionValue, "E0203", 2, "an option's value is out of range",
                  "choose a value that the message allows"},
    ErrorCodeInfo{ErrorCode::kConfig, "E0204", 2, "a configuration file that cannot be used",
                  "correct the file, or leave it out"},
    ErrorCodeInfo{ErrorCode::kOutputExists, "E0205", 2, "the output exists already",
                  "choose another folder, or say --resume or --overwrite"},
    ErrorCodeInfo{ErrorCode::kMissingInput, "E0301", 3, "an input file is missing",
                  "check the path"},
    ErrorCodeInfo{ErrorCode::kEmptyInput, "E0302", 3, "an input file is empty",
                  "name a regular file of the kind that the command's --help names"},
    ErrorCodeInfo{ErrorCode::kNotARegularFile, "E0303", 3,
                  "an input that must be a regular file is a directory, FIFO or device",
                  "name a regular file of the kind that the command's --help names"},
    ErrorCodeInfo{ErrorCode::kEncoding, "E0304", 3, "text that is not valid UTF-8",
                  "convert the file to UTF-8, or use --tokenizer byte"},
    ErrorCodeInfo{ErrorCode::kInputTooSmall, "E0305", 3, "too little text for what was asked",
                  "give more text, or a smaller --block"},
    ErrorCodeInfo{ErrorCode::kInputFormat, "E0306", 3, "an input file of the wrong format",
                  "name a regular file of the kind that the command's --help names"},
    ErrorCodeInfo{ErrorCode::kModelDamaged, "E0401", 4, "a model or checkpoint file is damaged",
                  "restore the model from a copy, or train it again; fovea inspect --verify names "
                  "what is damaged"},
    ErrorCodeInfo{ErrorCode::kModelWrongKind, "E0402", 4, "the model is of another kind",
                  "name a folder that fovea train has written"},
    ErrorCodeInfo{ErrorCode::kModelMissing, "E0403", 4, "no model where one was expected",
                  "name a folder that fovea train has written"},
    ErrorCodeInfo{ErrorCode::kNoCheckpoint, "E0404", 4, "no whole checkpoint to resume from",
                  "train from the start, without --resume"},
    ErrorCodeInfo{ErrorCode::kWrite, "E0501", 5, "a file or folder cannot be written",
                  "check the path and its permissions"},
    ErrorCodeInfo{ErrorCode::kRead, "E0502", 5, "a file cannot be read",
                  "check the path and its permissions"},
    ErrorCodeInfo{ErrorCode::kDiskFull, "E0503", 5, "the disk is full",
                  "free some space, or write to another disk"},
    ErrorCodeInfo{ErrorCode::kOutOfMemory, "E0601", 6, "more memory needed than there is",
                  "free some memory, or make what is computed smaller"},
    ErrorCodeInfo{ErrorCode::kDiverged, "E0701", 7,
                  "training diverged: a loss or gradient is not finite",
                  "lower --lr, warm up longer (--warmup) or clip (--clip 1)"},
};

/// Name, exit status, meaning and general hint of a code.
const ErrorCodeInfo& info(ErrorCode code);

/// Thrown by every function of the library that cannot do what it was asked. what() says what went
/// wrong and where, what was expected and what came instead. hint() says what to do about it, and
/// is never empty.
class Error : public std::runtime_error {
 public:
  /// Without a hint, the error has the hint of its code.
  Error(ErrorCode code, const std::string& message, std::string hint = {});

  ErrorCode code() const { return code_; }
  const std::string& hint() const { return hint_; }
  /// Whether the hint was given, and is not that of the code.
  bool has_own_hint() const { return has_own_hint_; }

  /// A copy of this error with another code and message. It keeps a hint of its own. If it has
  /// none, it gets `hint`, or, if that is empty, the hint of the new code.
  Error with(ErrorCode code, const std::string& message, std::string hint = {}) const;

 private:
  ErrorCode code_;
  bool has_own_hint_;
  std::string hint_;
};

}  // namespace fovea

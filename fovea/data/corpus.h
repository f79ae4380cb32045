// SPDX-License-Identifier: Apache-2.0
// Text files: read, checked, joined, split.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

/// The bytes that a text file may hold.
enum class TextEncoding {
  kUtf8,      ///< anything else is an error with file, line and column
  kAnyBytes,  ///< kept as it is
};

/// Where a text may be cut in two.
enum class SplitAt { kCharacter, kWord, kLine };

struct CorpusOptions {
  std::vector<std::string> train = {};
  std::vector<std::string> valid = {};  ///< if empty, the end of the training text validates
  double valid_fraction = 0.1;          ///< of the characters; 0: no validation
  TextEncoding encoding = TextEncoding::kUtf8;
  SplitAt split_at = SplitAt::kCharacter;
};

struct Corpus {
  std::string train;
  std::string valid;               ///< empty: no validation
  std::vector<std::string> notes;  ///< remarks for the user: byte order marks, CRLF
};

/// Reads all files and splits them. Throws as read_text does; kUsage without a training file;
/// kOptionValue for a fraction outside [0, 1); kInputTooSmall if a fraction above 0 holds nothing.
Corpus read_corpus(const CorpusOptions& options);

/// The files joined, byte for byte, with a newline added after a file that does not end with one,
/// if another follows. A file may be a pipe, or "-" for standard input, and is unpacked if it is
/// gzip or Zstandard. Appends to `notes`, unless null. Throws kMissingInput, kNotARegularFile,
/// kRead, kEmptyInput, kEncoding, kInputFormat (damaged), kOutOfMemory; each names the file.
std::string read_text(std::span<const std::string> files, TextEncoding encoding,
                      std::vector<std::string>* notes = nullptr);

/// Byte offset at which the last `fraction` of the characters begins: after the first floor(n (1 -
/// fraction)) of n characters, computed as if in decimal; with kLine, at the next start of a line,
/// with kWord, at the next white space.
index split_offset(std::string_view text, double fraction, SplitAt split_at);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// The lines of a stream, with their numbers. Lines end with LF alone: U+0085, U+2028 and a CR
// are part of a line.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/base/error.h"
#include "fovea/base/types.h"

namespace fovea {

/// Some programs write these bytes before UTF-8; they are no character of the first line.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// An error in one row of a table: what stands behind it can still be read.
class BadRow final : public Error {
 public:
  using Error::Error;
};

struct Line {
  std::string_view text;  ///< without its LF; valid until the reader is asked for more
  index number = 0;       ///< from 1
  bool ended = true;      ///< by LF; false for the last line of a file that does not end with LF
};

/// The most bytes that a line of running text may have.
inline constexpr std::size_t kLongestTextLine = std::size_t{64} << 20;

/// A line of a file whose lines end with CR LF has the CR still.
inline std::string_view without_carriage_return(std::string_view line) {
  return line.substr(0, line.size() - line.ends_with('\r'));
}

/// A byte order mark at the beginning is left out. Memory: as much as the longest line, up to
/// `longest` bytes, and a piece of 256 KiB.
class LineReader {
 public:
  /// `name` begins each message.
  LineReader(std::unique_ptr<ByteStream> stream, std::string name, std::size_t longest);

  /// Returns false at the end. Throws BadRow(kInputFormat) for a line that is too long, and then
  /// goes on behind it; and what the stream throws.
  bool next(Line& line);

  /// From now on the bytes of lines are kept until they are taken, and a line that is too long is
  /// an Error, for it cannot be. Only before the first next().
  void keep_lines() { keeps_ = true; }
  /// All bytes from the end of those taken before to that of the last line, a byte order mark too.
  std::string take_lines() {
    first_kept_ = number_ + 1;
    return std::exchange(kept_, {});
  }
  /// The number of the first line that take_lines() would give.
  index first_kept() const { return first_kept_; }

  /// Whether there is nothing but a byte order mark. Only before the first next().
  bool is_empty();
  /// The next line that is not white space, as far as it is among the next 256 KiB; empty if
  /// there is none. Waits for no more than that line.
  std::string_view peek_line();
  /// The next 64 KiB; all, if there is less.
  std::string_view peek_sample();

  /// "name:line", for messages.
  std::string place(index line) const;
  const std::string& name() const { return name_; }
  bool had_byte_order_mark() const { return had_byte_order_mark_; }

  /// Throws BadRow(kEncoding) unless the line is UTF-8 without NUL. Only for the line that next()
  /// has given last: what stands behind it helps to guess its encoding, once for all such lines.
  void require_text(const Line& line);

 private:
  std::string_view unread() const { return {buffer_.data() + begin_, end_ - begin_}; }
  bool fill();
  void skip_byte_order_mark();
  const std::string& hint_from(const Line& line);
  [[noreturn]] void fail_long_line();

  std::unique_ptr<ByteStream> stream_;
  std::string name_;
  std::size_t longest_;
  std::string buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what is in the buffer and not read
  index number_ = 0;
  bool at_end_ = false;
  bool started_ = false;
  bool had_byte_order_mark_ = false;
  bool keeps_ = false;
  std::string kept_;
  index first_kept_ = 1;
  std::string hint_;  // of the first line that is no text
};

/// The lines of a file, a pipe or, as "-", standard input, unpacked if it is packed; without their
/// LF, and without a CR before it. Empty lines are lines; a last line need not end. Throws
/// kMissingInput, kNotARegularFile, kRead, kEmptyInput (no line at all), kEncoding, kInputFormat;
/// each names the file.
std::vector<std::string> read_text_lines(const std::string& file);

}  // namespace fovea

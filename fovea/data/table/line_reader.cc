// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/table/line_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10;
constexpr std::size_t kSample = std::size_t{64} << 10;

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteStream> stream, std::string name, std::size_t longest)
    : stream_(std::move(stream)),
      name_(std::move(name)),
      longest_(longest),
      buffer_(kPiece, '\0') {}

// Adds bytes behind those that are unread. Returns false at the end.
bool LineReader::fill() {
  if (at_end_) return false;
  if (end_ == buffer_.size() && begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    buffer_.resize(std::min(2 * buffer_.size(), std::max(longest_, kPiece) + kPiece));
  }
  const std::size_t bytes = stream_->read(std::span(buffer_).subspan(end_));
  end_ += bytes;
  at_end_ = bytes == 0;
  return !at_end_;
}

void LineReader::skip_byte_order_mark() {
  if (std::exchange(started_, true)) return;
  while (unread().size() < kByteOrderMark.size() && fill()) {
  }
  had_byte_order_mark_ = unread().starts_with(kByteOrderMark);
  if (had_byte_order_mark_) begin_ += kByteOrderMark.size();
}

bool LineReader::next(Line& line) {
  skip_byte_order_mark();
  for (std::size_t looked = 0;;) {
    const std::string_view rest = unread();
    const std::size_t newline = rest.find('\n', looked);
    const std::size_t size = std::min(newline, rest.size());
    if (size > longest_) fail_long_line();
    if (newline == std::string_view::npos) {
      looked = size;
      if (fill()) continue;
      if (rest.empty()) return false;
    }
    line = {.text = unread().substr(0, size),
            .number = ++number_,
            .ended = newline != std::string_view::npos};
    if (keeps_) {
      if (number_ == 1 && had_byte_order_mark_) kept_ += kByteOrderMark;
      kept_ += unread().substr(0, size + (line.ended ? 1 : 0));
    }
    begin_ += size + (line.ended ? 1 : 0);
    return true;
  }
}

void LineReader::fail_long_line() {
  ++number_;
  for (bool found = false; !found;) {
    const std::size_t newline = unread().find('\n');
    found = newline != std::string_view::npos;
    begin_ = found ? begin_ + newline + 1 : end_;
    if (found) break;
    begin_ = end_ = 0;
    if (!fill()) break;
  }
  const BadRow error(
      ErrorCode::kInputFormat,
      fmt::format("{}: expected a line of at most {}, got a longer one", place(number_),
                  size_text(longest_)),
      "give one example a line; lines end with LF (for ends of old Mac files: tr '\\r' '\\n')");
  if (keeps_) throw Error(error);  // no BadRow any more
  throw error;
}

bool LineReader::is_empty() {
  skip_byte_order_mark();
  return unread().empty() && !fill();
}

std::string_view LineReader::peek_line() {
  skip_byte_order_mark();
  for (;;) {
    const std::string_view rest = unread();
    const std::size_t begin = std::min(rest.find_first_not_of(" \t\r\n"), rest.size());
    const std::size_t newline = rest.find('\n', begin);
    if (newline != std::string_view::npos || rest.size() >= kPiece - kByteOrderMark.size() ||
        !fill()) {
      // Blanks in front of a line that is not blank belong to it.
      const std::size_t before = rest.substr(0, begin).rfind('\n');
      const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
      if (begin == rest.size()) return {};
      std::string_view line = rest.substr(start, std::min(newline, rest.size()) - start);
      if (line.ends_with('\r')) line.remove_suffix(1);
      return line;
    }
  }
}

std::string_view LineReader::peek_sample() {
  skip_byte_order_mark();
  while (unread().size() < kSample && fill()) {
  }
  return unread().substr(0, kSample);
}

std::string LineReader::place(index line) const { return fmt::format("{}:{}", name_, line); }

// Looks at the lines behind it, too, as far as they have been read. A guess for each line of a file
// of another encoding would take the square of its size.
const std::string& LineReader::hint_from(const Line& line) {
  const char* const end = buffer_.data() + end_;
  if (hint_.empty()) {
    hint_ = encoding_hint({line.text.data(), static_cast<std::size_t>(end - line.text.data())});
  }
  return hint_;
}

void LineReader::require_text(const Line& line) {
  const bool has_nul = std::memchr(line.text.data(), 0, line.text.size()) != nullptr;
  const auto invalid = has_nul ? std::nullopt : find_invalid_utf8(line.text);
  if (!has_nul && !invalid) return;
  if (has_nul) {
    const index column = 1 + count_characters(line.text.substr(0, line.text.find('\0')));
    throw BadRow(ErrorCode::kEncoding,
                 fmt::format("{}:{}: expected text, got a NUL byte", place(line.number), column),
                 looks_binary(line.text) ? hint_from(line) : std::string(kRemoveNuls));
  }
  throw BadRow(ErrorCode::kEncoding,
               fmt::format("{}:{}: expected UTF-8, got {}", place(line.number), invalid->column,
                           invalid->bytes),
               hint_from(line));
}

std::vector<std::string> read_text_lines(const std::string& file) {
  LineReader reader(open_text(file), name_of_input(file), kLongestTextLine);
  if (reader.is_empty()) fail(ErrorCode::kEmptyInput, "{} is empty", name_of_input(file));
  std::vector<std::string> lines;
  for (Line line; reader.next(line);) {
    reader.require_text(line);
    lines.emplace_back(without_carriage_return(line.text));
  }
  return lines;
}

}  // namespace fovea

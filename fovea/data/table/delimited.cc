// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/table/delimited.h"

#include <algorithm>

#include "fovea/base/check.h"
#include "fovea/base/printable.h"
#include "fovea/base/size_text.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::string_view kCloseIt =
    "close the quote, and write a quote inside of quotes twice; where quotes are ordinary "
    "characters, say --format tsv";

void remove_cr(std::string_view& text) {
  if (text.ends_with('\r')) text.remove_suffix(1);
}

}  // namespace

RecordReader::RecordReader(LineReader& lines, Dialect dialect, TextEncoding encoding,
                           std::size_t longest)
    : lines_(lines), dialect_(dialect), encoding_(encoding), longest_(longest) {}

// An error in the text of a line is kept for its record, and thrown when that has ended.
bool RecordReader::next_line() {
  try {
    if (!lines_.next(line_)) return false;
  } catch (const BadRow& long_line) {
    if (!dialect_.quotes) throw;
    throw Error(long_line);  // no BadRow any more: whether it has opened a quote is unknown
  }
  if (encoding_ == TextEncoding::kAnyBytes) return true;
  try {
    lines_.require_text(line_);
  } catch (const BadRow& error) {
    if (!problem_) problem_ = error;
  }
  return true;
}

bool RecordReader::next(Record& record) {
  problem_.reset();
  for (;;) {
    if (!next_line()) return false;
    if (line_.text.find_first_not_of(" \r") != std::string_view::npos) break;
    ++empty_lines_;
  }
  record.line = line_.number;
  record.fields.clear();
  if (!dialect_.quotes || line_.text.find('"') == std::string_view::npos) {
    split(record);
    if (dialect_.quotes) {
      for (const std::string_view field : record.fields) {
        if (field.find('\r') == std::string_view::npos) continue;
        note("a CR that ends no line", field.substr(field.find('\r')),
             "put the field in quotes, or write LF or CR LF at the end of lines");
      }
    }
  } else {
    split_quoted(record);
  }
  if (problem_) throw *problem_;
  return true;
}

void RecordReader::split(Record& record) const {
  std::string_view rest = line_.text;
  remove_cr(rest);
  for (;;) {
    const std::size_t end = rest.find(dialect_.separator);
    record.fields.push_back(rest.substr(0, end));
    if (end == std::string_view::npos) return;
    rest.remove_prefix(end + 1);
  }
}

void RecordReader::split_quoted(Record& record) {
  row_.clear();
  ends_.clear();
  std::string_view rest = line_.text;
  for (;;) {
    if (rest.starts_with('"')) {
      take_quoted(rest);
    } else {
      take_plain(rest);
    }
    ends_.push_back(row_.size());
    if (rest.empty()) break;
    rest.remove_prefix(1);  // the separator
  }
  std::size_t begin = 0;
  for (const std::size_t end : ends_) {
    record.fields.push_back(std::string_view(row_).substr(begin, end - begin));
    begin = end;
  }
}

// Leaves `rest` at a separator, or empty at the end of the record.
void RecordReader::take_quoted(std::string_view& rest) {
  const index opened = line_.number;
  const auto column = static_cast<std::size_t>(rest.data() - line_.text.data());
  std::optional<index> character;  // counted only where the line of the quote is left
  rest.remove_prefix(1);
  for (;;) {
    const std::size_t quote = rest.find('"');
    row_ += rest.substr(0, quote);
    if (quote == std::string_view::npos) {
      const bool too_long = row_.size() > longest_;
      if (!character) character = 1 + count_characters(line_.text.substr(0, column));
      if (line_.ended) row_ += '\n';
      if (too_long || !next_line()) {
        throw Error(ErrorCode::kInputFormat,
                    fmt::format("{}:{}: the quote that opens here is not closed {}",
                                lines_.place(opened), *character,
                                too_long ? fmt::format("within {}", size_text(longest_))
                                         : "by the end of the file"),
                    std::string(kCloseIt));
      }
      rest = line_.text;
      continue;
    }
    rest.remove_prefix(quote + 1);
    if (!rest.starts_with('"')) break;
    row_ += '"';
    rest.remove_prefix(1);
  }
  if (rest == "\r") rest = {};
  if (rest.empty() || rest.front() == dialect_.separator) return;
  note("text behind a closing quote", rest, kCloseIt);
  rest = {};
}

void RecordReader::take_plain(std::string_view& rest) {
  const std::size_t end = rest.find(dialect_.separator);
  std::string_view field = rest.substr(0, end);
  if (end == std::string_view::npos) remove_cr(field);
  if (field.find('\r') != std::string_view::npos) {
    note("a CR that ends no line", field.substr(field.find('\r')),
         "put the field in quotes, or write LF or CR LF at the end of lines");
  }
  row_ += field;
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end);
}

// `rest`: of the line, from where the problem is.
void RecordReader::note(std::string_view what, std::string_view rest, std::string_view hint) {
  if (problem_) return;
  const auto before = static_cast<std::size_t>(rest.data() - line_.text.data());
  problem_.emplace(
      ErrorCode::kInputFormat,
      fmt::format("{}:{}: expected the end of a field, got {} {}", lines_.place(line_.number),
                  1 + count_characters(line_.text.substr(0, before)), what,
                  printable(rest.substr(0, 20))),
      std::string(hint));
}

}  // namespace fovea

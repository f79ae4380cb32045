// SPDX-License-Identifier: Apache-2.0
// Rows of columns: with quotes (CSV, RFC 4180) or without (TSV).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/data/corpus.h"
#include "fovea/data/table/line_reader.h"

namespace fovea {

/// Both ends of lines, LF and CR LF, are read. With quotes, a field that begins with " ends with
/// the next ", and may hold separators and line ends; "" in it is one quote. A quote inside another
/// field is an ordinary character, as in Python's csv. Without quotes, every " is.
struct Dialect {
  char separator = '\t';
  bool quotes = false;
};

struct Record {
  index line = 0;                        ///< on which it begins, from 1
  std::vector<std::string_view> fields;  ///< at least one; valid until the next record is read
};

class RecordReader {
 public:
  /// `lines` must outlive the reader. A record has at most `longest` bytes.
  RecordReader(LineReader& lines, Dialect dialect, TextEncoding encoding, std::size_t longest);

  /// Empty lines are left out. Returns false at the end. Throws BadRow: kEncoding; kInputFormat for
  /// text behind a closing quote, for a CR without LF outside of quotes (CSV), for a line that is
  /// too long. With quotes, where the next record begins is unknown after a line that is too long,
  /// or a quote that is not closed: these throw Error(kInputFormat), which says the line of the
  /// quote.
  bool next(Record& record);

  index empty_lines() const { return empty_lines_; }

 private:
  bool next_line();
  void split(Record& record) const;
  void split_quoted(Record& record);
  void take_quoted(std::string_view& rest);
  void take_plain(std::string_view& rest);
  void note(std::string_view what, std::string_view rest, std::string_view hint);

  LineReader& lines_;
  Dialect dialect_;
  TextEncoding encoding_;
  std::size_t longest_;
  Line line_;
  std::string row_;                // the fields of a record with quotes, joined
  std::vector<std::size_t> ends_;  // of the fields in row_
  std::optional<BadRow> problem_;  // the first of the record
  index empty_lines_ = 0;
};

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Labelled texts, one after another, from TSV, CSV, JSON lines, fastText files or plain lines,
// packed or not.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/base/error.h"
#include "fovea/base/types.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/data/table/table_options.h"

namespace fovea {

struct LabelledText {
  std::string text;
  std::vector<std::string> labels;     ///< each once, in the order of the file
  std::vector<std::string> more = {};  ///< TableOptions::more_texts: the further texts
  std::vector<double> numbers;         ///< LabelUse::kNumbers: the value of each label
  index line = 0;                      ///< of the file, from 1; a row of CSV may go on behind it
};

/// The bytes of the lines of a row.
struct RawRow {
  std::string before;  ///< of empty lines before it, and of a row that was left out
  std::string row;     ///< with the end of the last line, if the file has one
};

/// The form of a file as it was found, and counts of its rows.
struct TableSummary : TableForm {
  bool byte_order_mark = false;
  std::vector<std::string> names;  ///< of all columns, as the header or the first object has them
  std::optional<std::size_t> label_of_two;  ///< of two columns (of pairs, three), the label's
  std::vector<std::string> more_columns;    ///< of further texts: names, or numbers from 1

  // The counts of the rows read so far.
  index rows = 0;                     ///< texts
  index empty_lines = 0;              ///< that are no text
  index bad_rows = 0;                 ///< left out, with BadRows::kSkip
  std::vector<std::string> problems;  ///< the messages of the first three of these
};

/// How a format gives its rows (labelled_reader.cc makes them).
class RowSource;

/// Takes memory for the longest row and a few pieces of the file.
///
/// An error in one row stops the reading, or the row is counted and left out (options.bad_rows):
/// too few or too many columns, a missing key, no label, a label that is no number, an empty text,
/// text that is not UTF-8 or has a NUL, a line that is too long (but not in CSV), damaged JSON,
/// text behind a closing quote. Errors after which nothing is certain always stop it: columns that
/// cannot be told, a first row of TSV or CSV that is bad, a quote that is not closed, a damaged
/// packed file.
class LabelledReader {
 public:
  /// Opens a file, a pipe or, as "-", standard input, and reads as far as is needed to know the
  /// format and the columns. Throws what open_text throws, kEmptyInput, kOptionValue, kInputFormat,
  /// kEncoding.
  LabelledReader(const std::string& file, const TableOptions& options);
  /// Reads a stream that is called `name`; the suffix of the name counts.
  LabelledReader(std::unique_ptr<ByteStream> stream, const std::string& name,
                 const TableOptions& options);
  ~LabelledReader();
  LabelledReader(const LabelledReader&) = delete;
  LabelledReader& operator=(const LabelledReader&) = delete;

  /// The next row; false at the end. `row` keeps its memory from one call to the next. Throws as
  /// said above; each message begins with FILE:LINE.
  bool next(LabelledText& row);

  const TableSummary& summary() const { return summary_; }
  /// With raw_rows: the bytes before the first row, which end with the header; empty if there is
  /// none.
  const std::string& raw_header() const { return header_; }
  /// With raw_rows: that of the row that next() has given last, once.
  RawRow take_raw(const LabelledText& row);
  /// With keeps_bad_rows: whether that row could not be read. It has a line, and nothing else.
  bool is_bad() const { return is_bad_; }
  /// The bytes behind the last row, after next() has returned false.
  std::string take_rest() { return lines_->take_lines(); }
  /// "FILE:LINE" of a row, for messages.
  std::string place(const LabelledText& row) const;
  /// Notes for the user on the rows so far: rows that were left out and why.
  std::vector<std::string> notes() const;

 private:
  void check_row(LabelledText& row) const;
  void keep_problem(const Error& error);

  TableOptions options_;
  std::string name_;
  TableSummary summary_;
  std::unique_ptr<RowSource> source_;
  LineReader* lines_;  // which the source owns
  std::string header_;
  bool is_bad_ = false;
};

/// All rows of some files. `label_of_two`, unless null: which of two columns without names is the
/// label, if that is known, else the reader's finding is put there. The form of the first file is
/// put into `form`, unless null, and known for the others. Appends the readers' notes to `notes`,
/// unless null. Throws as the reader does, kEmptyInput for a file without a row,
/// kOutOfMemory.
std::vector<LabelledText> read_labelled(std::span<const std::string> files,
                                        const TableOptions& options,
                                        std::vector<std::string>* notes = nullptr,
                                        std::optional<std::size_t>* label_of_two = nullptr,
                                        TableForm* form = nullptr);

class RowSource {
 public:
  virtual ~RowSource() = default;
  /// Sets text, labels and line; false at the end. Throws BadRow for a row after which it can go
  /// on, of which it has set the line.
  virtual bool next(LabelledText& row) = 0;
  /// Lines that are no row, so far.
  virtual index empty_lines() const = 0;
};

/// The rows of `lines`, in the format and the columns that are found and put into `summary`.
/// Objects that the arguments refer to must outlive the source.
std::unique_ptr<RowSource> make_row_source(std::unique_ptr<LineReader> lines,
                                           const TableOptions& options, TableSummary& summary);

}  // namespace fovea

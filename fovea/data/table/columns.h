// SPDX-License-Identifier: Apache-2.0
// The rows of a table, and which of its columns are the text and the label.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/data/corpus.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/data/table/table_options.h"

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

/// The beginning of a label in files of fastText.
inline constexpr std::string_view kLabelPrefix = "__label__";

struct Columns {
  std::size_t text = 0;
  std::optional<std::size_t> second;  ///< of pairs: the column of the second text
  std::optional<std::size_t> label;
  std::vector<std::size_t> more = {};  ///< of further texts
  std::size_t count = 0;               ///< fields of each row
  bool has_header = false;             ///< the first row is none of the texts
  std::string text_name;               ///< as the header has it, or the number from 1
  std::string second_name, label_name;
};

/// Whether a column of this name (in any case of letters) usually holds the text, or the label.
bool is_usual_text_name(std::string_view name);
bool is_usual_label_name(std::string_view name);

/// The first of `names` that usually is the text (or the label), in the order of the usual names.
std::optional<std::size_t> find_usual_text(std::span<const std::string_view> names);
std::optional<std::size_t> find_usual_label(std::span<const std::string_view> names);

/// Two columns that usually are the texts of a pair.
struct PairColumns {
  std::size_t first, second;
};
std::optional<PairColumns> find_usual_pair(std::span<const std::string_view> names);
/// The same of a table with these options: with more_texts "anchor" and "positive", too.
std::optional<PairColumns> find_usual_pair(std::span<const std::string_view> names,
                                           const TableOptions& options);
/// The columns that usually hold what does not belong to the first text: "negative", "negative_1".
std::vector<std::size_t> find_usual_negatives(std::span<const std::string_view> names);
/// The label of a pair, whose texts have these names: none of them, though it may be a usual one.
std::optional<std::size_t> find_label_of_pair(std::span<const std::string_view> names,
                                              std::string_view first, std::string_view second);

/// Whether `names` are those of a file of the form options.known: that of its text is there (of
/// pairs, those of both).
bool has_known_names(std::span<const std::string_view> names, const TableOptions& options);

/// Where the column `name` stands: as it is written or, if none is, in another case of letters.
/// Throws kInputFormat if several are written so, kOptionValue if several differ from it in case;
/// `place` (FILE:LINE) begins the message.
std::optional<std::size_t> find_column(std::string_view name,
                                       std::span<const std::string_view> names,
                                       std::string_view place);

/// The fields of a line, without regard to quotes but for those around a whole field.
std::vector<std::string_view> parts_of_line(std::string_view line, char separator);

/// The character that a line "sep=;" says, with which Excel lets a table begin.
std::optional<char> separator_of_excel(std::string_view line);

/// The character between the columns of a file that begins with this line: what the options or the
/// format say; of CSV without a comma in it, a semicolon, tab or bar that is there.
char find_separator(std::string_view line, TableFormat format, const TableOptions& options);

/// Finds the columns. `records` are the first of the file, at least one; only the first counts
/// unless there are two columns (of pairs, three), no header, and none of them was said. Then the
/// label is the one that is a number more often (LabelUse::kNumbers), or else has the separator of
/// labels more often, or else has fewer different values, or else is shorter, or else is the first.
/// Throws kOptionValue for a column that is not there, kInputFormat if the columns cannot be told;
/// `place` (FILE:LINE) begins the message.
Columns find_columns(std::span<const std::vector<std::string>> records, const TableOptions& options,
                     std::string_view place);

/// The number that a label is, or nothing. Blanks around it do not count.
std::optional<double> number_of(std::string_view label);

/// Without blanks and tabs at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace fovea

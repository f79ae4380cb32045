// SPDX-License-Identifier: Apache-2.0
// How a file of labelled texts is to be read.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/data/corpus.h"

namespace fovea {

enum class TableFormat {
  kAuto,       ///< by the name, or else by the first line
  kTsv,        ///< columns between tabs; quotes are ordinary characters
  kCsv,        ///< RFC 4180: columns between commas (or what `separator` says), with quotes
  kJsonLines,  ///< an object a line
  kFastText,   ///< __label__a __label__b text
  kLines,      ///< each line is a text without labels
};
inline constexpr EnumName<TableFormat> kTableFormatNames[] = {
    {TableFormat::kAuto, "auto"},         {TableFormat::kTsv, "tsv"},
    {TableFormat::kCsv, "csv"},           {TableFormat::kJsonLines, "jsonl"},
    {TableFormat::kFastText, "fasttext"}, {TableFormat::kLines, "lines"}};
inline std::span<const EnumName<TableFormat>> enum_names(TableFormat) { return kTableFormatNames; }

/// Whether the first row of TSV or CSV names the columns.
enum class HeaderRow {
  kAuto,  ///< if a column is asked for by name, or the usual names stand there
  kYes,
  kNo,
};
inline constexpr EnumName<HeaderRow> kHeaderRowNames[] = {
    {HeaderRow::kAuto, "auto"}, {HeaderRow::kYes, "yes"}, {HeaderRow::kNo, "no"}};
inline std::span<const EnumName<HeaderRow>> enum_names(HeaderRow) { return kHeaderRowNames; }

/// The way to treat a row that cannot be read.
enum class BadRows {
  kStop,  ///< it is an error
  kSkip,  ///< it is left out, and counted
};
inline constexpr EnumName<BadRows> kBadRowsNames[] = {{BadRows::kStop, "stop"},
                                                      {BadRows::kSkip, "skip"}};
inline std::span<const EnumName<BadRows>> enum_names(BadRows) { return kBadRowsNames; }

enum class LabelUse {
  kRequired,  ///< a row without a label is bad
  kAny,       ///< a file must have labels, but a row may have none: [] or nothing in its column
  kOptional,  ///< labels are read where they are; a file may have none
  kNumbers,   ///< required, and each is a finite number
  kNumbersOrNone,  ///< as these in a file that has a column of labels; a file may have none
};

enum class EmptyTexts {
  kRefuse,  ///< a row whose text is white space is bad
  kKeep,    ///< it is a row; and so is an empty line of format kLines
};

/// A pair of texts is one text: the first, this, the second. A tab inside of either becomes a
/// blank.
inline constexpr char kBetweenPair = '\t';
std::string pair_text(std::string_view first, std::string_view second);
/// Both texts of a pair. Without a tab the second is empty.
struct TextPair {
  std::string_view first, second;
};
TextPair pair_of(std::string_view text);

/// How a file was read. A model keeps that of its texts, and reads later ones alike where they have
/// the same names, or as many columns without names.
struct TableForm {
  TableFormat format = TableFormat::kAuto;  ///< auto: not known
  std::string separator = {};               ///< TSV, CSV: the character between columns
  bool has_header = false;
  index columns = 0;                               ///< TSV, CSV: of each row
  std::string text_column = {};                    ///< as its header or key says, or its number
                                                   ///< from 1; may be empty
  std::string second_column = {};                  ///< the same, of pairs
  std::string label_column = {};                   ///< the same; empty if there are no labels
  index text_at = 0, second_at = 0, label_at = 0;  ///< TSV, CSV: their numbers from 1; 0: none

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("format", format, "format of the file; auto: not known");
    visit("separator", separator, "the character between columns");
    visit("has_header", has_header, "whether the first row named the columns");
    visit("columns", columns, "how many columns each row had");
    visit("text_column", text_column, "column of the text: its name, or its number from 1");
    visit("second_column", second_column, "pairs: column of the second text");
    visit("label_column", label_column, "column of the label");
    visit("text_at", text_at, "number of the text's column, from 1; 0: none");
    visit("second_at", second_at, "the same of the second text");
    visit("label_at", label_at, "the same of the label");
  }
};

struct TableOptions {
  TableFormat format = TableFormat::kAuto;
  std::string text_column = {};    ///< its name, or its number from 1; JSON: the key. Empty: found
  std::string second_column = {};  ///< the same, of pairs: that of the second text
  std::string label_column = {};   ///< the same
  HeaderRow header = HeaderRow::kAuto;
  std::string separator = {};        ///< TSV, CSV: the character between columns. Empty: found
  std::string label_separator = {};  ///< the text between labels in a column; empty: one label
  BadRows bad_rows = BadRows::kStop;

  // The caller sets these by its use of the rows; users are not asked for them.
  bool pairs = false;  ///< a row has two texts, which become a pair_text()
  /// Of pairs: further texts stand in further columns: those of more_columns, or those whose names
  /// begin with "negative", or without names all behind the first two, unless the one behind them
  /// is a number.
  bool more_texts = false;
  std::vector<std::string> more_columns = {};  ///< by name, or by number from 1
  LabelUse labels = LabelUse::kRequired;
  /// Which of two columns without names (of pairs, of three) is the label; nothing: found.
  std::optional<std::size_t> label_of_two = {};
  TableForm known = {};  ///< of earlier files: names of columns that are taken before usual ones
  /// Format auto: each line is a text, unless the first one is that of a file of the known form.
  bool lines = false;
  EmptyTexts empty_texts = EmptyTexts::kRefuse;
  bool raw_rows = false;        ///< LabelledReader::take_raw gives the bytes of rows
  bool keeps_bad_rows = false;  ///< a row that cannot be read is counted, and is a row all the same
  TextEncoding encoding = TextEncoding::kUtf8;      ///< kAnyBytes: not for JSON; labels stay UTF-8
  std::size_t longest_row = std::size_t{64} << 20;  ///< bytes

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("format", format, "format of the labelled texts; auto: by name or content",
          {.needs = {"input", "text|pairs"}});
    visit("text_column", text_column,
          "column of the text (of pairs: of the first): its name, or its number from 1",
          {.needs = {"input", "text|pairs"}, .shown = "NAME|N"});
    visit("second_column", second_column,
          "pairs: column of the second text: its name, or its number from 1",
          {.needs = {"input", "pairs"}, .shown = "NAME|N"});
    visit("label_column", label_column, "column of the label: its name, or its number from 1",
          {.needs = {"input", "text|pairs"}, .shown = "NAME|N"});
    visit("header", header, "whether the first row of TSV or CSV names the columns",
          {.needs = {"input", "text|pairs"}});
    visit("separator", separator, "--format tsv and csv: the character between columns",
          {.needs = {"input", "text|pairs"}, .shown = "CHARACTER"});
    visit("label_separator", label_separator, "what stands between several labels of a text",
          {.needs = {"input", "text|pairs"}});
    visit("bad_rows", bad_rows, "rows that cannot be read: an error, or left out and counted",
          {.needs = {"input", "text|pairs"}, .resume = OnResume::kQuiet});
  }
};

/// Throws kOptionValue, which names the option, for what does not fit together.
void check_options(const TableOptions& options);

/// Whether a file has to have labels.
inline bool needs_labels(const TableOptions& options) {
  return options.labels != LabelUse::kOptional && options.labels != LabelUse::kNumbersOrNone;
}
/// Whether labels are numbers.
inline bool reads_numbers(const TableOptions& options) {
  return options.labels == LabelUse::kNumbers || options.labels == LabelUse::kNumbersOrNone;
}

/// The format that the name of a file says by its end: .tsv, .csv.gz, .jsonl and the like.
std::optional<TableFormat> format_of_name(std::string_view name);
/// The format of a file of this name whose first line that is not blank begins like this. Throws
/// kInputFormat if it cannot be told, kEncoding if that is why.
TableFormat find_format(std::string_view name, std::string_view line, const TableOptions& options);

}  // namespace fovea

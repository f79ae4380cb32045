// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/table/table_options.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/data/table/columns.h"
#include "fovea/text/compressed.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::string_view kSayFormat =
    "say the format: --format tsv, csv, jsonl or fasttext (see --help)";

struct Suffix {
  std::string_view suffix;
  TableFormat format;
};
constexpr Suffix kSuffixes[] = {
    {".tsv", TableFormat::kTsv},          {".tab", TableFormat::kTsv},
    {".csv", TableFormat::kCsv},          {".jsonl", TableFormat::kJsonLines},
    {".ndjson", TableFormat::kJsonLines}, {".json", TableFormat::kJsonLines},
};

bool names_columns(std::string_view line, char separator) {
  const std::vector<std::string_view> fields = parts_of_line(line, separator);
  return std::any_of(fields.begin(), fields.end(), is_usual_text_name) ||
         find_usual_pair(fields).has_value();
}

// Whether a file whose first line this is has the known form. Columns between tabs are told by
// their number, too; commas are in many a text. A name alone begins a file, but not what a person
// or a program writes line by line.
bool begins_like(std::string_view name, std::string_view line, const TableOptions& options) {
  const TableForm& form = options.known;
  switch (form.format) {
    case TableFormat::kFastText:
      return line.starts_with(kLabelPrefix);
    case TableFormat::kJsonLines:
      return line.starts_with('{') && line.ends_with('}') &&
             line.find("\":") != std::string_view::npos;
    case TableFormat::kTsv:
    case TableFormat::kCsv: {
      if (separator_of_excel(line)) return true;
      const std::vector<std::string_view> parts = parts_of_line(line, form.separator[0]);
      if (has_known_names(parts, options)) return parts.size() > 1 || name != name_of_input("-");
      return !form.has_header && form.format == TableFormat::kTsv && form.columns > 1 &&
             static_cast<index>(parts.size()) == form.columns;
    }
    case TableFormat::kAuto:
    case TableFormat::kLines:
      break;
  }
  return false;
}

}  // namespace

std::string pair_text(std::string_view first, std::string_view second) {
  std::string text(first);
  std::replace(text.begin(), text.end(), kBetweenPair, ' ');
  text += kBetweenPair;
  const auto begin = static_cast<std::ptrdiff_t>(text.size());
  text += second;
  std::replace(text.begin() + begin, text.end(), kBetweenPair, ' ');
  return text;
}

TextPair pair_of(std::string_view text) {
  const std::size_t between = text.find(kBetweenPair);
  if (between == std::string_view::npos) return {text, {}};
  return {text.substr(0, between), text.substr(between + 1)};
}

void check_options(const TableOptions& options) {
  const std::string& between = options.separator;
  if (!between.empty() &&
      (between.size() != 1 || static_cast<unsigned char>(between[0]) >= 0x80 || between == "\"" ||
       between == "\n" || between == "\r" || between == std::string(1, '\0'))) {
    fail_option("separator", escape_text(between), "one ASCII character, no quote or line end");
  }
  if (options.format == TableFormat::kLines && needs_labels(options)) {
    throw Error(ErrorCode::kOptionValue, "--format lines: such a file has no labels",
                "say a format that has labels: tsv, csv, jsonl or fasttext");
  }
  if (options.pairs &&
      (options.format == TableFormat::kFastText || options.format == TableFormat::kLines)) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("--format {}: such a file has no second text", to_string(options.format)),
        "say a format that has columns: tsv, csv or jsonl");
  }
  const std::string& second = options.second_column;
  if (!second.empty() && (second == options.text_column || second == options.label_column)) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--second-column: {} is the column of the {}", escape_text(second),
                            second == options.text_column ? "first text" : "label"),
                "name three columns");
  }
  if (!options.text_column.empty() && options.text_column == options.label_column) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--label-column: {} is the column of the text",
                            escape_text(options.label_column)),
                "name two columns");
  }
}

std::optional<TableFormat> format_of_name(std::string_view name) {
  const std::string lower = lower_text(without_compression_suffix(name));
  for (const Suffix& known : kSuffixes) {
    if (lower.ends_with(known.suffix)) return known.format;
  }
  return std::nullopt;
}

TableFormat find_format(std::string_view name, std::string_view line, const TableOptions& options) {
  if (options.format != TableFormat::kAuto) return options.format;
  if (options.lines) {
    return begins_like(name, line, options) ? options.known.format : TableFormat::kLines;
  }
  if (const auto known = format_of_name(name)) return *known;
  if (line.empty()) return TableFormat::kLines;
  if (line.starts_with(kLabelPrefix) && !options.pairs) return TableFormat::kFastText;
  if (line.starts_with('{') && line.find("\":") != std::string_view::npos)
    return TableFormat::kJsonLines;
  if (separator_of_excel(line)) return TableFormat::kCsv;
  if (names_columns(line, '\t')) return TableFormat::kTsv;
  if (line.find(',') != std::string_view::npos && names_columns(line, ',')) {
    return TableFormat::kCsv;
  }
  if (!needs_labels(options) && !options.pairs) return TableFormat::kLines;
  if (line.find('\t') != std::string_view::npos) return TableFormat::kTsv;
  if (options.encoding == TextEncoding::kUtf8) require_utf8(line, name);  // it may be UTF-16
  throw Error(
      ErrorCode::kInputFormat,
      options.pairs
          ? fmt::format("{}: expected pairs of texts, got a first line that is not JSON and "
                        "has no tab",
                        name)
          : fmt::format("{}: expected labelled texts, got a first line that is neither JSON "
                        "nor fastText and has no tab",
                        name),
      options.pairs ? "write a tab between both texts, or say --format csv"
                    : std::string(kSayFormat));
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/table/labelled_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/float32.h"
#include "fovea/base/machine.h"
#include "fovea/data/table/columns.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/data/table/row_source.h"
#include "fovea/text/compressed.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

constexpr std::size_t kProblemsToKeep = 3;
constexpr double kBetweenChecks = 64 << 20;  // bytes of rows

// Each label once, where it is first.
void remove_repeated(std::vector<std::string>& labels) {
  if (labels.size() < 2) return;
  KeyedSet<std::string> known;
  std::erase_if(labels, [&](const std::string& label) { return !known.insert(label).second; });
}

double bytes_of(const LabelledText& row) {
  double bytes = sizeof(row) + static_cast<double>(row.text.capacity());
  for (const std::string& label : row.labels) {
    bytes += sizeof(label) + static_cast<double>(label.capacity());
  }
  return bytes + sizeof(double) * static_cast<double>(row.numbers.size());
}

// Names of columns that are not the usual ones are read as a row, whose label is a class of its own
// then. Nothing if that is unlikely.
std::optional<std::string> note_of_names(std::span<const LabelledText> rows,
                                         const LabelledReader& reader) {
  KeyedMap<std::string_view, index> counts;
  for (const LabelledText& row : rows) {
    for (const std::string& label : row.labels) ++counts[label];
  }
  const auto& first = rows.front().labels;
  const bool alone = first.size() == 1 && counts[first.front()] == 1 && counts.size() > 1;
  const auto once = std::count_if(counts.begin(), counts.end(),
                                  [](const auto& label) { return label.second == 1; });
  if (!alone || once > 1) return std::nullopt;
  return fmt::format(
      "{}: the label {} is that of this row alone; if the row names the columns, say so: "
      "--label-column {}",
      reader.place(rows.front()), excerpt(first.front()), excerpt(first.front()));
}

bool may_have_taken_names_for_a_row(const TableSummary& summary, const TableOptions& options) {
  const bool has_columns =
      summary.format == TableFormat::kTsv || summary.format == TableFormat::kCsv;
  const bool classes = options.labels == LabelUse::kRequired || options.labels == LabelUse::kAny;
  return has_columns && classes && options.header == HeaderRow::kAuto && !summary.has_header &&
         summary.rows > 0;
}

}  // namespace

LabelledReader::LabelledReader(const std::string& file, const TableOptions& options)
    : LabelledReader(open_text(file), name_of_input(file), options) {}

LabelledReader::LabelledReader(std::unique_ptr<ByteStream> stream, const std::string& name,
                               const TableOptions& options)
    : options_(options), name_(name) {
  check_options(options_);
  auto lines = std::make_unique<LineReader>(std::move(stream), name, options_.longest_row);
  if (lines->is_empty()) {
    throw Error(ErrorCode::kEmptyInput, fmt::format("{} is empty", name_),
                "name a file that holds texts");
  }
  source_ = make_row_source(std::move(lines), options_, summary_);
}

LabelledReader::~LabelledReader() = default;

bool LabelledReader::next(LabelledText& row) {
  for (;;) {
    try {
      const bool found = source_->next(row);
      summary_.empty_lines = source_->empty_lines();
      if (!found) return false;
      check_row(row);
      ++summary_.rows;
      return true;
    } catch (const BadRow& error) {
      if (options_.bad_rows == BadRows::kStop) throw;
      ++summary_.bad_rows;
      if (summary_.problems.size() < kProblemsToKeep) keep_problem(error);
    }
  }
}

// The likely encoding is named once: it is that of all rows.
void LabelledReader::keep_problem(const Error& error) {
  std::string& problem = summary_.problems.emplace_back(error.what());
  const bool says_encoding = error.code() == ErrorCode::kEncoding && summary_.problems.size() == 1;
  if (says_encoding) problem += "; " + error.hint();
}

void LabelledReader::check_row(LabelledText& row) const {
  const auto bad = [&](ErrorCode code, const std::string& what, std::string_view hint) {
    throw BadRow(code, fmt::format("{}: {}", place(row), what), std::string(hint));
  };
  constexpr std::string_view kRemove =
      "remove the row, or leave out all such rows: --bad-rows skip";
  if (options_.empty_texts == EmptyTexts::kRefuse && is_blank(row.text)) {
    bad(ErrorCode::kInputFormat, "expected a text, got none but white space", kRemove);
  }
  const bool may_lack = options_.labels == LabelUse::kAny || !needs_labels(options_);
  if (row.labels.empty() && !may_lack) {
    if (options_.label_separator.empty() || options_.labels == LabelUse::kNumbers) {
      bad(ErrorCode::kInputFormat, "expected a label, got none", kRemove);
    }
    bad(ErrorCode::kInputFormat,
        "expected a label, got none: --label-separator does not allow that, --multi-label does",
        "add --multi-label, or remove the row (or all such rows: --bad-rows skip)");
  }
  remove_repeated(row.labels);
  row.numbers.clear();
  for (const std::string& label : row.labels) {
    if (options_.encoding == TextEncoding::kAnyBytes && find_invalid_utf8(label)) {
      bad(ErrorCode::kEncoding, "expected a label in UTF-8, got " + excerpt(label),
          "write labels in UTF-8");
    }
    if (options_.labels != LabelUse::kNumbers) continue;
    const auto value = number_of(label);
    if (!value) {
      bad(ErrorCode::kInputFormat, "expected a number as label, got " + excerpt(label), kRemove);
    }
    if (!is_finite_float32(*value)) {
      bad(ErrorCode::kInputFormat, "expected a number as label, got " + why_not_float32(*value),
          "write the numbers in a larger unit, or remove the row");
    }
    row.numbers.push_back(*value);
  }
}

std::string LabelledReader::place(const LabelledText& row) const {
  return fmt::format("{}:{}", name_, row.line);
}

std::vector<std::string> LabelledReader::notes() const {
  std::vector<std::string> notes;
  if (summary_.bad_rows == 0) return notes;
  notes.push_back(fmt::format("{}: rows that cannot be read: {} of {}; they are left out", name_,
                              summary_.bad_rows, summary_.bad_rows + summary_.rows));
  for (const std::string& problem : summary_.problems) notes.push_back(problem);
  return notes;
}

std::vector<LabelledText> read_labelled(std::span<const std::string> files,
                                        const TableOptions& options,
                                        std::vector<std::string>* notes,
                                        std::optional<std::size_t>* label_of_two) {
  std::vector<LabelledText> rows;
  double unchecked = 0;
  TableOptions same = options;
  for (const std::string& file : files) {
    if (label_of_two != nullptr) same.label_of_two = *label_of_two;
    LabelledReader reader(file, same);
    LabelledText row;
    const std::size_t begin = rows.size();
    while (reader.next(row)) {
      rows.push_back(row);  // a copy, which takes no more memory than it needs
      unchecked += bytes_of(rows.back());
      if (unchecked < kBetweenChecks) continue;
      unchecked = 0;
      // While the vector grows, there are two of it.
      require_memory(file, kBetweenChecks + static_cast<double>(3 * sizeof(row) * rows.size()),
                     "use less text, or a machine with more memory");
    }
    if (notes != nullptr) {
      for (std::string& note : reader.notes()) notes->push_back(std::move(note));
      if (may_have_taken_names_for_a_row(reader.summary(), same)) {
        const auto note = note_of_names(std::span(rows).subspan(begin), reader);
        if (note) notes->push_back(*note);
      }
    }
    if (label_of_two != nullptr && !*label_of_two) *label_of_two = reader.summary().label_of_two;
    if (reader.summary().rows > 0) continue;
    throw Error(
        ErrorCode::kEmptyInput,
        fmt::format("{}: expected texts, got none in {} rows and {} empty lines",
                    name_of_input(file), reader.summary().bad_rows, reader.summary().empty_lines),
        reader.summary().problems.empty() ? "name a file that holds texts"
                                          : "the first row: " + reader.summary().problems[0]);
  }
  return rows;
}

}  // namespace fovea

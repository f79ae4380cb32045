// SPDX-License-Identifier: Apache-2.0
// Rows of a text in memory, and the writers that the readers are held against.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/data/table/labelled_reader.h"
#include "fovea/data/table/line_reader.h"
#include "tests/support/drip.h"

namespace fovea {

/// All rows of a file of this name and content.
inline std::vector<LabelledText> rows_of(const std::string& name, const std::string& bytes,
                                         const TableOptions& options = {},
                                         TableSummary* summary = nullptr) {
  LabelledReader reader(std::make_unique<Drip>(bytes, std::size_t{1} << 30), name, options);
  std::vector<LabelledText> rows;
  LabelledText row;
  while (reader.next(row)) rows.push_back(row);
  if (summary != nullptr) *summary = reader.summary();
  return rows;
}

/// A row as a test writes it: "line:label,label|text".
inline std::string written(const LabelledText& row) {
  std::string labels;
  for (const std::string& label : row.labels) labels += (labels.empty() ? "" : ",") + label;
  return std::to_string(row.line) + ":" + labels + "|" + row.text;
}

inline std::vector<std::string> read(const std::string& name, const std::string& bytes,
                                     const TableOptions& options = {}) {
  std::vector<std::string> all;
  for (const LabelledText& row : rows_of(name, bytes, options)) all.push_back(written(row));
  return all;
}

/// A text of any length up to `longest`, from these pieces.
inline std::string random_text(Random& random, index longest,
                               const std::vector<std::string_view>& pieces) {
  std::string text;
  for (index n = random.below(longest + 1); n > 0; --n) {
    text += pieces[static_cast<std::size_t>(random.below(static_cast<index>(pieces.size())))];
  }
  return text;
}

/// A field of CSV; `always`: in quotes even if it needs none.
inline std::string csv_field(std::string_view text, char separator, bool always) {
  const std::string needs = std::string("\"\r\n") + separator;
  if (!always && text.find_first_of(needs) == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + "\"";
}

}  // namespace fovea

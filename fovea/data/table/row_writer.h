// SPDX-License-Identifier: Apache-2.0
// Writes a table anew with more columns. Every byte that was there stays, so quotes, ends of lines
// within a field, and rows that cannot be read survive.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/data/table/labelled_reader.h"

namespace fovea {

class RowWriter {
 public:
  /// For a table of this form: TSV, CSV or JSON lines. The new columns have these names or, if the
  /// table (of JSON lines, the first object) has one of them, all with "predicted_" before it.
  RowWriter(const TableSummary& table, std::vector<std::string> names);

  /// The header, as LabelledReader::raw_header() gives it, with the names. "" stays "".
  std::string header(std::string_view raw) const;
  /// TSV, CSV: the row with a field for each name.
  std::string row(std::string_view raw, const std::vector<std::string>& fields) const;
  /// JSON lines: the object with a member for each name; the first object decides what they are
  /// called. A line that is no object stays as it is.
  /// Throws kInputFormat, in which `place` names the row, if it has one of these keys.
  std::string row(std::string_view raw, std::vector<Json> values, const std::string& place);

  bool writes_objects() const { return format_ == TableFormat::kJsonLines; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  template <class IsTaken>
  void rename_while(IsTaken&& is_taken);
  std::string field(std::string_view text) const;

  const TableFormat format_;
  const std::string separator_;
  std::vector<std::string> names_;
  bool is_first_ = true;  // no object has been written
};

}  // namespace fovea

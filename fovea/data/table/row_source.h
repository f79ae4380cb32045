// SPDX-License-Identifier: Apache-2.0
// The rows of one format. Text and labels are as they stand there; LabelledReader checks them.
#pragma once

#include <memory>

#include "fovea/data/table/labelled_reader.h"
#include "fovea/data/table/line_reader.h"

namespace fovea {

class RowSource {
 public:
  virtual ~RowSource() = default;
  /// Sets text, labels and line; false at the end. Throws BadRow for a row after which it can go
  /// on.
  virtual bool next(LabelledText& row) = 0;
  /// Lines that are no row, so far.
  virtual index empty_lines() const = 0;
};

/// The rows of `lines`, in the format and the columns that are found and put into `summary`.
/// Objects that the arguments refer to must outlive the source.
std::unique_ptr<RowSource> make_row_source(std::unique_ptr<LineReader> lines,
                                           const TableOptions& options, TableSummary& summary);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/text_lines.h"

#include "fovea/base/check.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/text/compressed.h"

namespace fovea {

std::vector<std::string> read_text_lines(const std::string& file) {
  LineReader reader(open_text(file), name_of_input(file), kLongestTextLine);
  if (reader.is_empty()) fail(ErrorCode::kEmptyInput, "{} is empty", name_of_input(file));
  std::vector<std::string> lines;
  for (Line line; reader.next(line);) {
    reader.require_text(line);
    lines.emplace_back(without_carriage_return(line.text));
  }
  return lines;
}

}  // namespace fovea

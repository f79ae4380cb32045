// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/text_lines.h"

#include "fovea/base/check.h"
#include "fovea/data/table/line_reader.h"
#include "fovea/text/compressed.h"

namespace fovea {

namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 20;  // bytes

}  // namespace

std::vector<std::string> read_text_lines(const std::string& file) {
  LineReader reader(open_text(file), name_of_input(file), kLongestLine);
  if (reader.is_empty()) fail(ErrorCode::kEmptyInput, "{} is empty", name_of_input(file));
  std::vector<std::string> lines;
  for (Line line; reader.next(line);) {
    reader.require_text(line);
    lines.emplace_back(line.text.substr(0, line.text.size() - line.text.ends_with('\r')));
  }
  return lines;
}

}  // namespace fovea

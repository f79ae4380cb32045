// SPDX-License-Identifier: Apache-2.0
// A file of labelled texts is read or refused, the same in pieces of any size; what is read is
// text.
#include "fovea/data/table/labelled_reader.h"
#include "fovea/text/utf8.h"
#include "tests/fuzz/pieces.h"

namespace fovea {
namespace {

// Appends the rows.
void read(std::unique_ptr<ByteStream> bytes, const TableOptions& options, std::string& all) {
  LabelledReader reader(std::move(bytes), "f", options);
  for (LabelledText row; reader.next(row);) {
    require(row.line > 0);
    require(!find_invalid_utf8(row.text) && row.text.find('\0') == std::string::npos);
    require(options.labels == LabelUse::kOptional || !row.labels.empty());
    require(options.labels != LabelUse::kNumbers || row.numbers.size() == row.labels.size());
    all += std::to_string(row.line) + "\t" + row.text;
    for (const std::string& label : row.labels) all += "\t" + label;
    all += '\n';
  }
  require(options.bad_rows == BadRows::kSkip || reader.summary().bad_rows == 0);
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fovea;
  if (size < 2) return 0;
  const std::size_t way = data[0] + 256 * (data[1] % 8);
  TableOptions options;
  options.format = static_cast<TableFormat>(way % 6);
  options.labels = static_cast<LabelUse>(way / 6 % 3);
  options.header = static_cast<HeaderRow>(way / 18 % 3);
  options.bad_rows = way / 54 % 2 == 0 ? BadRows::kStop : BadRows::kSkip;
  if (way / 108 % 2 == 1) options.label_separator = ",";
  if (way / 216 % 2 == 1) options.text_column = "2";
  if (way / 432 % 2 == 1) options.longest_row = 30;
  require_same_in_pieces(text_of(data + 2, size - 2),
                         [&](std::unique_ptr<ByteStream> bytes, std::string& all) {
                           read(std::move(bytes), options, all);
                         });
  return 0;
}

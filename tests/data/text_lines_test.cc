// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/base/file.h"
#include "fovea/data/table/line_reader.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

TEST(TextLines, AreReadAsTheyAre) {
  const TestFolder folder;
  const std::string file = folder / "lines.txt";
  const auto lines_of = [&](std::string_view text) {
    write_file_atomically(file, text);
    return read_text_lines(file);
  };
  EXPECT_THAT(lines_of("a b\n\n c \n"), ElementsAre("a b", "", " c "));
  EXPECT_THAT(lines_of("\xEF\xBB\xBF"
                       "a\r\nb"),
              ElementsAre("a", "b"));
  EXPECT_THAT(lines_of("\n"), ElementsAre(""));
  EXPECT_THROWS(lines_of(""), kEmptyInput, "lines.txt is empty");
  EXPECT_THROWS(lines_of("a\n\xFF\n"), kEncoding, "lines.txt:2");
  EXPECT_THROWS(read_text_lines(folder / "none"), kMissingInput, "none");
}

}  // namespace
}  // namespace fovea

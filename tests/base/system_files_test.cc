// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>

#include "fovea/base/machine.h"
#include "tests/support/folder.h"

namespace fovea {
namespace {

TEST(SystemFiles, NumbersAndLines) {
  const TestFolder folder;
  std::ofstream(folder / "number") << "4096\n";
  std::ofstream(folder / "word") << "max\n";
  std::ofstream(folder / "lines") << "MemTotal:       16 kB\nMemFree:\t8 kB\nanon 7\n";
  EXPECT_EQ(file_number(folder / "number"), 4096);
  EXPECT_EQ(file_number(folder / "word"), -1);
  EXPECT_EQ(file_number(folder / "missing"), -1);
  EXPECT_EQ(line_value(folder / "lines", "MemFree"), "8 kB");
  EXPECT_EQ(leading_number(line_value(folder / "lines", "anon")), 7);
  EXPECT_EQ(line_value(folder / "lines", "Swap"), "");
  EXPECT_EQ(leading_number("none"), 0);
}

}  // namespace
}  // namespace fovea

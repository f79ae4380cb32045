// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/base/bytes.h"
#include "fovea/base/file.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(ByteSource, AFileAndATextGiveTheSamePieces) {
  const TestFolder folder;
  const std::string bytes = "0123456789";
  write_file_atomically(folder / "x", bytes);
  const FileSource file(folder / "x");
  const MemorySource memory(bytes);
  for (const ByteSource* source :
       {static_cast<const ByteSource*>(&file), static_cast<const ByteSource*>(&memory)}) {
    EXPECT_EQ(source->size(), 10u);
    std::string room, piece(4, ' ');
    source->read(3, piece);
    EXPECT_EQ(piece, "3456");
    EXPECT_EQ(source->view(8, 2, room), "89");
    EXPECT_EQ(source->view(10, 0, room), "");
  }
}

TEST(ByteSource, AFileThatIsCutMeanwhileIsNotRead) {
  const TestFolder folder;
  write_file_atomically(folder / "x", "0123456789");
  const FileSource file(folder / "x");
  std::filesystem::resize_file(folder / "x", 5);
  std::string piece(4, ' ');
  EXPECT_THROWS(file.read(3, piece), kRead, "x: ends at byte 5; it had 10 when it was opened");
}

TEST(ByteSource, OnlyRegularFilesAreOpened) {
  const TestFolder folder;
  EXPECT_THROWS(FileSource(folder / "none"), kMissingInput, "none: cannot open");
  EXPECT_THROWS(FileSource(folder.path()), kNotARegularFile, "got a directory");
  EXPECT_THROWS(FileSource("/dev/zero"), kNotARegularFile, "got a device or socket");
}

}  // namespace
}  // namespace fovea

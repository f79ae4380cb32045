// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "experiments/experiment.h"
#include "fovea/base/file.h"
#include "fovea/tensor/checksum.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(DataFile, IsThereOrSaysWhatIsNeededWhere) {
  const TestFolder folder;
  const std::string checksum = xxh3_128("text");
  const DataFile file{"texts.txt", checksum, "0123", "a library"};
  EXPECT_THROWS(require_data(folder.path(), file), kMissingInput, "texts.txt");
  const auto error = error_of([&] { require_data(folder.path(), file); });
  EXPECT_EQ(error->hint(), "put the file with SHA-256 0123 there; it comes from a library");
  write_file_atomically(folder.path() / "texts.txt", "another text");
  EXPECT_THROWS(require_data(folder.path(), file), kInputFormat, "this is another file");
  write_file_atomically(folder.path() / "texts.txt", "text");
  EXPECT_EQ(require_data(folder.path(), file), folder.path() / "texts.txt");
}

}  // namespace
}  // namespace fovea

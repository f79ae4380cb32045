// SPDX-License-Identifier: Apache-2.0
#include "tests/support/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "fovea/base/file.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

void write(const fs::path& path) { std::ofstream(path) << "text"; }

TEST(Folder, NamesAreThoseOfFilesAndFolders) {
  const TestFolder folder;
  write(folder / "a");
  fs::create_directories(folder / ".b" / "c");
  std::error_code error;
  EXPECT_THAT(names_in(folder.path(), error), UnorderedElementsAre("a", ".b"));
  EXPECT_FALSE(error);
  EXPECT_THAT(names_in(folder / "nowhere", error), IsEmpty());
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  EXPECT_THROWS(names_in(folder / "nowhere"), kRead, "cannot list the folder");
}

TEST(Folder, IsRemovedWithAllThatIsInIt) {
  const TestFolder folder;
  fs::create_directories(folder / "tree" / "deep" / "deeper");
  write(folder / "tree" / "file");
  write(folder / "tree" / "deep" / "file");
  write(folder / "kept");
  fs::create_symlink(folder / "kept", folder / "tree" / "link");
  fs::create_directory_symlink(folder.path(), folder / "tree" / "folder");
  std::error_code error;
  remove_tree(folder / "tree", error);
  EXPECT_FALSE(error) << error.message();
  EXPECT_THAT(names_in(folder.path(), error), UnorderedElementsAre("kept"));
  remove_tree(folder / "kept", error);
  EXPECT_FALSE(error);
  EXPECT_THAT(names_in(folder.path(), error), IsEmpty());
}

TEST(Folder, WhatIsNotThereIsRemoved) {
  const TestFolder folder;
  std::error_code error;
  remove_tree(folder / "nowhere", error);
  EXPECT_FALSE(error);
}

TEST(Folder, WhatCannotBeRemovedIsAnError) {
  std::error_code error;
  remove_tree("/proc/self/status", error);
  EXPECT_TRUE(error);
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace fovea {

/// A folder of its own for each test, gone afterwards.
class TestFolder {
 public:
  TestFolder() : path_(std::filesystem::path(testing::TempDir()) / name_of_test()) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  // A test with a parameter has a slash in its name.
  static std::string name_of_test() {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '-');
    return "fovea-" + name + "-" + std::to_string(::getpid());
  }

  std::filesystem::path path_;
};

}  // namespace fovea

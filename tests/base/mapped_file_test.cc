// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/mapped_file.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "fovea/base/bytes.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

// Several pages, each of its own letter.
std::string letters(char first) {
  std::string text;
  for (char c = first; c < first + 8; ++c) text += std::string(5000, c);
  return text;
}

class MappedFileTest : public testing::Test {
 protected:
  void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  // A file that is written within a tick of its clock has the same time.
  void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }
  bool holds(const SharedBytes& bytes, std::string_view text) {
    return std::equal(text.begin(), text.end(), bytes.data(), bytes.data() + bytes.size(),
                      [](char c, std::uint8_t b) { return static_cast<std::uint8_t>(c) == b; });
  }

  const TestFolder folder_;
  const fs::path file_ = folder_ / "file";
};

TEST_F(MappedFileTest, OutlivesItsSource) {
  const std::string text = letters('a');
  write(file_, text);
  SharedBytes some, all;
  {
    const FileSource source(file_);
    some = source.share(4998, 6);
    all = source.share(0, text.size());
  }
  EXPECT_TRUE(some.is_mapped() && all.is_mapped());
  EXPECT_TRUE(holds(some, "aabbbb"));
  EXPECT_TRUE(holds(all, text));
  some.require_unchanged();
}

TEST_F(MappedFileTest, IsACopyWhereItMust) {
  write(file_, letters('a'));
  const FileSource source(file_);
  EXPECT_FALSE(source.share(4999, 2).is_mapped());  // an odd place
  EXPECT_TRUE(holds(source.share(4999, 2), "ab"));
  EXPECT_EQ(source.share(0, 0).size(), 0U);
  const std::string text = "memory";
  EXPECT_TRUE(holds(MemorySource(text).share(2, 4), "mory"));
  EXPECT_TRUE(holds(SharedBytes(std::vector<std::uint8_t>{'x', 'y'}), "xy"));
}

// What is gone is read as zeros, which no process dies of, and then told.
TEST_F(MappedFileTest, AFileThatBecomesShorterIsAnError) {
  write(file_, letters('a'));
  const FileSource source(file_);
  const SharedBytes bytes = source.share(0, 40000);
  fs::resize_file(file_, 4096);
  std::vector<std::uint8_t> read(bytes.data(), bytes.data() + bytes.size());
  EXPECT_EQ(read[4095], 'a');
  EXPECT_EQ(read[8192], 0);
  EXPECT_EQ(read.back(), 0);
  EXPECT_THROWS(bytes.require_unchanged(), kRead, "was written while it was in use");
}

TEST_F(MappedFileTest, AFileThatIsWrittenIsAnError) {
  write(file_, letters('a'));
  const FileSource source(file_);
  const SharedBytes bytes = source.share(0, 40000);
  wait();
  write(file_, letters('b'));
  EXPECT_THROWS(bytes.require_unchanged(), kRead, "was written while it was in use");
}

// As tools replace a file: the old one is there as long as somebody has it.
TEST_F(MappedFileTest, AFileThatIsReplacedStaysAsItWas) {
  const std::string text = letters('a');
  write(file_, text);
  const FileSource source(file_);
  const SharedBytes bytes = source.share(0, text.size());
  wait();
  write(folder_ / "new", letters('b'));
  fs::rename(folder_ / "new", file_);
  bytes.require_unchanged();
  EXPECT_TRUE(holds(bytes, text));
}

TEST_F(MappedFileTest, ManyAtOnceFromManyThreads) {
  const std::string text = letters('a');
  write(file_, text);
  const FileSource source(file_);
  std::vector<std::thread> threads;
  std::vector<int> found(8);
  for (std::size_t t = 0; t < found.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int n = 0; n < 50; ++n) {
        const FileSource own(file_);
        found[t] += holds(own.share(0, text.size()), text) && holds(source.share(0, 2), "aa");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int n : found) EXPECT_EQ(n, 50);
}

// A fault elsewhere is that of whoever handled it before.
TEST_F(MappedFileTest, LeavesOtherFaultsAlone) {
  write(file_, letters('a'));
  EXPECT_DEATH(
      {
        const FileSource source(file_);
        source.share(0, 2);
        std::raise(SIGBUS);
      },
      "");
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "fovea/base/bytes.h"
#include "fovea/base/file.h"
#include "tests/support/drip.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

std::string some_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * i / 977 % 251);
  return bytes;
}

TEST(ByteStream, AFileAndATextGiveAllTheirBytes) {
  const TestFolder folder;
  for (const std::size_t size : {0u, 1u, 1000u, 700'000u}) {
    const std::string bytes = some_bytes(size);
    write_file_atomically(folder / "x", bytes);
    FileStream file(folder / "x");
    EXPECT_EQ(file.size_hint(), size);
    EXPECT_EQ(read_whole(file, "x", ""), bytes);
    MemoryStream memory(bytes);
    EXPECT_EQ(read_whole(memory, "x", ""), bytes);
    EXPECT_EQ(read_whole(memory, "x", ""), "") << "it has been read";
  }
}

// A hint is a guess: too small, too large or none, the text is the same.
TEST(ByteStream, TextsAreWholeWhateverWasExpected) {
  const std::string bytes = some_bytes(3'000'000);
  for (const std::uint64_t hint : {0u, 1u, 14u, 2'999'999u, 3'000'000u, 4'000'000u}) {
    for (const std::size_t most : {7'919u, 10'000'000u}) {
      Drip stream(bytes, most, hint);
      EXPECT_EQ(read_whole(stream, "x", ""), bytes) << hint;
    }
  }
}

TEST(ByteStream, WhatDoesNotFitIntoMemoryIsAnError) {
  Drip stream("x", 1, std::uint64_t{1} << 60);
  EXPECT_THROWS(read_whole(stream, "bomb", "read less"), kOutOfMemory, "bomb would take 1.00 EiB");
  Drip huge("x", 1, ~std::uint64_t{1});
  EXPECT_THROWS(read_whole(huge, "bomb", "read less"), kOutOfMemory, "bomb");
}

TEST(ByteStream, OfATextThatIsTooLongNoMoreIsReadThanShowsIt) {
  const std::string bytes = some_bytes(3'000'000);
  for (const std::uint64_t hint :
       {std::uint64_t{0}, std::uint64_t{3'000'000}, std::uint64_t{1} << 60}) {
    Drip enough(bytes, 10'000, hint);
    EXPECT_EQ(read_whole(enough, "x", "", 3'000'000), bytes);
    Drip longer(bytes, 10'000, hint);
    EXPECT_THROWS(read_whole(longer, "log", "cut it", std::size_t{1} << 20), kInputFormat,
                  "log: the text has more than 1.00 MiB");
    std::string rest(10'000, ' ');
    ASSERT_EQ(longer.read(rest), 10'000U);
    EXPECT_EQ(rest, bytes.substr(1'050'000, 10'000));
  }
}

TEST(ByteStream, OnlyFilesAndPipesAreOpened) {
  const TestFolder folder;
  EXPECT_THROWS(FileStream(folder / "none"), kMissingInput, "none: cannot open");
  EXPECT_THROWS(FileStream(folder.path()), kNotARegularFile,
                "expected a regular file or a pipe, got a directory");
  EXPECT_THROWS(FileStream("/dev/zero"), kNotARegularFile, "got a device or socket");
}

TEST(ByteStream, AFifoIsReadIfSomebodyWritesToIt) {
  const TestFolder folder;
  const std::string path = folder / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string to(10, ' ');
  EXPECT_THROWS(FileStream(path).read(to), kNotARegularFile, "a FIFO that nobody writes to");
  // The writer is there before the reader looks, and slower than the reader.
  FileStream stream(path);
  const int writer = ::open(path.c_str(), O_WRONLY);
  ASSERT_GE(writer, 0);
  std::thread thread([&] {
    for (const char* word : {"one ", "two"}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_GT(::write(writer, word, std::string_view(word).size()), 0);
    }
    ::close(writer);
  });
  EXPECT_EQ(read_whole(stream, path, ""), "one two");
  thread.join();
}

TEST(ByteStream, ThereIsACallBeforeAReadThatWaits) {
  const TestFolder folder;
  const std::string path = folder / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  FileStream stream(path);
  const int writer = ::open(path.c_str(), O_WRONLY);
  ASSERT_GE(writer, 0);
  int calls = 0;
  stream.before_waiting([&] {
    ++calls;
    EXPECT_EQ(::write(writer, "two", 3), 3);
  });
  std::string to(10, ' ');
  EXPECT_EQ(::write(writer, "one", 3), 3);
  EXPECT_EQ(stream.read(to), 3U);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(stream.read(to), 3U);
  EXPECT_EQ(to.substr(0, 3), "two");
  EXPECT_EQ(calls, 1);
  ::close(writer);
  EXPECT_EQ(stream.read(to), 0U);  // the end is no wait
  EXPECT_EQ(calls, 1);
}

TEST(ByteStream, AFileIsNeverWaitedFor) {
  const TestFolder folder;
  write_file_atomically(folder / "x", "text");
  FileStream stream(folder / "x");
  stream.before_waiting([] { ADD_FAILURE(); });
  EXPECT_EQ(read_whole(stream, "x", ""), "text");
}

TEST(ByteStream, StandardInputHasAName) {
  EXPECT_EQ(name_of_input("-"), "standard input");
  EXPECT_EQ(name_of_input("./-"), "./-");
  EXPECT_EQ(name_of_input("a.txt"), "a.txt");
}

}  // namespace
}  // namespace fovea

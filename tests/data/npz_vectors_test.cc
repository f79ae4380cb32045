// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "fovea/data/word_vectors.h"
#include "fovea/tensor/npz.h"
#include "fovea/tensor/zip.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// An array of texts of two characters, as numpy writes it. `shape` is a Python tuple.
std::string texts(const std::vector<std::u32string>& words, const std::string& shape) {
  const std::string header = "{'descr': '<U2', 'fortran_order': False, 'shape': " + shape + ", }";
  std::string bytes = std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0';
  bytes += header;
  for (std::u32string word : words) {
    word.resize(2);
    bytes.append(reinterpret_cast<const char*>(word.data()), 8);
  }
  return bytes;
}

template <class T>
std::string numbers(Shape shape, const std::vector<T>& values) {
  return npy_bytes(Tensor::of<T>(shape, values));
}

class NpzVectors : public testing::Test {
 protected:
  std::string write(const std::vector<ZipMember>& members) {
    const std::string path = (folder_.path() / "v.npz").string();
    std::ofstream(path, std::ios::binary) << zip_bytes(members);
    return path;
  }
  WordVectors read(const std::string& words, const std::string& vectors, index width = 0) {
    const std::string file = write({{"words.npy", words}, {"vectors.npy", vectors}});
    return read_npz_vectors(file, wanted_, width);
  }

  TestFolder folder_;
  const std::vector<std::string> wanted_ = {"the", "a", "\u00fc\u4e00", ""};
  const std::string two_ = texts({U"A", U"\u00fc\u4e00"}, "(2,)");
};

TEST_F(NpzVectors, AreThoseOfTheWordsThatAreWanted) {
  const auto check_all = [&](const WordVectors& found) {
    EXPECT_EQ(found.width, 2);
    EXPECT_THAT(found.match, ElementsAre(VectorMatch::kNone, VectorMatch::kLower,
                                         VectorMatch::kExact, VectorMatch::kNone));
    EXPECT_THAT(found.rows, ElementsAre(0, 0, 1, 2, 3, 4.5, 0, 0));
  };
  check_all(read(two_, numbers<float>({2, 2}, {1, 2, 3, 4.5})));
  check_all(read(two_, numbers<double>({2, 2}, {1, 2, 3, 4.5}), 2));
}

TEST_F(NpzVectors, OfAWordThatOccursAgainTheFirstCounts) {
  const WordVectors found =
      read(texts({U"a", U"b", U"a"}, "(3,)"), numbers<float>({3, 1}, {7, 8, 9}));
  EXPECT_THAT(found.rows, ElementsAre(0, 7, 0, 0));
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_THAT(found.notes[0], HasSubstr("words that occur again: 1, the first as words[2]"));
}

TEST_F(NpzVectors, WhatIsWrongIsNamed) {
  const std::string two = numbers<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_THROWS(read(two_, two, 3), kOptionValue,
                "its vectors have 2 numbers; the rows of words are to have 3");
  EXPECT_THROWS(read(numbers<float>({2}, {1, 2}), two), kInputFormat,
                "v.npz: words: expected texts (<U..), got float32");
  EXPECT_THROWS(read(texts({U"a", U"b"}, "(2, 1)"), two), kInputFormat,
                "words: expected 1 axis, got 2");
  EXPECT_THROWS(read(texts({}, "(0,)"), numbers<float>({0, 2}, {})), kEmptyInput,
                "words: expected words, got none");
  EXPECT_THROWS(read(two_, numbers<std::int32_t>({2, 2}, {1, 2, 3, 4})), kInputFormat,
                "vectors: expected float32 or float64, got int32");
  EXPECT_THROWS(read(two_, numbers<float>({1, 2}, {1, 2})), kInputFormat,
                "vectors: expected [2, D], a row for each of the words, got [1, 2]");
  EXPECT_THROWS(read(two_, numbers<float>({2}, {1, 2})), kInputFormat, "got [2]");
  EXPECT_THROWS(read(two_, numbers<float>({2, 0}, {})), kInputFormat, "of 1 to 65536 numbers");
  EXPECT_THROWS(read_npz_vectors(write({{"words.npy", two_}}), wanted_), kInputFormat,
                "there is no array vectors");
  EXPECT_THROWS(read_npz_vectors(write({{"vectors.npy", two}}), wanted_), kInputFormat,
                "there is no array words");
  std::ofstream((folder_.path() / "v.npz").string(), std::ios::trunc).close();
  EXPECT_THROWS(read_npz_vectors((folder_.path() / "v.npz").string(), wanted_), kEmptyInput,
                "no vectors in the file");
}

// Also in rows of words that are not wanted.
TEST_F(NpzVectors, EveryNumberIsFinite) {
  const std::string words = texts({U"x", U"y"}, "(2,)");
  const double infinite = std::numeric_limits<double>::infinity();
  const auto expect_named = [&](double bad, std::string_view got) {
    EXPECT_THROWS(read(words, numbers<double>({2, 2}, {1, 2, 3, bad})), kInputFormat,
                  fmt::format("vectors[1]: word 'y', number 1: expected a finite number, {}", got));
  };
  expect_named(std::nan(""), "got NaN");
  expect_named(-infinite, "got infinity");
  expect_named(1e300, "got 1e+300, too large for float32");
}

}  // namespace
}  // namespace fovea

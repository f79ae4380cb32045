// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/word_vectors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <memory>

#include "fovea/tensor/npz.h"
#include "fovea/tensor/zip.h"
#include "tests/data/table/support.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"
#include "tests/support/time_taken.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using enum VectorMatch;

WordVectors vectors_of(const std::string& bytes, const std::vector<std::string>& words,
                       index width = 0, std::size_t most = 1 << 20) {
  return read_word_vectors(std::make_unique<Drip>(bytes, most), "f", words, width);
}

TEST(WordVectors, ReadsWithAndWithoutAHeader) {
  for (const std::string header : {"", "3 2\n", "\uFEFF3 2 \r\n"}) {
    for (const std::size_t most : {1, 7, 1000}) {
      const WordVectors found = vectors_of(header + "the .5 -1e-1 \nb 1 2\r\nc\t3  4",  //
                                           {"", "c", "the", "d"}, 0, most);
      EXPECT_EQ(found.width, 2);
      EXPECT_THAT(found.match, ElementsAre(kNone, kExact, kExact, kNone));
      EXPECT_THAT(found.rows, ElementsAre(0, 0, 3, 4, .5f, -.1f, 0, 0));
      EXPECT_THAT(found.notes, ElementsAre());
    }
  }
}

TEST(WordVectors, AnExactWordCountsMoreThanOneOfOtherCaseWhereverItStands) {
  EXPECT_THAT(vectors_of("PARIS 1\nParis 2\nparis 3\n", {"Paris", "paris", "pAris", "x"}).rows,
              ElementsAre(2, 3, 1, 0));
  const WordVectors found = vectors_of("ÉCOLE 1\nécole 2\n", {"École", "école"});
  EXPECT_THAT(found.rows, ElementsAre(1, 2));
  EXPECT_THAT(found.match, ElementsAre(kLower, kExact));
  EXPECT_EQ(found.count(kLower), 1);
}

TEST(WordVectors, OfARepeatedWordTheFirstCounts) {
  const WordVectors found = vectors_of("a 1\nb 2\na 3\na 4\n", {"a"});
  EXPECT_THAT(found.rows, ElementsAre(1));
  EXPECT_THAT(found.notes, ElementsAre("f: words that occur again: 2, the first on line 3; their "
                                       "first vectors count"));
}

TEST(WordVectors, WordsWithSpacesAreNoToken) {
  const WordVectors found = vectors_of("a 1 2\n. . 3 4\nat b@c.org 5 6\n", {"a", ".", "at"});
  EXPECT_THAT(found.match, ElementsAre(kExact, kNone, kNone));
}

TEST(WordVectors, TinyNumbersAreZero) {
  EXPECT_THAT(vectors_of("a 1e-400 1e-50\n", {"a"}).rows, ElementsAre(0, 0));
}

TEST(WordVectors, ASignMayBePlus) {
  EXPECT_THAT(vectors_of("a +1.5 -2\n", {"a"}).rows, ElementsAre(1.5, -2));
  EXPECT_THROWS(vectors_of("a 1 +-2\n", {"a"}), kInputFormat, "got '+-2'");
}

TEST(WordVectors, RefusesWrongColumnsByLine) {
  EXPECT_THROWS(vectors_of("a 1 2\nb 1\n", {}), kInputFormat,
                "f:2: expected a word and 2 numbers, got 2 columns");
  EXPECT_THROWS(vectors_of("a 1 2\n\nb 1 2 3\n", {}), kInputFormat,
                "f:3: expected a word and 2 numbers, got 4 columns");
  EXPECT_THROWS(vectors_of("1 2\nb 1\n", {}), kInputFormat, "f:2: expected a word and 2 numbers");
  EXPECT_THROWS(vectors_of("a\n", {}), kInputFormat, "f:1: expected vectors of 1 to 65536 numbers");
  EXPECT_THROWS(vectors_of("2 0\na\nb\n", {}), kInputFormat, "f:1: expected vectors of 1");
  EXPECT_THROWS(vectors_of("1 4000000000\na 1\n", {}), kInputFormat, "got 4000000000");
}

TEST(WordVectors, RefusesAHeaderThatCountsWrong) {
  EXPECT_THROWS(vectors_of("3 1\na 1\nb 2\n", {}), kInputFormat,
                "f:1: the first line says 3 vectors; the file has 2");
  EXPECT_THROWS(vectors_of("1 1\na 1\nb 2\n", {}), kInputFormat, "the file has 2");
  for (const std::string count : {"5000000000", "100000000000000000000"}) {
    EXPECT_THROWS(vectors_of(count + " 1\na 1\n", {}), kInputFormat, "the file has 1");
    EXPECT_THROWS(vectors_of("1 " + count + "\na 1\n", {}), kInputFormat,
                  "f:1: expected vectors of");
  }
}

TEST(WordVectors, RefusesWhatIsNoFiniteNumberInRowsThatAreUsed) {
  for (const std::string number :
       {"nan", "inf", "-inf", "1e39", "1e400", "1,5", "x", "0x1", "1_"}) {
    EXPECT_THROWS(vectors_of("a 1 2\nb 1 " + number + "\n", {"b"}), kInputFormat,
                  "f:2: column 3: expected a finite number, got '" + number + "'");
  }
}

TEST(WordVectors, RefusesEmptyFiles) {
  for (const std::string bytes : {"", "\n \r\n", "\uFEFF", "0 5\n"}) {
    EXPECT_THROWS(vectors_of(bytes, {}), kEmptyInput, "f: no vectors in the file");
  }
}

TEST(WordVectors, RefusesOtherEncodings) {
  EXPECT_THROWS(vectors_of("a 1\nf\xfc 2\n", {}), kEncoding, "f:2:2: expected UTF-8");
  EXPECT_THROWS(vectors_of("\xd6\xd0 1\n", {}), kEncoding, "f:1:1");
}

TEST(WordVectors, NamesBinaryFormats) {
  using namespace std::string_literals;
  EXPECT_THROWS(vectors_of("2 3\nthe \x00\x01\x80\x3f\xff\xff\n"s, {}), kInputFormat,
                "f:1: expected vectors as text, got word2vec's binary format");
  EXPECT_THROWS(vectors_of("\xBA\x16\x4F\x2F\x0C\0\0\0"s, {}), kInputFormat,
                "binary model of fastText");
  EXPECT_THROWS(vectors_of("PK\x03\x04 and more"s, {}), kInputFormat, "ZIP archive");
  EXPECT_THROWS(vectors_of("\x93NUMPY\x01"s, {}), kInputFormat, "NumPy");
}

TEST(WordVectors, RefusesALineWithoutEndAndDoesNotHoldIt) {
  const std::string longest(5 << 20, 'a');
  EXPECT_THROWS(vectors_of("a 1\n" + longest, {}), kInputFormat,
                "f:2: expected a line of at most 4");
}

TEST(WordVectors, RefusesAnotherWidthThanWanted) {
  EXPECT_THROWS(vectors_of("a 1 2\n", {"a"}, 3), kOptionValue,
                "f: its vectors have 2 numbers; the rows of words are to have 3");
  EXPECT_EQ(vectors_of("a 1 2\n", {"a"}, 2).width, 2);
}

using enum VectorMatch;

TEST(VectorTable, TakesTheBestOfEachWord) {
  const std::vector<std::string> words = {"Paris", "paris", "", "x"};
  VectorTable table(words, 0);
  table.begin(2, "f");
  float next = 0;
  const auto fill = [&](std::span<float> row) {
    for (float& number : row) number = ++next;
  };
  table.take("PARIS", fill);
  table.take("paris", fill);
  table.take("", fill);
  table.take("paris", fill);
  EXPECT_EQ(table.repeated(), 1);
  const WordVectors found = table.take();
  EXPECT_THAT(found.match, ElementsAre(kLower, kExact, kNone, kNone));
  EXPECT_THAT(found.rows, ElementsAre(1, 2, 5, 6, 0, 0, 0, 0));
  EXPECT_EQ(found.count(kNone), 2);
}

TEST(VectorTable, KnowsItsWidth) {
  const std::vector<std::string> words = {"a"};
  VectorTable table(words, 3);
  EXPECT_THROWS(table.begin(2, "f"), kOptionValue,
                "f: its vectors have 2 numbers; the rows of words are to have 3");
  table.begin(3, "f");
  EXPECT_EQ(table.width(), 3);
}

// "paris", "Paris", "pAris": each is looked for once, not at each word of the file.
TEST(VectorTable, WordsThatDifferInCaseAloneTakeTimeOfTheirNumber) {
  constexpr int kLetters = 18;
  const auto in_case = [](index number) {
    std::string word(kLetters, 'a');
    for (int n = 0; n < kLetters; ++n) word[static_cast<std::size_t>(n)] -= (number >> n & 1) * 32;
    return word;
  };
  const auto other = [](index number) { return std::to_string(1'000'000 + number); };
  const auto take = [](auto&& word_of) {
    constexpr index kWords = 40'000;
    std::vector<std::string> words;
    for (index n = 0; n < kWords; ++n) words.push_back(word_of(n));
    VectorTable table(words, 0);
    table.begin(1, "f");
    for (index n = 0; n < kWords; ++n) table.take(word_of(2 * kWords + n), [](std::span<float>) {});
    return table.take().count(kLower);
  };
  EXPECT_EQ(take(in_case), 40'000);
  EXPECT_EQ(take(other), 0);
  EXPECT_LT(seconds_of([&] { take(in_case); }), 10 * seconds_of([&] { take(other); }));
}

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

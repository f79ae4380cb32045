// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/word_vectors.h"

#include <memory>

#include "tests/data/table/support.h"
#include "tests/support/throws.h"

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

}  // namespace
}  // namespace fovea

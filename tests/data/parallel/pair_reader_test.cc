// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/parallel/pair_reader.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

class PairReader : public testing::Test {
 protected:
  std::string write(const char* name, std::string_view text) {
    const auto path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  SentencePairs read(const PairFiles& files) {
    SentencePairs pairs;
    read_pairs(pairs, files);
    return pairs;
  }

  TestFolder folder_;
};

TEST_F(PairReader, LinesOfTwoFilesBelongTogether) {
  const SentencePairs pairs =
      read({.source = {write("a.en", "\uFEFFone cat\r\n\ntwo dogs"), write("b.en", "three\n")},
            .target = {write("a.de", "eine Katze\nnichts\nzwei Hunde\n"), write("b.de", "drei")}});
  EXPECT_THAT(pairs.source, ElementsAre("one cat", "two dogs", "three"));
  EXPECT_THAT(pairs.target, ElementsAre("eine Katze", "zwei Hunde", "drei"));
  EXPECT_EQ(pairs.empty, 1);
}

TEST_F(PairReader, ATableHasATabBetweenTheTwo) {
  const SentencePairs pairs =
      read({.tables = {write("a.tsv", "one\teins\n\ntwo\t \nthree\tdrei")}});
  EXPECT_THAT(pairs.source, ElementsAre("one", "three"));
  EXPECT_THAT(pairs.target, ElementsAre("eins", "drei"));
  EXPECT_EQ(pairs.empty, 1);
}

TEST_F(PairReader, PairsWithAnEmptySideMayBeKept) {
  SentencePairs pairs;
  read_pairs(pairs, {.source = {write("a.en", "a\n\n")}, .target = {write("a.de", "b\nc\n")}},
             EmptyPairs::kKeep);
  EXPECT_THAT(pairs.source, ElementsAre("a", ""));
  EXPECT_THAT(pairs.target, ElementsAre("b", "c"));
  EXPECT_EQ(pairs.empty, 1);
}

TEST_F(PairReader, NamesWhatDoesNotFit) {
  const std::string three = write("a.en", "a\nb\nc\n"), two = write("a.de", "a\nb\n");
  EXPECT_THROWS(read({.source = {three}, .target = {two}}), kInputFormat, "a.en has 3 lines");
  EXPECT_THROWS(read({.source = {three}}), kUsage, "files of sources: 1, of their translations: 0");
  EXPECT_THROWS(read({.tables = {write("b.tsv", "a\tb\na b\n")}}), kInputFormat, "b.tsv:2: ");
  EXPECT_THROWS(read({.tables = {write("c.tsv", "a\tb\tc\n")}}), kInputFormat, "2 tabs");
  EXPECT_THROWS(read({.source = {write("x.en", "a\n\xff\n")}, .target = {two}}), kEncoding,
                "x.en:2:1");
  EXPECT_THROWS(read({.source = {(folder_ / "none").string()}, .target = {two}}), kMissingInput,
                "none");
}

}  // namespace
}  // namespace fovea

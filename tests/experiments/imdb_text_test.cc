// SPDX-License-Identifier: Apache-2.0
#include "experiments/imdb_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fovea/base/file.h"
#include "tests/support/folder.h"
#include "tests/support/shared_data.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using Words = std::vector<std::string>;
using Ids = std::vector<token>;

TEST(KerasWords, EndAtBlanksAndPunctuation) {
  EXPECT_EQ(keras_words("It's <br />GOOD--really,\tyes!"),
            (Words{"it's", "br", "good", "really", "yes"}));
  EXPECT_EQ(keras_words(" ... "), Words{});
  EXPECT_EQ(keras_words("\xc3\x89t\xc3\xa9"), Words{"\xc3\xa9t\xc3\xa9"});
}

// The words by their frequency: b 3, then a and c 2 each, a seen first, then d and e.
TEST(KerasVocabulary, NumbersWordsByTheirRank) {
  const Words texts{"a b c", "B, a", "c d b e"};
  const KerasVocabulary all(texts, 100);
  EXPECT_EQ(all.distinct_words(), 5);
  EXPECT_EQ(all.words(), 9);
  EXPECT_EQ(all.rarest_kept(), 1);
  EXPECT_EQ(all.encode("e d c b a x"), (Ids{1, 8, 7, 6, 4, 5, 2}));
  const KerasVocabulary some(texts, 7);
  EXPECT_EQ(some.encode("e d c b a x"), (Ids{1, 2, 2, 6, 4, 5, 2}));
  EXPECT_EQ(some.rarest_kept(), 2);
}

TEST(LastIds, CutAndPadTheFront) {
  const Ids ids{1, 5, 6, 7};
  EXPECT_EQ(last_ids(ids, 3, true), (Ids{5, 6, 7}));
  EXPECT_EQ(last_ids(ids, 6, true), (Ids{0, 0, 1, 5, 6, 7}));
  EXPECT_EQ(last_ids(ids, 6, false), ids);
  EXPECT_EQ(last_ids(ids, 2, false), (Ids{6, 7}));
}

TEST(ReadReviews, TakesLabelAndText) {
  const TestFolder folder;
  const std::filesystem::path file = folder.path() / "reviews.tsv";
  // U+0085, which some take for the end of a line, is a character.
  write_file_atomically(file, "1\tgood\xc2\x85 film\n0\tbad\n");
  const Reviews reviews = read_reviews(file);
  EXPECT_EQ(reviews.texts, (Words{"good\xc2\x85 film", "bad"}));
  EXPECT_EQ(reviews.labels, (std::vector<std::int32_t>{1, 0}));
  write_file_atomically(file, "1\tgood\n2\tbad\n");
  EXPECT_THROWS(read_reviews(file), kInputFormat, "reviews.tsv:2");
}

// Shares of ids in the windows of 80.
struct Shares {
  double unknown = 0, padding = 0;
};

Shares shares_of(const Reviews& reviews, const KerasVocabulary& vocabulary) {
  double unknown = 0, padding = 0, all = 0;
  for (const std::string& text : reviews.texts) {
    const Ids ids = last_ids(vocabulary.encode(text), 80, true);
    unknown += static_cast<double>(std::count(ids.begin(), ids.end(), kKerasUnknown));
    padding += static_cast<double>(std::count(ids.begin(), ids.end(), kKerasPad));
    all += static_cast<double>(ids.size());
  }
  return {unknown / all, padding / all};
}

TEST(KerasVocabulary, HasTheCountsOfTheReviewsOfImdb) {
  const std::filesystem::path data = shared_data("imdb");
  if (data.empty()) GTEST_SKIP() << "there is no shared/data/imdb above this folder";
  const Reviews train = read_reviews(data / "train.tsv.zst");
  const Reviews test = read_reviews(data / "test.tsv.zst");
  EXPECT_EQ(train.texts.size(), 25000u);
  EXPECT_EQ(std::count(train.labels.begin(), train.labels.end(), 1), 12500);
  const KerasVocabulary vocabulary(train.texts, 20000);
  EXPECT_EQ(vocabulary.distinct_words(), 88582);
  EXPECT_EQ(vocabulary.words(), 5942841);
  EXPECT_EQ(vocabulary.rarest_kept(), 10);
  index words = 0, longer = 0;
  for (const std::string& text : test.texts) {
    words += static_cast<index>(keras_words(text).size());
  }
  EXPECT_EQ(words, 5808817);
  for (const std::string& text : train.texts) longer += vocabulary.encode(text).size() > 80 ? 1 : 0;
  EXPECT_EQ(longer, 23085);
  EXPECT_NEAR(shares_of(train, vocabulary).unknown, .024, .0005);
  EXPECT_NEAR(shares_of(train, vocabulary).padding, .020, .0005);
  EXPECT_NEAR(shares_of(test, vocabulary).unknown, .029, .0005);
}

}  // namespace
}  // namespace fovea

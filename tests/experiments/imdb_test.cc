// SPDX-License-Identifier: Apache-2.0
// E1, E2, E3, P9 on a few reviews, where the data lies beside the checkout.
#include "experiments/imdb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "tests/experiments/support.h"
#include "tests/report/xml.h"
#include "tests/support/folder.h"
#include "tests/support/shared_data.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::HasSubstr;

TEST(ReproduceImdb, SaysWhichFileItNeeds) {
  const TestFolder folder;
  Measured measured;
  EXPECT_THROWS(reproduce_imdb(Context(2), {.data = folder.path(), .output = folder.path()},
                               measured.observer()),
                kMissingInput, "train.tsv.zst");
}

TEST(ReproduceImdb, RunsEveryModelAndGoesOn) {
  const std::filesystem::path data = shared_data("imdb").parent_path();
  if (data.empty()) GTEST_SKIP() << "there is no shared/data/imdb above this folder";
  const TestFolder folder;
  const ReproduceOptions options{
      .data = data, .output = folder.path() / "whole", .seeds = 1, .share = 0.004};
  Measured whole;
  reproduce_imdb(Context(2), options, whole.observer());
  std::set<std::string> runs;
  for (const ReproduceRow& row : whole.rows) {
    runs.insert(row.experiment + " " + row.variant);
    EXPECT_EQ(row.by_epoch.size(), 5u) << row.experiment << row.metric;
    EXPECT_FALSE(row.published) << "a trial is not what was published";
    EXPECT_TRUE(*row.ours > 0 && *row.ours < 1.5) << row.experiment << row.metric;
  }
  EXPECT_EQ(runs, (std::set<std::string>{"E1 compat-unscaled", "E1 compat-scaled", "E1 fixed",
                                         "E2 compat-unscaled", "E2 compat-scaled", "E2 fixed",
                                         "E3 compat-lstm", "E3 fixed-lstm", "P9 compat-learned",
                                         "P9 fixed-learned"}));
  EXPECT_EQ(whole.rows.size(), 5 * runs.size());
  for (const char* name :
       {"E1.svg", "E2.svg", "E3.svg", "P9.svg", "E1-compat-unscaled-attention.svg",
        "E2-fixed-attention.svg", "P9-fixed-learned-attention.svg"}) {
    EXPECT_TRUE(std::filesystem::exists(options.output / name)) << name;
  }

  // Stopped in the middle of an epoch of the second run: four updates each epoch.
  ReproduceOptions stopped = options;
  stopped.output = folder.path() / "parts";
  Measured parts;
  parts.stop_after = 5 * 4 + 6;
  EXPECT_THROW(reproduce_imdb(Context(2), stopped, parts.observer()), ReproduceStopped);
  Measured rest;
  reproduce_imdb(Context(2), stopped, rest.observer());
  ASSERT_EQ(rest.rows.size(), whole.rows.size());
  for (std::size_t i = 0; i < rest.rows.size(); ++i) {
    EXPECT_EQ(rest.rows[i].by_epoch, whole.rows[i].by_epoch) << rest.rows[i].variant;
  }
  // Nothing is left to train: nobody is asked whether to stop.
  // A picture that a kill has left out is drawn now, and the same.
  const auto picture = stopped.output / "E1-compat-unscaled-attention.svg";
  const std::string drawn = read_file(picture);
  EXPECT_THAT(drawn, testing::HasSubstr("(padding)"));
  std::filesystem::remove(picture);
  Measured again;
  reproduce_imdb(Context(2), stopped, again.observer());
  EXPECT_EQ(again.asked, 0);
  EXPECT_EQ(read_file(picture), drawn);
  EXPECT_EQ(again.rows.size(), whole.rows.size());
}

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

Reviews reviews() {
  std::string right;
  for (int i = 0; i < 35; ++i) right += i % 2 == 0 ? "good " : "film ";
  return {.texts = {"bad film", right, "good"}, .labels = {0, 1, 1}};
}

TEST(ImdbAttention, ChoosesAReviewThatCanBeReadBelowAPicture) {
  const Reviews all = reviews();
  const ShownReview review = choose_review(all, KerasVocabulary(all.texts, 100));
  ASSERT_EQ(review.words.size(), 36u);
  ASSERT_EQ(review.ids.size(), 36u);
  EXPECT_EQ(review.ids[0], kKerasStart);
  EXPECT_EQ(review.words[0], "(start)");
  EXPECT_EQ(review.words[1], "good");
  // Without such a review the first is taken.
  const Reviews few{.texts = {"bad film", "good"}, .labels = {0, 1}};
  EXPECT_EQ(choose_review(few, KerasVocabulary(few.texts, 100)).words.size(), 3u);
  EXPECT_THROWS(choose_review({}, KerasVocabulary(few.texts, 100)), kShape, "none to show");
}

TEST(ImdbAttention, TheWindowIsWhatTheModelReads) {
  const ShownReview review{.ids = {1, 7, 8}, .words = {"(start)", "good", "film"}};
  const ShownReview padded = window_of(review, 5, true);
  EXPECT_THAT(padded.ids, testing::ElementsAre(kKerasPad, kKerasPad, 1, 7, 8));
  EXPECT_EQ(padded.padding, 2);
  EXPECT_EQ(padded.words, review.words);
  const ShownReview cut = window_of(review, 2, true);
  EXPECT_THAT(cut.ids, testing::ElementsAre(7, 8));
  EXPECT_THAT(cut.words, testing::ElementsAre("good", "film"));
  EXPECT_EQ(window_of(review, 5, false).padding, 0);
}

// Weights of a query sum to 1, so those of the words of a head do.
TEST(ImdbAttention, DrawsTheMeanWeightsOfEachHead) {
  const Reviews all = reviews();
  const KerasVocabulary vocabulary(all.texts, 100);
  ShownReview review = choose_review(all, vocabulary);
  review.ids.resize(2);
  review.words = {"(start)", "<good>"};
  ClassifierConfig config;
  config.task = ClassifierTask::kBinary;
  config.classes = 2;
  config.encoder = "attention:heads=2:plain:no-output";
  config.width = 64;
  config.heads = 4;  // not those of the layer
  config.init = InitScheme::kSource;
  config.vocabulary = 100;
  const Classifier model(config, 1);
  const std::string svg = draw_review_attention(Context(2), model, review, "E1");
  EXPECT_EQ(xml_error(svg), "");
  double weights[2][2];
  const char* const names[2] = {"(start)", "&lt;good&gt;"};
  for (int head = 0; head < 2; ++head) {
    for (int word = 0; word < 2; ++word) {
      const std::string cell =
          "<title>head " + std::to_string(head + 1) + ", " + names[word] + ": ";
      const std::size_t at = svg.find(cell);
      ASSERT_NE(at, svg.npos) << cell;
      weights[head][word] = std::stod(svg.substr(at + cell.size()));
    }
    EXPECT_NEAR(weights[head][0] + weights[head][1], 1, 1e-3);
  }
  EXPECT_NE(weights[0][0], weights[1][0]) << "heads look at different words";
}

}  // namespace
}  // namespace fovea

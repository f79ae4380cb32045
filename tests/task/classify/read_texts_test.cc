// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/read_texts.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/support/throws.h"
#include "tests/task/classify/tiny.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ClassifierTextOptions options_of(const TestFolder& folder, std::string_view text) {
  ClassifierTextOptions options;
  options.train = {write_file(folder, "train.tsv", text)};
  return options;
}

TEST(ReadTexts, SplitsByLabels) {
  const TestFolder folder;
  const LabelledSet set = read_labelled_set(options_of(folder, tiny_reviews()), 1);
  EXPECT_EQ(set.table.size(), 60);
  EXPECT_THAT(set.labels.names(), ElementsAre("bad", "good"));
  std::vector<std::string> drawn;
  for (std::size_t i = 0; i < 60; ++i) {
    if (set.validates[i]) drawn.push_back(set.table.rows[i].labels[0]);
  }
  EXPECT_EQ(drawn.size(), 6u);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), "good"), 3);
  EXPECT_EQ(read_labelled_set(options_of(folder, tiny_reviews()), 1).validates, set.validates);
}

TEST(ReadTexts, ValidatesOnOtherFiles) {
  const TestFolder folder;
  ClassifierTextOptions options = options_of(folder, "a\tx\nb\ty\n");
  options.valid = {write_file(folder, "v1.tsv", "a\tz\n"),
                   write_file(folder, "v2.tsv", "\nb\tz\n")};
  const LabelledSet set = read_labelled_set(options, 1);
  EXPECT_THAT(set.validates, ElementsAre(false, false, true, true));
  EXPECT_THAT(place_of(set.table, 3), testing::EndsWith("v2.tsv:2"));
  options.valid = {write_file(folder, "v.tsv", "a\tsome z\nc\tother z\n")};
  EXPECT_THROWS(read_labelled_set(options, 1), kInputFormat,
                "v.tsv:2: the label c is that of no text to train on");
}

TEST(ReadTexts, RefusesWhatCannotBeLearned) {
  const TestFolder folder;
  EXPECT_THROWS(read_labelled_set({}, 1), kUsage, "no texts to train on");
  EXPECT_THROWS(read_labelled_set(options_of(folder, "a\tx\na\ty y\n"), 1), kInputTooSmall,
                "every label is a");
  ClassifierTextOptions two = options_of(folder, "a,b\tx\nb\ty y\n");
  two.table.label_separator = ",";
  EXPECT_THROWS(read_labelled_set(two, 1), kInputFormat,
                "train.tsv:1: expected one label, got 2 (a, b)");
  two.multi_label = true;
  EXPECT_NO_THROW(read_labelled_set(two, 1));
  ClassifierTextOptions alike = options_of(folder, "a,b\tx\na,b\ty y\n");
  alike.table.label_separator = ",";
  alike.multi_label = true;
  EXPECT_THROWS(read_labelled_set(alike, 1), kInputTooSmall, "all have the same labels: a, b");
  ClassifierTextOptions numbers = options_of(folder, "7\tx\n7\ty y\n");
  numbers.regression = true;
  EXPECT_THROWS(read_labelled_set(numbers, 1), kInputTooSmall, "every number is 7");
}

TEST(ReadTexts, LabelsThatAreAlmostTheSameAreNoted) {
  const TestFolder folder;
  EXPECT_THAT(
      read_labelled_set(options_of(folder, "Pos\tsome text\npos\tlong text\nneg\tother text\n"), 1)
          .notes,
      testing::Contains(HasSubstr("differ only in case or in blanks are classes of their "
                                  "own: Pos and pos")));
  EXPECT_THAT(
      read_labelled_set(options_of(folder, "pos\tsome text\npos\tlong text\nneg\tother text\n"), 1)
          .notes,
      testing::Not(testing::Contains(HasSubstr("differ only"))));
}

TEST(ReadTexts, WhatWasFoundForTheTextsToTrainOnHoldsForTheOthers) {
  const TestFolder folder;
  ClassifierTextOptions options = options_of(folder, "a\tx y\na\tz u\nb\tw v\nb\tx v\n");
  // Alone, this file's labels would be in the other column.
  options.valid = {write_file(folder, "valid.tsv", "a\tsame\nb\tsame\n")};
  const LabelledSet set = read_labelled_set(options, 1);
  EXPECT_EQ(set.table.rows.back().text, "same");
  EXPECT_THAT(set.table.rows.back().labels, ElementsAre("b"));
}

TEST(ReadTexts, OfSeveralLabelsThereMayBeNone) {
  const TestFolder folder;
  ClassifierTextOptions options = options_of(folder, "a\tx\nb\ty y\n\tz\n");
  options.table.label_column = "1";
  options.table.header = HeaderRow::kNo;
  EXPECT_THROWS(read_labelled_set(options, 1), kInputFormat, ":3: expected a label, got none");
  options.multi_label = true;
  const LabelledSet set = read_labelled_set(options, 1);
  EXPECT_TRUE(set.table.rows.at(2).labels.empty());
  ClassifierTextOptions json = options;
  json.train = {write_file(folder, "a.jsonl",
                           "{\"text\": \"x\", \"labels\": [\"a\"]}\n"
                           "{\"text\": \"y\", \"labels\": []}\n")};
  json.table = {};
  EXPECT_TRUE(read_labelled_set(json, 1).table.rows.at(1).labels.empty());
  ClassifierTextOptions lines = json;
  lines.train = {write_file(folder, "a.txt", "__label__a x\nno label here\n")};
  EXPECT_EQ(read_labelled_set(lines, 1).table.rows.at(1).text, "no label here");
}

TEST(ReadTexts, SaysWhenThereIsNoValidation) {
  const TestFolder folder;
  const LabelledSet set = read_labelled_set(options_of(folder, "a\tx\nb\ty\n"), 1);
  EXPECT_THAT(set.notes, ElementsAre(HasSubstr("no validation: 2 texts are too few")));
}

TEST(ChooseTokenizer, LooksAtTheTexts) {
  const auto chosen = [](std::string text) {
    std::vector<std::string> notes;
    LabelledSet set;
    set.table.rows.emplace_back().text = std::move(text);
    set.validates = {false};
    const std::string name = choose_tokenizer(set, notes);
    return name + ": " + notes.at(0);
  };
  EXPECT_THAT(chosen("a film as it is, 电影"), HasSubstr("word: --tokenizer word: the texts have"));
  EXPECT_THAT(chosen("这部电影 is good"), HasSubstr("word"));
  EXPECT_THAT(chosen("这部电影太差了 ok"), HasSubstr("char: --tokenizer char: 78 %"));
  EXPECT_THAT(chosen("ภาพยนตร์เรื่องนี้ดีมากสนุกตื่นเต้นเร้าใจ"), HasSubstr("have few spaces"));
}

// The texts to train on, from the first to the last, and no others.
TEST(ChooseTokenizer, LooksAtTheWholeFile) {
  LabelledSet set;
  for (int i = 0; i < 5000; ++i) {
    set.table.rows.emplace_back().text = i < 1100 ? "a film" : "这部电影太差了";
    set.validates.push_back(false);
  }
  std::vector<std::string> notes;
  EXPECT_EQ(choose_tokenizer(set, notes), "char");
  std::fill(set.validates.begin() + 1100, set.validates.end(), true);
  EXPECT_EQ(choose_tokenizer(set, notes), "word");
}

TEST(ReadTexts, TheSameLabelsInAnotherOrderAreNoDifference) {
  const TestFolder folder;
  ClassifierTextOptions options;
  options.multi_label = true;
  options.train = {write_file(folder, "a.jsonl", R"({"text": "x", "label": ["a", "b"]}
{"text": "y", "label": ["b", "a", "b"]}
)")};
  EXPECT_THROWS(read_labelled_set(options, 1), kInputTooSmall, "all have the same labels: a, b");
}

}  // namespace
}  // namespace fovea

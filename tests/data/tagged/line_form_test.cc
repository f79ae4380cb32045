// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/tagged/line_form.h"

#include <gtest/gtest.h>

#include "tests/data/table/support.h"

namespace fovea {
namespace {

const ColumnSigns kSigns{.is_tag = [](std::string_view word) { return word == "O"; }};

std::string form(std::string_view lines, bool is_all = true, const ColumnSigns& signs = kSigns) {
  const auto found = form_of_lines(lines, is_all, signs);
  if (!found) return "more";
  return *found == LineForm::kColumns ? "columns" : "text";
}

TEST(LineForm, ColumnsAreSeenFromTheFirstLines) {
  EXPECT_EQ(form("Ada\nsaw", false), "columns") << "words alone";
  EXPECT_EQ(form("New York\tB\n", false), "columns") << "a tab";
  EXPECT_EQ(form("\n\r\nAda NNP O\r\nsaw VBD O\r\n", false), "columns") << "tags";
  EXPECT_EQ(form("Ada NNP O\n\nBob NNP O\n", false), "columns") << "of sentences of one word";
  EXPECT_EQ(form("Ada NNP B\nsaw VBD O\n. . O\n", false), "columns");
  EXPECT_EQ(form("\uFEFF-DOCSTART- -X- x\n", false), "columns");
  EXPECT_EQ(form("", true), "columns");
  EXPECT_EQ(form("# id = 4\nAda O\nsaw O\n", false, {kSigns.is_tag, true}), "columns");
}

TEST(LineForm, LinesOfSeveralWordsAreText) {
  EXPECT_EQ(form("Ada saw Rome.\nBob did not see it.\n", false), "text");
  EXPECT_EQ(form("Ada saw Rome.", true), "text") << "a single line";
  EXPECT_EQ(form("Ada saw Rome.\n\n", false), "text") << "a single line before an empty one";
  EXPECT_EQ(form("Ada saw Rome.\nBob sees it.\n\n", false), "text");
  EXPECT_EQ(form("Ada NNP\nsaw VBD\n"), "text");
}

// The last word of a sentence may be called as a tag is.
TEST(LineForm, OneTagAtTheEndOfALineSaysNothing) {
  EXPECT_EQ(form("Ada has type O\n"), "text");
  EXPECT_EQ(form("Ada has type O\n\n"), "text");
  EXPECT_EQ(form("Ada has type O\n\nBob has another.\n", false), "text");
  EXPECT_EQ(form("Ada has type O\nBob has another.\n", false), "text");
  EXPECT_EQ(form("Ada has type O\nBob has another one.\n"), "text");
  EXPECT_EQ(form("Ada has type O\n", false), "more");
}

TEST(LineForm, WaitsForNoMoreThanItNeeds) {
  EXPECT_EQ(form("", false), "more");
  EXPECT_EQ(form("Ada saw", false), "more") << "the line may go on";
  EXPECT_EQ(form("Ada saw Rome.\n", false), "more");
  EXPECT_EQ(form("Ada saw Rome.\nBob", false), "more");
}

TEST(LineForm, ALineThatIsCutWhereReadingEndsDoesNotCount) {
  for (const std::size_t piece : {10'000, 1'000'000}) {
    std::string text;
    while (text.size() < 200'000) text += "Ada saw Rome\n";
    std::unique_ptr<ByteStream> stream = std::make_unique<Drip>(text, piece);
    EXPECT_EQ(find_line_form(stream, kSigns), LineForm::kText);
  }
  std::string words;
  while (words.size() < 200'000) words += "Ada saw Rome ";
  std::unique_ptr<ByteStream> stream = std::make_unique<Drip>(words, 1000);
  EXPECT_EQ(find_line_form(stream, kSigns), LineForm::kText) << "a single line";
}

TEST(LineForm, WhatWasReadIsReadAgain) {
  for (const std::size_t piece : {1, 3, 1000}) {
    const std::string text = "Ada saw Rome.\nBob did not see it.\n" + std::string(100, 'x');
    std::unique_ptr<ByteStream> stream = std::make_unique<Drip>(text, piece);
    EXPECT_EQ(find_line_form(stream, kSigns), LineForm::kText);
    EXPECT_EQ(read_whole(*stream, "text", ""), text);
  }
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/tagged/tagged_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/table/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

std::vector<TaggedSentence> read(const std::string& bytes, const TaggedOptions& options = {},
                                 const std::string& name = "f", std::size_t piece = 1 << 20) {
  TaggedReader reader(std::make_unique<Drip>(bytes, piece), name, options);
  std::vector<TaggedSentence> all;
  for (TaggedSentence sentence; reader.next(sentence);) all.push_back(sentence);
  return all;
}

// "a/X b/Y | c/Z"
std::string shown(const std::vector<TaggedSentence>& sentences) {
  std::string text;
  for (const TaggedSentence& sentence : sentences) {
    if (!text.empty()) text += " |";
    for (std::size_t w = 0; w < sentence.words.size(); ++w) {
      text += (text.empty() ? "" : " ") + sentence.words[w];
      for (const auto& column : sentence.tags) text += "/" + column[w];
    }
  }
  return text;
}

TEST(TaggedReader, ReadsColumns) {
  EXPECT_EQ(shown(read("a\tX\nb\tY\n\n \t\nc\tZ")), "a/X b/Y | c/Z");
  EXPECT_EQ(shown(read("a X\r\nb   Y  \r\n\r\nc Z\r\n")), "a/X b/Y | c/Z");
  EXPECT_EQ(shown(read("-DOCSTART- -X-\n\na X\n#\tY\n")), "a/X #/Y");
}

TEST(TaggedReader, TabsAndBlanksAreToldApartByLine) {
  EXPECT_EQ(shown(read("New York\tX\n# b\tY\n")), "New York/X # b/Y");
  EXPECT_EQ(shown(read("1 a q X\n2 b q Y\n", {.word_column = 2})), "a/X b/Y");
  EXPECT_EQ(shown(read("1 a X q\n2 b Y q\n", {.word_column = 2, .tag_column = {3}})), "a/X b/Y");
  EXPECT_EQ(shown(read("# one\na X\n# Y\n\n#two\nc Z\n", {.comments = true})), "a/X #/Y | c/Z");
  EXPECT_EQ(shown(read("a\nb\n\nc", {.tags = TagUse::kNone})), "a b | c");
}

TEST(TaggedReader, ReadsSeveralColumnsInTheOrderThatIsAsked) {
  EXPECT_EQ(shown(read("a X 1\nb Y 2\n\nc Z 3\n", {.tag_column = {0, 2}})), "a/1/X b/2/Y | c/3/Z");
  TaggedOptions options{.format = TaggedFormat::kConllu};
  options.column = {ConlluColumn::kDeprel, ConlluColumn::kUpos};
  EXPECT_EQ(shown(read("1\ta\t_\tNOUN\t_\t_\t0\troot\t_\t_\n", options)), "a/root/NOUN");
  EXPECT_EQ(tag_columns(TaggedFormat::kConllu, options),
            (std::vector<std::string>{"deprel", "upos"}));
  EXPECT_EQ(tag_columns(TaggedFormat::kConll, {.tag_column = {2, 0}}),
            (std::vector<std::string>{"2", "last"}));
  options.tags = TagUse::kNone;
  EXPECT_EQ(read("1\ta\t_\tNOUN\t_\t_\t0\troot\t_\t_\n", options)[0].tags.size(), 0u);
}

TEST(TaggedReader, BlanksAroundColumnsAreNoPartOfThem) {
  EXPECT_EQ(shown(read("Ada \tB-person  \nsaw\t O\n")), "Ada/B-person saw/O");
  EXPECT_EQ(shown(read("New York\tX\n \tO\n")), "New York/X  /O") << "a word may be a blank";
}

TEST(TaggedReader, RefusesColumnsThatAreTheSame) {
  EXPECT_THROWS(read("a X Y\n", {.tag_column = {2, 2}}), kOptionValue,
                "--tag-column: 2 is named twice");
  EXPECT_THROWS(read("a X Y\n", {.tag_column = {2, 1}}), kOptionValue,
                "--tag-column: 1 is the column of the word");
  EXPECT_THROWS(read("a X Y\n", {.tag_column = {3, 0}}), kInputFormat,
                "f:1: expected tags in different columns, but 3 is the last one, too");
  EXPECT_THROWS(read("a X Y\n", {.tag_column = {2, 4}}), kInputFormat,
                "f:1: expected the tag in column 4, got 3 columns");
  EXPECT_THROWS(read("a\tX\t\n", {.tag_column = {2, 3}}), kInputFormat,
                "f:1: expected a tag without blanks in column 3, got none");
  EXPECT_THROWS(read("a X\n", {.column = {ConlluColumn::kUpos, ConlluColumn::kUpos}}), kOptionValue,
                "--column: upos is named twice");
}

TEST(TaggedReader, RefusesBrokenRows) {
  EXPECT_THROWS(read("a X\nb\n"), kInputFormat, "f:2: expected 2 columns, as in line 1, got 1");
  EXPECT_THROWS(read("a\tX\n\n\tY\n"), kInputFormat, "f:3: expected a word in column 1, got none");
  EXPECT_THROWS(read("a\tX Y\n"), kInputFormat, "f:1: expected a tag without blanks");
  EXPECT_THROWS(read("a X\n\xFF Y\n"), kEncoding, "f:2:1: expected UTF-8");
  EXPECT_THROWS(read(std::string("a X\n\0 Y\n", 8)), kEncoding, "f:2:1");
  EXPECT_THROWS(read(""), kEmptyInput, "f is empty");
  EXPECT_THROWS(read("a X\nb X\nc X\n", {.longest_sentence = 2}), kInputFormat, "f:3: expected");
  EXPECT_THROWS(read("a X\n", {.word_column = 1, .tag_column = {1}}), kOptionValue, "--tag-column");
  EXPECT_THROWS(read("X a\n", {.word_column = 2}), kInputFormat,
                "f:1: expected the tag in the last column, 2, but it is the word's");
}

const char* const kUniversal =
    "# text = vámonos al mar\n"
    "1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tvamos\tir\tVERB\tV\tA=b|C=d\t0\troot\t_\t_\n"
    "2\tnos\tyo\tPRON\tP\t_\t1\tobj\t_\t_\n"
    "2.1\tgone\t_\tVERB\t_\t_\t_\t_\t_\t_\n"
    "3\tmar\tmar\tNOUN\tN\t_\t1\tobl\t_\t_\n"
    "\n"
    "1\t#\t#\tSYM\tS\t_\t0\troot\t_\t_\n";

TEST(TaggedReader, ReadsUniversalDependencies) {
  const TaggedOptions conllu{.format = TaggedFormat::kConllu};
  EXPECT_EQ(shown(read(kUniversal, conllu)), "vamos/VERB nos/PRON mar/NOUN | #/SYM");
  TaggedOptions options = conllu;
  options.column = {ConlluColumn::kFeats};
  EXPECT_EQ(shown(read(kUniversal, options)), "vamos/A=b|C=d nos/_ mar/_ | #/_");
  options = conllu;
  options.words = ConlluWords::kSurface;
  options.tags = TagUse::kNone;
  EXPECT_EQ(shown(read(kUniversal, options)), "vámonos mar | #");
  EXPECT_EQ(format_of("A.CONLLU.gz", {}), TaggedFormat::kConllu);
  EXPECT_EQ(format_of("a.txt", {}), TaggedFormat::kConll);
}

TEST(TaggedReader, ChecksTheNumbersOfWords) {
  const auto rows = [](const std::vector<const char*>& ids) {
    std::string text;
    for (const char* id : ids) text += std::string(id) + "\tw\t_\tX\t_\t_\t_\t_\t_\t_\n";
    return read(text, {.format = TaggedFormat::kConllu});
  };
  EXPECT_EQ(rows({"1", "2-3", "2", "3", "3.1", "3.2", "4"})[0].size(), 4);
  for (const auto& bad : std::vector<std::vector<const char*>>{{"2"},
                                                               {"1", "1"},
                                                               {"0"},
                                                               {"1", "3-4"},
                                                               {"1-3", "1", "2"},
                                                               {"1-2", "1", "2-3"},
                                                               {"-1"},
                                                               {"1", "1.2"},
                                                               {"1", "2.1"},
                                                               {"x"},
                                                               {"1.x"},
                                                               {"1-"},
                                                               {"99999999999999999999"}}) {
    EXPECT_THROWS(rows(bad), kInputFormat, "expected");
  }
}

TEST(TaggedReader, ReadsSegmentedLines) {
  const TaggedOptions words{.format = TaggedFormat::kWords, .tags = TagUse::kNone};
  EXPECT_EQ(shown(read("我们 在\u3000北京\n\n  学 \n", words)), "我们 在 北京 | 学");
  EXPECT_THROWS(read("\n我们 在\n", {.format = TaggedFormat::kWords}), kInputFormat,
                "f:2: expected words with tags, got segmented text");
}

TEST(TaggedReader, GivesTheSameInPiecesOfAnySize) {
  for (const TaggedFormat format : {TaggedFormat::kConll, TaggedFormat::kConllu}) {
    const TaggedOptions options{.format = format};
    const std::string text = format == TaggedFormat::kConllu ? kUniversal : "a X\n\nb Y\nc Z";
    EXPECT_EQ(shown(read(text, options, "f", 1)), shown(read(text, options)));
  }
}

std::string with_tags(const std::string& text, TaggedOptions options) {
  options.keep_source = true;
  options.tags = TagUse::kNone;
  std::string all;
  for (const TaggedSentence& sentence : read(text, options)) {
    const std::vector<std::vector<std::string>> columns = {sentence.words};
    all += with_columns(sentence, columns, "-");
  }
  return all;
}

TEST(TaggedReader, WritesBackWhatItRead) {
  EXPECT_EQ(with_tags("\n\na X\nb\u00a0 Y  \r\n\n# c Z\n", {.comments = true}),
            "\n\na X a\nb\u00a0 Y  b\u00a0\r\n\n# c Z\n");
  EXPECT_EQ(with_tags("-DOCSTART-\tO\n\na\tX", {}), "-DOCSTART-\tO\t-\n\na\tX\ta\n");
  const std::string tagged = with_tags(kUniversal, {.format = TaggedFormat::kConllu});
  EXPECT_NE(tagged.find("1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_\t-\n"), std::string::npos);
  EXPECT_NE(tagged.find("\t_\t_\tmar\n"), std::string::npos);
  EXPECT_EQ(tagged.rfind("# text = vámonos al mar\n", 0), 0u);
}

TEST(TaggedReader, AnyNumberOfLinesWithoutAWordComesInParts) {
  std::string text;
  for (int n = 0; n < 2500; ++n) text += n % 2 == 0 ? "\n" : "# c\n";
  for (const TaggedFormat format : {TaggedFormat::kConll, TaggedFormat::kConllu}) {
    TaggedOptions options{.format = format, .comments = true, .keep_source = true};
    options.tags = TagUse::kNone;
    EXPECT_EQ(read(text, options).size(), 3u);
    EXPECT_EQ(with_tags(text, options), text);
  }
}

TEST(TaggedReader, LongLinesWithoutAWordComeInSmallerParts) {
  const std::string blank(300'000, ' ');
  for (const TaggedFormat format :
       {TaggedFormat::kConll, TaggedFormat::kConllu, TaggedFormat::kWords}) {
    TaggedOptions options{.format = format, .comments = true, .keep_source = true};
    options.tags = TagUse::kNone;
    std::string text;
    for (int n = 0; n < 20; ++n) text += blank + "\n";
    const std::vector<TaggedSentence> parts = read(text, options);
    EXPECT_EQ(parts.size(), 5u);
    std::string kept;
    for (const TaggedSentence& part : parts) kept += with_columns(part, {}, "-");
    EXPECT_EQ(kept, text);
  }
}

TEST(TaggedReader, SentencesOfNoWordsEndAtTheirEmptyLine) {
  const auto row = [](const std::string& id) { return id + "\tw\t_\tX\t_\t_\t_\t_\t_\t_\n"; };
  const TaggedOptions conllu{.format = TaggedFormat::kConllu};
  EXPECT_EQ(shown(read(row("0.1") + "\n" + row("0.1") + row("1"), conllu)), "w/X");
  EXPECT_THROWS(read(row("1-2") + "\n" + row("1") + row("2"), conllu), kInputFormat,
                "f:2: expected the words up to 2");
  EXPECT_THROWS(read(row("1-2"), conllu), kInputFormat, "f:1: expected the words up to 2");
}

TEST(TaggedReader, ALineWithWhiteSpaceAtItsEndKeepsIt) {
  EXPECT_EQ(with_tags("a\n\n  \n", {}), "a\ta\n\n  \n");
}

TEST(Characters, AreThoseOfTheTextWithoutWhiteSpace) {
  EXPECT_THAT(characters_of(" 我a\u3000é\t"), ElementsAre("我", "a", "é"));
  EXPECT_TRUE(characters_of("").empty());
}

TEST(Characters, SayWhereInAWordTheyAre) {
  TaggedSentence words{
      .words = {"我", "喜欢", "计算机学"}, .tags = {}, .lines = {3, 3, 4}, .source = {}};
  const TaggedSentence found = to_characters(words);
  EXPECT_THAT(found.words, ElementsAre("我", "喜", "欢", "计", "算", "机", "学"));
  EXPECT_THAT(found.tags, ElementsAre(ElementsAre("S", "B", "E", "B", "M", "M", "E")));
  EXPECT_THAT(found.lines, ElementsAre(3, 3, 3, 4, 4, 4, 4));
  words.tags = {{"PRON", "VERB", "NOUN"}};
  EXPECT_THAT(to_characters(words).tags,
              ElementsAre(ElementsAre("S-PRON", "B-VERB", "E-VERB", "B-NOUN", "M-NOUN", "M-NOUN",
                                      "E-NOUN")));
}

TEST(Characters, OfAWordWithWhiteSpaceAreItsOthers) {
  const TaggedSentence found =
      to_characters({.words = {"a\u00a0b", "\u00a0"}, .tags = {}, .lines = {1, 2}, .source = {}});
  EXPECT_THAT(found.tags, ElementsAre(ElementsAre("B", "E")));
}

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

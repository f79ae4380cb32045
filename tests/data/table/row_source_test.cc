// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/table/labelled_reader.h"
#include "tests/data/table/python_files.h"
#include "tests/data/table/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;

const TableOptions kWithOrWithout{.labels = LabelUse::kOptional};

TEST(RowSource, Tsv) {
  // As imdb: no header, quotes and U+0085 are characters.
  EXPECT_THAT(read("a.tsv", "0\t\"I think\u0085 so\n1\tgood, \"very\"\r\n\n1\tx"),
              ElementsAre("1:0|\"I think\u0085 so", "2:1|good, \"very\"", "4:1|x"));
  EXPECT_THAT(read("a.txt", "id\ttext\tlabel\n7\tsome words\tpos\n"),
              ElementsAre("2:pos|some words"));
}

TEST(RowSource, Csv) {
  EXPECT_THAT(read("a.csv", "\uFEFFid,text,label\r\n1,\"a,\nb\"\"\",x\r\n2,c, y \r\n"),
              ElementsAre("2:x|a,\nb\"", "4:y|c"));
  EXPECT_THAT(read("a.csv", "label;text\n1;a,b\n"), ElementsAre("2:1|a,b"));
  EXPECT_THAT(read("a.csv", "a text,x\nanother,x\n"), ElementsAre("1:x|a text", "2:x|another"));
  EXPECT_THAT(read("a.csv", "text\n\"a, b\"\n", kWithOrWithout), ElementsAre("2:|a, b"));
  EXPECT_THROWS(read("a.csv", "text\na, b\n", kWithOrWithout), kInputFormat,
                "a.csv:2: expected 1 column");
}

TEST(RowSource, ALineOfExcelSaysTheSeparatorOfCsv) {
  EXPECT_THAT(read("a.csv", "\uFEFFsep=;\r\nlabel;text\r\n1;\"a; b\"\r\n"),
              ElementsAre("3:1|a; b"));
  EXPECT_THAT(read("in", "sep=|\n1|a, b\n2|c\n"), ElementsAre("2:1|a, b", "3:2|c"));
  EXPECT_THAT(read("a.csv", "sep=;\n1,a\n2,b\n", {.separator = ","}),
              ElementsAre("2:1|a", "3:2|b"));
}

TEST(RowSource, JsonKeysInAnyCaseOfLetters) {
  const TableOptions said{.text_column = "words", .label_column = "kind"};
  EXPECT_THAT(read("in", "{\"Words\": \"x\", \"KIND\": \"y\"}", said), ElementsAre("1:y|x"));
  EXPECT_THROWS(read("in", "{\"words\": \"x\", \"KIND\": \"y\", \"Kind\": \"z\"}", said),
                kOptionValue, "in:1: expected one column kind, got 2: KIND, Kind");
}

TEST(RowSource, SeveralLabels) {
  const TableOptions bar{.label_separator = "|"};
  EXPECT_THAT(read("a.tsv", "a|b |a||\tone\nc\ttwo\nd|e\tthree\n", bar),
              ElementsAre("1:a,b|one", "2:c|two", "3:d,e|three"));
  EXPECT_THAT(read("a.jsonl", "{\"text\": \"t\", \"labels\": [\"a\", \"b|c\", 3]}\n", bar),
              ElementsAre("1:a,b,c,3|t"));
}

TEST(RowSource, JsonLines) {
  EXPECT_THAT(read("a.jsonl",
                   "{\"id\": 1, \"text\": \"a\\n\\u4e2d\", \"label\": \"x\"}\n\n"
                   "{\"label\": 2, \"text\": \"b\"}\r\n"
                   "{\"label\": true, \"text\": \"c\"}\n"
                   "{\"label\": 4.5, \"text\": \"d\"}\n"
                   "{\"label\": [\"p\", \"q\"], \"text\": \"e\"}\n"),
              ElementsAre("1:x|a\n\u4E2D", "3:2|b", "4:true|c", "5:4.5|d", "6:p,q|e"));
  EXPECT_THAT(read("in", "{\"a\": \"x\", \"b\": \"y\"}", {.text_column = "b", .label_column = "a"}),
              ElementsAre("1:x|y"));
  EXPECT_THAT(read("in", "{\"text\": \"x\"}\n{\"text\": \"y\", \"n\": 1}\n", kWithOrWithout),
              ElementsAre("1:|x", "2:|y"));
}

TEST(RowSource, FastText) {
  EXPECT_THAT(
      read("a.txt",
           "__label__a __label__b two  words \n"
           "  __label__c\tx __label__\n"
           "between __label__d words __label__e\n"
           "__label__f under__label__score\r\n"),
      ElementsAre("1:a,b|two  words", "2:c|x", "3:d,e|between words", "4:f|under__label__score"));
  EXPECT_THAT(read("a.txt", "__label__a\tx\nno label \n", kWithOrWithout),
              ElementsAre("1:a|x", "2:|no label "));
}

TEST(RowSource, Lines) {
  EXPECT_THAT(read("a.txt", "one\n\n two\tthree\r\n", kWithOrWithout),
              ElementsAre("1:|one", "3:| two\tthree"));
  const TableOptions keep{.labels = LabelUse::kOptional, .empty_texts = EmptyTexts::kKeep};
  EXPECT_THAT(read("a.txt", "one\n\n  \ntwo", keep),
              ElementsAre("1:|one", "2:|", "3:|  ", "4:|two"));
}

TEST(RowSource, OptionalLabelsMayBeginLater) {
  EXPECT_THAT(
      read("a.jsonl", "{\"text\": \"x\"}\n{\"text\": \"y\", \"label\": 1}\n", kWithOrWithout),
      ElementsAre("1:|x", "2:1|y"));
}

TEST(RowSource, ReadsWhatPythonWrites) {
  const std::vector<LabelledText> expected = rows_of("a.csv", std::string(kPythonFiles[0].bytes));
  EXPECT_EQ(expected.size(), 25u);
  const std::vector<LabelledText> rows = rows_of("a.jsonl", std::string(kPythonJson));
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].text, expected[i].text);
    EXPECT_EQ(rows[i].labels, expected[i].labels);
  }
}

TEST(RowSource, RowsOfOtherColumnsAreBad) {
  EXPECT_THROWS(read("a.tsv", "1\ta\n2\n"), kInputFormat,
                "a.tsv:2: expected 2 columns, as in the first row; got 1");
  EXPECT_THROWS(read("a.tsv", "1\ta\n2\tb\tc\n"), kInputFormat, "a.tsv:2: expected 2 columns");
  EXPECT_THROWS(read("a.csv", "label,text\n\n1,\"a\n\n\"\n2,b,c\n"), kInputFormat,
                "a.csv:6: expected 2 columns, as in the first row; got 3");
}

TEST(RowSource, BadJsonIsNamed) {
  const std::string good = "{\"text\": \"t\", \"label\": 1}\n";
  const auto expect_named = [&](const std::string& line, std::string_view what) {
    EXPECT_THROWS(read("a.jsonl", good + line + "\n"), kInputFormat, what);
  };
  expect_named("{\"text\": \"t\"}", "a.jsonl:2: expected the key label, got text");
  expect_named("{\"text\": 5, \"label\": 1}",
               "a.jsonl:2: expected a text as text, got a whole number");
  expect_named("{\"text\": \"t\", \"label\": {}}", "expected a text, a number or a list as label");
  expect_named("{\"text\": \"t\", \"label\": [[1]]}", "expected a label as the list, got a list");
  expect_named("{\"text\": \"t\", ", "a.jsonl:2: no valid JSON at byte");
  expect_named("[1]", "a.jsonl:2: expected an object as the line, got a list");
  expect_named("{\"text\": \"t\", \"text\": \"u\"}", "is there twice");
  expect_named("{\"text\": \"t\", \"" + std::string(5000, 'k') + "\": 1}",
               "a.jsonl:2: expected the key label, got text, " + std::string(60, 'k') + "...");
  EXPECT_THROWS(read("a.jsonl", good + "{\"text\": \"t\", \"label\": \"a\\u0000\"}\n"), kEncoding,
                "a.jsonl:2: expected text as label, got a NUL character");
  EXPECT_THROWS(read("a.jsonl", "{\"words\": \"t\", \"n\": 1}\n"), kOptionValue,
                "a.jsonl:1: expected a key of the text, got words, n");
  const auto array = error_of([] { read("a.json", "[\n{\"text\": 1}\n]"); });
  ASSERT_TRUE(array.has_value());
  EXPECT_THAT(array->hint(), testing::HasSubstr("jq -c '.[]'"));
}

// A pipe is not read further than the row that is asked for.
TEST(RowSource, RowsOfAPipeComeAtOnce) {
  class OneLine final : public ByteStream {
   public:
    std::size_t read(std::span<char> to) override {
      if (given_) throw Error(ErrorCode::kInternal, "it waits for more");
      given_ = true;
      return std::string_view("one\n").copy(to.data(), to.size());
    }

   private:
    bool given_ = false;
  };
  LabelledReader reader(std::make_unique<OneLine>(), "pipe", kWithOrWithout);
  LabelledText row;
  EXPECT_TRUE(reader.next(row));
  EXPECT_EQ(row.text, "one");
}

}  // namespace
}  // namespace fovea

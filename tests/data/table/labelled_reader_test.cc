// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/table/labelled_reader.h"

#include <filesystem>
#include <map>

#include "fovea/base/file.h"
#include "fovea/config/json.h"
#include "tests/data/table/python_files.h"
#include "tests/data/table/support.h"
#include "tests/support/folder.h"
#include "tests/support/packed.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using namespace std::string_literals;
TEST(LabelledReader, SaysWhatItFound) {
  TableSummary found;
  rows_of("a.csv.gz", "\uFEFFid,review,stars\n\n1,x,5\n2,y,4\n", {}, &found);
  EXPECT_EQ(found.format, TableFormat::kCsv);
  EXPECT_TRUE(found.has_header && found.byte_order_mark);
  EXPECT_EQ(found.text_column, "review");
  EXPECT_EQ(found.label_column, "stars");
  EXPECT_EQ(found.rows, 2);
  EXPECT_EQ(found.empty_lines, 1);
  EXPECT_EQ(found.bad_rows, 0);
}

TEST(LabelledReader, NumbersAreRead) {
  const TableOptions numbers{.label_separator = ";", .labels = LabelUse::kNumbers};
  const auto rows = rows_of("a.tsv", "4.5\tx\n-1;2e3\ty\n", numbers);
  EXPECT_THAT(rows[0].numbers, ElementsAre(4.5));
  EXPECT_THAT(rows[1].numbers, ElementsAre(-1, 2000));
  EXPECT_THROWS(rows_of("a.tsv", "4.5\tx\ngood\ty\n", numbers), kInputFormat,
                "a.tsv:2: expected a number as label, got good");
}

TEST(LabelledReader, BadRowsAreAnError) {
  EXPECT_THROWS(read("a.tsv", "1\ta\n2\t \u3000\n"), kInputFormat,
                "a.tsv:2: expected a text, got none but white space");
  EXPECT_THROWS(read("a.tsv", "1\ta\n \tb\n"), kInputFormat, "a.tsv:2: expected a label, got none");
  EXPECT_THROWS(read("a.txt", "__label__a b\nc\n"), kInputFormat, "a.txt:2: expected a label");
  EXPECT_THROWS(read("a.jsonl", "{\"text\":\"a\",\"label\":1}\n{\"text\":\"b\",\"label\":null}\n"),
                kInputFormat, "a.jsonl:2: expected a label");
  EXPECT_THROWS(read("a.tsv", "1\ta\n2\tb\xFF\n"), kEncoding,
                "a.tsv:2:4: expected UTF-8, got 0xFF");
  EXPECT_THROWS(read("a.csv", "label,text\n1,\"b\n\xFF\"\n"), kEncoding, "a.csv:3:1");
  EXPECT_THROWS(read("a.tsv", "1\ta\0b\n"s), kEncoding, "a.tsv:1:4: expected text, got a NUL");
}

TEST(LabelledReader, BadRowsAreLeftOutAndCounted) {
  TableSummary found;
  const TableOptions skip{.bad_rows = BadRows::kSkip, .longest_row = 1000};
  const std::string long_text(300'000, 'x');
  const auto rows = rows_of(
      "a.tsv", "1\ta\n2\n\t \n3\tb\tc\n\tno label\n4\t\xFF\n5\t\n6\t" + long_text + "\n7\tgood\n",
      skip, &found);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(written(rows[1]), "9:7|good");
  EXPECT_EQ(found.bad_rows, 7);
  EXPECT_THAT(found.problems,
              ElementsAre(HasSubstr("a.tsv:2: expected 2"), HasSubstr("a.tsv:3: expected a text"),
                          HasSubstr("a.tsv:4: expected 2")));
  LabelledReader reader(std::make_unique<Drip>("1\ta\n2\n", 9), "a.tsv", skip);
  LabelledText row;
  while (reader.next(row)) {
  }
  EXPECT_THAT(reader.notes(),
              ElementsAre("a.tsv: rows that cannot be read: 1 of 2; they are left out",
                          HasSubstr("a.tsv:2: expected 2 columns")));
}

// A file of GBK under names in ASCII.
TEST(LabelledReader, TheEncodingOfBadRowsIsSaidOnce) {
  std::string bytes = "text\tlabel\n";
  for (int n = 0; n < 100; ++n) bytes += "\xD5\xE2\xCA\xC7\xD2\xBB\xB8\xF6\t\xBA\xC3\n";
  TableSummary found;
  EXPECT_THAT(rows_of("a.tsv", bytes, {.bad_rows = BadRows::kSkip}, &found), ElementsAre());
  EXPECT_EQ(found.bad_rows, 100);
  EXPECT_THAT(found.problems,
              ElementsAre("a.tsv:2:1: expected UTF-8, got 0xD5 0xE2; this looks like GB18030; "
                          "convert it with: iconv -f GB18030 -t UTF-8 FILE > NEW",
                          "a.tsv:3:1: expected UTF-8, got 0xD5 0xE2",
                          "a.tsv:4:1: expected UTF-8, got 0xD5 0xE2"));
}

TEST(LabelledReader, WhatMakesAllUncertainIsAnErrorAlways) {
  const TableOptions skip{.bad_rows = BadRows::kSkip};
  EXPECT_THROWS(rows_of("a.csv", "label,text\n1,a\n2,\"b\n3,c\n", skip), kInputFormat,
                "a.csv:3:3: the quote that opens here is not closed");
  EXPECT_THROWS(rows_of("a.csv", "a,b,c\n1,a\n", skip), kInputFormat,
                "3 columns, in the first row: a, b, c");
  EXPECT_THROWS(rows_of("a.tsv", "1\t\xFF\n2\tb\n", skip), kEncoding, "a.tsv:1:3");
}

TEST(LabelledReader, ALabelSeparatorAllowsNoRowWithoutLabels) {
  EXPECT_THROWS(rows_of("a.tsv", "a,b\tx\n\ty\n", {.label_separator = ","}), kInputFormat,
                "a.tsv:2: expected a label, got none: --label-separator does not allow that, "
                "--multi-label does");
}

TEST(LabelledReader, EmptyFilesAreAnError) {
  EXPECT_THROWS(rows_of("a.tsv", ""), kEmptyInput, "a.tsv is empty");
  EXPECT_THROWS(rows_of("a.tsv", "\uFEFF"), kEmptyInput, "a.tsv is empty");
  EXPECT_EQ(rows_of("a.tsv", "\n \n\n", {.labels = LabelUse::kOptional}).size(), 0u);
}

// The first line that is not blank may be far away.
TEST(LabelledReader, BlankLinesHideNoTable) {
  const std::string blanks(300000, '\n');
  EXPECT_THAT(read("a.tsv", blanks + "text\tlabel\nt\t1\n"), ElementsAre("300002:1|t"));
}

TEST(LabelledReader, NumbersFitIntoFloat32) {
  const TableOptions numbers{.labels = LabelUse::kNumbers};
  EXPECT_THROWS(rows_of("a.tsv", "1\tx\n1e39\ty\n", numbers), kInputFormat,
                "a.tsv:2: expected a number as label, got 1e+39, too large for float32");
}

TEST(LabelledReader, AnyBytesAreKeptIfAsked) {
  const TableOptions bytes{.encoding = TextEncoding::kAnyBytes};
  EXPECT_THAT(read("a.tsv", "1\t\xFF\0x\n"s, bytes), ElementsAre("1:1|\xFF\0x"s));
  EXPECT_THROWS(read("a.tsv", "1\ta\n\xFF\tb\n", bytes), kEncoding, "expected a label in UTF-8");
}

TEST(LabelledReader, Utf16IsNamed) {
  for (const char* name : {"a.csv", "a.txt", "a.jsonl"}) {
    const auto error = error_of([&] { read(name, "\xFF\xFEl\0a\0b\0e\0l\0,\0t\0\n\0"s); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::kEncoding) << error->what();
    EXPECT_THAT(error->hint(), HasSubstr("UTF-16"));
  }
}

TEST(LabelledReader, FilesMayBePacked) {
  const TestFolder folder;
  const std::string text = "1\tgood\n0\tbad\n";
  write_file_atomically(folder / "a.tsv", text);
  write_file_atomically(folder / "b.tsv.gz", gzip_of(text) + gzip_of("2\tnone\n"));
  write_file_atomically(folder / "c.tsv.zst", zstd_of(text));
  const std::vector<std::string> files = {folder / "a.tsv", folder / "b.tsv.gz",
                                          folder / "c.tsv.zst"};
  std::vector<std::string> notes;
  const auto rows = read_labelled(files, {}, &notes);
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(written(rows[4]), "3:2|none");
  EXPECT_THAT(notes, ElementsAre());
  write_file_atomically(folder / "d.tsv.gz", gzip_of(text).substr(0, 25));
  const std::string cut = folder / "d.tsv.gz", none = folder / "e.tsv";
  EXPECT_THROWS(read_labelled({&cut, 1}, {}), kInputFormat,
                "d.tsv.gz: byte 25: the gzip data ends");
  write_file_atomically(none, "label\ttext\n");
  EXPECT_THROWS(read_labelled({&none, 1}, {}), kEmptyInput, "expected texts, got none");
}

TEST(LabelledReader, NamesOfColumnsThatWereTakenForARowAreNoticed) {
  const TestFolder folder;
  const auto notes_of = [&](std::string_view name, std::string_view text,
                            const TableOptions& options = {}) {
    const std::string file = folder / name;
    write_file_atomically(file, text);
    std::vector<std::string> notes;
    read_labelled({&file, 1}, options, &notes);
    return notes;
  };
  EXPECT_THAT(notes_of("a.csv", "what,toxic\na b,0\nc d,1\ne,0\nf g,1\n"),
              ElementsAre(AllOf(HasSubstr("a.csv:1: the label toxic is that of this row alone"),
                                HasSubstr("--label-column toxic"))));
  // Other labels are rare as well, or all is known.
  EXPECT_THAT(notes_of("b.csv", "a b,2\nc d,1\ne,0\nf g,1\n"), ElementsAre());
  EXPECT_THAT(notes_of("c.csv", "a b,0\nc d,1\ne,0\nf g,1\n"), ElementsAre());
  EXPECT_THAT(notes_of("d.csv", "w,t\na b,0\nc d,1\ne,0\nf g,1\n", {.header = HeaderRow::kNo}),
              ElementsAre());
  EXPECT_THAT(notes_of("e.txt", "__label__a b\n__label__c d\n__label__c e\n"), ElementsAre());
}

// Rows, written in each format, come back.
TEST(LabelledReader, RandomRowsComeBack) {
  const std::vector<std::string_view> pieces = {
      "a", "bc", " ", "\"", "'", ",", "\\", "\u0085", "\u4E2D", "\U0001F600", "{", "}", "__"};
  const std::vector<std::string_view> lines = {"a", "\n", "\r\n", "\"", ",", "\t", "\u4E2D", "\r"};
  Random random(11, RandomUse::kTest);
  for (int trial = 0; trial < 200; ++trial) {
    std::map<std::string, std::string> files;
    files["a.tsv"] = "label\ttext\n";
    files["a.csv"] = "text,id,label\r\n";
    std::vector<std::string> expected, with_lines;
    for (index n = 1 + random.below(12); n > 0; --n) {
      const std::string label = random_text(random, 3, {"x", "\u00E9", "y"}) + "l";
      const std::string text = "t" + random_text(random, 9, pieces) + ".";
      expected.push_back(label + "|" + text);
      files["a.tsv"] += label + "\t" + text + "\n";
      files["a.jsonl"] += Json(Json::Object{{"text", text}, {"label", label}}).line() + "\n";
      files["a.txt"] += "__label__" + label + " " + text + "\n";
      const std::string more = text + random_text(random, 5, lines) + ".";
      with_lines.push_back(label + "|" + more);
      files["a.csv"] += csv_field(more, ',', random.below(2) == 0) + ",7," +
                        csv_field(label, ',', random.below(2) == 0) + "\n";
    }
    for (const auto& [name, bytes] : files) {
      std::vector<std::string> rows;
      for (const std::string& row : read(name, bytes))
        rows.push_back(row.substr(row.find(':') + 1));
      ASSERT_EQ(rows, name == "a.csv" ? with_lines : expected) << name << "\n" << bytes;
    }
  }
}

// 25000 reviews of imdb, where its data pack lies beside the sources: shared/data/imdb.
TEST(LabelledReader, ReadsTheWholeOfImdb) {
  namespace fs = std::filesystem;
  fs::path file;
  for (fs::path folder = fs::path(__FILE__).parent_path();
       folder != folder.parent_path() && !fs::exists(file); folder = folder.parent_path()) {
    file = folder / "shared" / "data" / "imdb" / "train.tsv.zst";
  }
  if (!fs::exists(file)) {
    GTEST_SKIP() << "skipped: shared/data/imdb/train.tsv.zst is in no folder above the sources";
  }
  LabelledReader reader(file.string(), {});
  std::map<std::string, index> labels;
  index bytes = 0, next_lines = 0, shortest = 1 << 20;
  for (LabelledText row; reader.next(row);) {
    ASSERT_EQ(row.labels.size(), 1u);
    ++labels[row.labels[0]];
    bytes += static_cast<index>(row.text.size());
    shortest = std::min(shortest, static_cast<index>(row.text.size()));
    for (std::size_t at = 0; (at = row.text.find("\u0085", at)) != std::string::npos; ++at) {
      ++next_lines;
    }
  }
  EXPECT_THAT(labels, ElementsAre(std::pair("0", 12500), std::pair("1", 12500)));
  EXPECT_EQ(reader.summary().rows, 25000);
  EXPECT_FALSE(reader.summary().has_header);
  EXPECT_EQ(reader.summary().text_column, "2");
  EXPECT_GT(next_lines, 700) << "U+0085 ends no line";
  EXPECT_GE(shortest, 32);
  std::printf("imdb: %lld bytes of text\n", static_cast<long long>(bytes));
}

using namespace std::string_literals;
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

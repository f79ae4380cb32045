// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/table/columns.h"

#include <fmt/core.h>

#include "tests/data/table/python_files.h"
#include "tests/data/table/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

using Records = std::vector<std::vector<std::string>>;

const TableOptions kAny{.labels = LabelUse::kOptional};

// "header text label", columns by number.
std::string found(const Records& records, const TableOptions& options = {}) {
  const Columns columns = find_columns(records, options, "f:1");
  return std::string(columns.has_header ? "header " : "rows ") + std::to_string(columns.text + 1) +
         " " + (columns.label ? std::to_string(*columns.label + 1) : "-");
}

TEST(Columns, UsualNamesAreAHeader) {
  EXPECT_EQ(found({{"label", "text"}}), "header 2 1");
  EXPECT_EQ(found({{"id", " Sentence ", "LABEL"}}), "header 2 3");
  EXPECT_EQ(found({{"", "review", "sentiment", "title"}}), "header 2 3");
  EXPECT_EQ(found({{"title", "content", "text", "class"}}), "header 3 4") << "text goes first";
  EXPECT_EQ(found({{"id", "text"}}, kAny), "header 2 -");
  EXPECT_EQ(found({{"text"}}, kAny), "header 1 -");
  EXPECT_EQ(found({{"text", "target"}}, {.labels = LabelUse::kNumbers}), "header 1 2");
  EXPECT_EQ(found({{"编号", "评论", "情感"}}), "header 2 3");
}

TEST(Columns, RowsWithoutNamesAreRows) {
  EXPECT_EQ(found({{"1", "a good film"}}), "rows 2 1");
  EXPECT_EQ(found({{"topic", "a text about something"}}), "rows 2 1");
  EXPECT_EQ(found({{"some words"}}, kAny), "rows 1 -");
  EXPECT_EQ(found({{"labels", "text"}}, {.header = HeaderRow::kNo}), "rows 1 2");
  EXPECT_EQ(found({{"y", "words"}}), "rows 2 1");
  EXPECT_EQ(found({{"foo", "text"}}, {.header = HeaderRow::kYes}), "header 2 1");
}

TEST(Columns, OfTwoTheLabelIsTheOneWithFewerValues) {
  const Records texts_first = {{"bad", "x"}, {"good film", "y"}, {"a", "x"}};
  EXPECT_EQ(found(texts_first), "rows 1 2");
  EXPECT_EQ(found({{"longer", "x"}}), "rows 1 2") << "the shorter";
  EXPECT_EQ(found({{"x", "y"}}), "rows 2 1") << "the first";
  EXPECT_EQ(found({{"4.5", "ab"}, {"3", "ab"}}, {.labels = LabelUse::kNumbers}), "rows 2 1");
  EXPECT_EQ(found({{"4.5", "ab"}, {"3", "ab"}}), "rows 1 2");
  EXPECT_EQ(found({{"a|b", "one"}, {"b", "one"}}, {.label_separator = "|"}), "rows 2 1");
}

// "header first second label", columns by number.
std::string found_pair(const Records& records, TableOptions options = {}) {
  options.pairs = true;
  const Columns columns = find_columns(records, options, "f:1");
  return fmt::format("{} {} {} {}", columns.has_header ? "header" : "rows", columns.text + 1,
                     *columns.second + 1, columns.label ? std::to_string(*columns.label + 1) : "-");
}

TEST(PairColumns, AreFoundByNameOrPlace) {
  EXPECT_EQ(found_pair({{"sentence1", "sentence2", "label"}}), "header 1 2 3");
  EXPECT_EQ(found_pair({{"gold_label", "Premise", "x", "hypothesis"}}), "header 2 4 1");
  EXPECT_EQ(found_pair({{"source", "target", "score"}}), "header 1 2 3");
  EXPECT_EQ(found_pair({{"id", "source", "target", "score"}}), "header 2 3 4") << "target: a text";
  EXPECT_EQ(found_pair({{"query", "passage"}}, kAny), "header 1 2 -");
  EXPECT_EQ(found_pair({{"a b", "c d", "x"}, {"e", "f", "x"}}), "rows 1 2 3");
  EXPECT_EQ(found_pair({{"x", "a b", "c d"}, {"x", "e", "f"}}), "rows 2 3 1");
  EXPECT_EQ(found_pair({{"a", "b"}}, kAny), "rows 1 2 -");
  EXPECT_EQ(found_pair({{"a", "b", "c"}}, {.label_of_two = 1}), "rows 1 3 2");
  EXPECT_EQ(found_pair({{"a", "b", "c"}}, {.text_column = "c", .second_column = "a"}),
            "header 3 1 2");
  EXPECT_EQ(found_pair({{"1", "b", "c"}}, {.label_column = "1"}), "rows 2 3 1");
  EXPECT_THROWS(found_pair({{"a", "b"}}), kInputFormat, "two texts and a label, got 2 columns");
  EXPECT_THROWS(found_pair({{"a", "b", "c", "d"}}), kInputFormat, "got 4 columns");
}

TEST(Columns, AreSaidByNameOrByNumber) {
  EXPECT_EQ(found({{"a", "b", "c"}}, {.text_column = "c", .label_column = "a"}), "header 3 1");
  EXPECT_EQ(found({{"a", "b", "c"}}, {.text_column = "2", .label_column = "3"}), "rows 2 3");
  EXPECT_EQ(found({{"x", "text", "label"}}, {.text_column = "2", .label_column = "3"}),
            "header 2 3");
  EXPECT_EQ(found({{"a", "text", "c"}}, {.label_column = "a"}), "header 2 1");
  EXPECT_EQ(found({{"a", "b"}}, {.label_column = "2"}), "rows 1 2");
  EXPECT_EQ(found({{"text", "b"}}, {.label_column = "text"}), "header 2 1");
  EXPECT_EQ(found({{"label", "text"}}, {.text_column = "1", .header = HeaderRow::kYes}),
            "header 1 2");
  const Columns columns = find_columns(Records{{"a", " text "}}, {.label_column = "a"}, "f:1");
  EXPECT_EQ(columns.text_name, "text");
  EXPECT_EQ(columns.label_name, "a");
  EXPECT_EQ(columns.count, 2u);
}

TEST(Columns, AreSaidInAnyCaseOfLetters) {
  const Records records = {{"ID", "Abstract", "KIND"}};
  EXPECT_EQ(found(records, {.text_column = "abstract", .label_column = "Kind"}), "header 2 3");
  EXPECT_EQ(found({{"Kind", "words", "kind"}}, {.text_column = "words", .label_column = "kind"}),
            "header 2 3")
      << "as it is written goes first";
  EXPECT_THROWS(
      found({{"Kind", "words", "kind"}}, {.text_column = "words", .label_column = "KIND"}),
      kOptionValue, "f:1: expected one column KIND, got 2: Kind, kind");
}

TEST(Columns, ThatAreNotThereAreAnError) {
  EXPECT_THROWS(found({{"a", "b"}}, {.text_column = "words"}), kOptionValue,
                "--text-column: expected a column words in f:1, got: a, b");
  EXPECT_THROWS(found({{"a", "b"}}, {.label_column = "3"}), kOptionValue, "--label-column: 3");
  EXPECT_THROWS(found({{"a", "b"}}, {.label_column = "0"}), kOptionValue, "--label-column: 0");
  EXPECT_THROWS(found({{"a", "b"}}, {.label_column = "99999999999999999999999"}), kOptionValue,
                "--label-column: 999");
  EXPECT_THROWS(found({{"a", "b"}}, {.text_column = "a", .header = HeaderRow::kNo}), kOptionValue,
                "--text-column: a is a name, and --header no");
  EXPECT_THROWS(found({{"text", "label", "c"}}, {.text_column = "1", .label_column = "text"}),
                kOptionValue, "is the column of the text");
}

TEST(Columns, ThatCannotBeToldAreAnError) {
  EXPECT_THROWS(found({{"3", "title", "some text"}}), kInputFormat,
                "f:1: expected a label and a text, got 3 columns, in the first row: 3, title, "
                "some text");
  EXPECT_THROWS(found({{"words"}}), kInputFormat, "got 1 column, in the first row: words");
  EXPECT_THROWS(found({{"id", "text", "label", "text"}}), kInputFormat,
                "f:1: expected one column text, got 2");
  EXPECT_THROWS(found({{"id", "text"}}, {.header = HeaderRow::kYes}), kInputFormat,
                "f:1: expected a column with the label, got: id, text");
  EXPECT_THROWS(found({{"text", "mood"}}), kInputFormat, "what may be either: text, mood");
  EXPECT_EQ(found({{"text", "mood"}}, {.label_column = "mood"}), "header 1 2");
  EXPECT_EQ(found({{"text", "mood"}}, {.header = HeaderRow::kNo}), "rows 2 1");
  EXPECT_THROWS(found({{"label", "lyrics"}}), kInputFormat, "what may be either: label, lyrics");
}

// "text" beside another short field is a name where the labels below it say so.
TEST(Columns, RowsBelowTellNamesFromLabels) {
  EXPECT_EQ(found({{"body", "label name"}, {"a film", "x"}, {"b film", "x"}}), "header 1 2");
  EXPECT_EQ(found({{"what was said", "label"}, {"a", "x"}, {"b", "y"}, {"c", "x"}}), "header 1 2");
  EXPECT_EQ(found({{"text", "how many"}, {"a", "1"}, {"b", "2"}}), "header 1 2");
  EXPECT_EQ(found({{"text", "noun"}, {"run", "verb"}, {"house", "noun"}}), "rows 1 2");
  EXPECT_THROWS(found({{"text", "mood"}, {"a", "x"}, {"b", "y"}}), kInputFormat, "may be either");
}

TEST(Columns, OfAKnownFormGoFirst) {
  TableOptions options = kAny;
  options.known = {.format = TableFormat::kCsv,
                   .separator = ";",
                   .has_header = true,
                   .columns = 3,
                   .text_column = "words",
                   .label_column = "kind",
                   .text_at = 2,
                   .label_at = 3};
  EXPECT_EQ(found({{"words", "text", "kind"}}, options), "header 1 3");
  EXPECT_EQ(found({{"words", "words", "kind"}}, options), "header 2 3") << "where it was";
  EXPECT_EQ(found({{"text", "label"}}, options), "header 1 2");
  EXPECT_EQ(found({{"words", "kind", "text"}}, {.text_column = "3", .known = options.known}),
            "header 3 2");
  EXPECT_EQ(found({{"17", "some words", "a"}}, options), "rows 2 3");
  options.header = HeaderRow::kNo;
  EXPECT_EQ(found({{"words", "words", "kind"}}, options), "rows 2 3");
  EXPECT_EQ(find_separator("a, b;words", TableFormat::kCsv, options), ';');
  EXPECT_EQ(find_separator("a, b;c", TableFormat::kCsv, options), ',');
}

TEST(Columns, SeparatorsOfCsvAreFound) {
  const TableOptions labelled;
  EXPECT_EQ(find_separator("a,b;c", TableFormat::kCsv, labelled), ',');
  EXPECT_EQ(find_separator("label;text", TableFormat::kCsv, kAny), ';');
  EXPECT_EQ(find_separator("a;b", TableFormat::kCsv, labelled), ';');
  EXPECT_EQ(find_separator("a|b", TableFormat::kCsv, labelled), '|');
  EXPECT_EQ(find_separator("one text; two", TableFormat::kCsv, kAny), ',');
  EXPECT_EQ(find_separator("a,b", TableFormat::kTsv, labelled), '\t');
  EXPECT_EQ(find_separator("a,b", TableFormat::kCsv, {.separator = "|"}), '|');
}

TEST(Columns, ExcelSaysTheSeparator) {
  EXPECT_EQ(separator_of_excel("sep=;"), ';');
  EXPECT_EQ(separator_of_excel("SEP=\t"), '\t');
  for (const char* line : {"", "sep=", "sep=;;", "sep=\"", "sex=;", "sep=\xC3"}) {
    EXPECT_FALSE(separator_of_excel(line)) << line;
  }
}

TEST(Columns, NumbersAreWholeLabels) {
  EXPECT_EQ(number_of(" 4.5 "), 4.5);
  EXPECT_EQ(number_of("+1e3"), 1000.0);
  EXPECT_EQ(number_of("-0.25"), -0.25);
  for (const char* text : {"", "x", "1 2", "1x", "nan", "inf", "1e999", "+-1", "++1", "0x10"}) {
    EXPECT_FALSE(number_of(text).has_value()) << text;
  }
}

using Table = std::vector<std::vector<std::string>>;
constexpr Dialect kCsv{.separator = ',', .quotes = true};
constexpr Dialect kTsv{};

Table table_of(const std::string& bytes, Dialect dialect, std::size_t most = 1 << 20,
               std::vector<index>* lines_at = nullptr) {
  LineReader lines(std::make_unique<Drip>(bytes, most), "f", 1 << 20);
  RecordReader reader(lines, dialect, TextEncoding::kUtf8, 1 << 20);
  Table table;
  for (Record record; reader.next(record);) {
    table.emplace_back(record.fields.begin(), record.fields.end());
    if (lines_at != nullptr) lines_at->push_back(record.line);
  }
  return table;
}

TEST(Delimited, TsvSplitsAtTabsAndKnowsNoQuotes) {
  EXPECT_EQ(table_of("a\t\"b\t\t c\r\n\n\r\nd\"\"\t\u0085\n\t", kTsv),
            (Table{{"a", "\"b", "", " c"}, {"d\"\"", "\u0085"}, {"", ""}}));
}

TEST(Delimited, CsvReadsQuotes) {
  const std::string csv =
      "a,\"b\",\"c,\"\"d\"\"\",\"\"\r\n"
      "\"two\nlines\r\nand a third\",x\n"
      "\n"
      " \"y\",z\"z\"\"z,\"\"\"\"\n"
      "\"last\"";
  std::vector<index> lines;
  EXPECT_EQ(table_of(csv, kCsv, 1 << 20, &lines), (Table{{"a", "b", "c,\"d\"", ""},
                                                         {"two\nlines\r\nand a third", "x"},
                                                         {" \"y\"", "z\"z\"\"z", "\""},
                                                         {"last"}}));
  EXPECT_THAT(lines, ElementsAre(1, 2, 6, 7));
  EXPECT_EQ(table_of(csv, kCsv, 1), table_of(csv, kCsv));
}

TEST(Delimited, OtherSeparators) {
  EXPECT_EQ(table_of("a;\"b;c\";d,e\n", {.separator = ';', .quotes = true}),
            (Table{{"a", "b;c", "d,e"}}));
  EXPECT_EQ(table_of("a|\"b|c\"\n", {.separator = '|', .quotes = false}),
            (Table{{"a", "\"b", "c\""}}));
}

TEST(Delimited, AQuoteThatIsNotClosedIsNamedByItsLine) {
  EXPECT_THROWS(table_of("a,b\nc,\"\u4E2D\nd,e\nf,g\n", kCsv), kInputFormat,
                "f:2:3: the quote that opens here is not closed by the end of the file");
  EXPECT_THROWS(table_of("a,\"b\",\"", kCsv), kInputFormat, "f:1:7: the quote that opens here");
  EXPECT_THROWS(table_of("a,\"b\n" + std::string(1 << 19, 'x') + "\n" + std::string(1 << 19, 'x') +
                             "\n" + std::string(1 << 19, 'x'),
                         kCsv),
                kInputFormat, "f:1:3: the quote that opens here is not closed within 1.00 MiB");
}

// The records behind a bad one can be read.
TEST(Delimited, BadRecordsEndWhereTheyEnd) {
  const std::string bytes =
      "a,b\n\"c\"d,e\nf,g\n\"x\ny\"z,1\nh\ri,j\nk,\"\xFF\nl\",m\nn,\"o\"\rp\nq,r\n";
  LineReader lines(std::make_unique<Drip>(bytes, 5), "f", 100);
  RecordReader reader(lines, kCsv, TextEncoding::kUtf8, 100);
  Record record;
  std::vector<std::string> said;
  for (;;) {
    try {
      if (!reader.next(record)) break;
      said.push_back(std::to_string(record.line) + ":" + std::string(record.fields[0]));
    } catch (const BadRow& error) {
      said.emplace_back(error.what());
    }
  }
  EXPECT_THAT(
      said,
      ElementsAre(
          "1:a", "f:2:4: expected the end of a field, got text behind a closing quote 'd,e'", "3:f",
          "f:5:3: expected the end of a field, got text behind a closing quote 'z,1'",
          "f:6:2: expected the end of a field, got a CR that ends no line '\\x0di'",
          "f:7:4: expected UTF-8, got 0xFF",
          "f:9:6: expected the end of a field, got text behind a closing quote '\\x0dp'", "10:q"));
}

TEST(Delimited, AfterALongLineOfCsvNothingIsCertain) {
  const std::string bytes = "a,b\n" + std::string(200, 'x') + "\nc,d\n";
  for (const Dialect dialect : {kCsv, kTsv}) {
    LineReader lines(std::make_unique<Drip>(bytes, 50), "f", 100);
    RecordReader reader(lines, dialect, TextEncoding::kUtf8, 100);
    Record record;
    ASSERT_TRUE(reader.next(record));
    bool can_go_on = false;
    try {
      reader.next(record);
      ADD_FAILURE() << "expected an error";
    } catch (const BadRow&) {
      can_go_on = true;
    } catch (const Error&) {
    }
    EXPECT_EQ(can_go_on, !dialect.quotes);
  }
}

// Any table comes back, with fields in quotes that need none, too.
TEST(Delimited, RandomTablesComeBack) {
  const std::vector<std::string_view> pieces = {"a",  "bc", " ",      "\"",        "\"\"",
                                                ",",  ";",  "\t",     "\n",        "\r\n",
                                                "\r", "'",  "\u4E2D", "\U0001F600"};
  Random random(7, RandomUse::kTest);
  for (int trial = 0; trial < 400; ++trial) {
    const char separator = ",;\t|"[trial % 4];
    const auto columns = static_cast<std::size_t>(1 + random.below(4));
    Table table;
    std::string bytes;
    for (index rows = random.below(8); rows > 0; --rows) {
      std::string line;
      table.emplace_back();
      for (std::size_t c = 0; c < columns; ++c) {
        table.back().push_back(random_text(random, 6, pieces));
        // A single empty field has to be in quotes: the line would be empty.
        const bool quoted = random.below(2) == 0 || columns == 1;
        line += (c > 0 ? std::string(1, separator) : "") +
                csv_field(table.back().back(), separator, quoted);
      }
      bytes += line + (random.below(2) == 0 ? "\n" : "\r\n");
    }
    const Dialect dialect{.separator = separator, .quotes = true};
    ASSERT_EQ(table_of(bytes, dialect, static_cast<std::size_t>(1 + random.below(40))), table)
        << bytes;
  }
}

// See make_python_files.py.
TEST(Delimited, ReadsWhatPythonWrites) {
  const std::string expected(kPythonTable);
  for (const PythonFile& file : kPythonFiles) {
    const Table table =
        table_of(std::string(file.bytes), {.separator = file.separator, .quotes = true});
    std::string all;
    for (const auto& record : table) {
      for (const std::string& field : record) all += field + '\x1F';
      all += '\x1E';
    }
    EXPECT_EQ(all, expected) << file.name;
  }
  // Written by hand, read by Python's csv.
  for (const PythonReading& reading : kPythonReadings) {
    std::string all;
    for (const auto& record : table_of(std::string(reading.bytes), kCsv)) {
      for (const std::string& field : record) all += field + '\x1F';
      all += '\x1E';
    }
    EXPECT_EQ(all, reading.fields) << reading.bytes;
  }
}

}  // namespace
}  // namespace fovea

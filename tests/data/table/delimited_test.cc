// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/table/columns.h"
#include "tests/data/table/python_files.h"
#include "tests/data/table/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using Table = std::vector<std::vector<std::string>>;
using testing::ElementsAre;

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

// What stands behind a bad record can be read.
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

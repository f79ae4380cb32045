// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/table/table_options.h"

#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(TableOptions, NamesSayTheFormat) {
  const TableOptions options;
  for (const auto& [name, format] : {std::pair{"a.tsv", TableFormat::kTsv},
                                     {"a.TSV", TableFormat::kTsv},
                                     {"x/a.tsv.zst", TableFormat::kTsv},
                                     {"a.tab", TableFormat::kTsv},
                                     {"a.csv.gz", TableFormat::kCsv},
                                     {"a.jsonl", TableFormat::kJsonLines},
                                     {"a.ndjson", TableFormat::kJsonLines},
                                     {"a.json", TableFormat::kJsonLines}}) {
    EXPECT_EQ(find_format(name, "__label__x y", options), format) << name;
    EXPECT_EQ(find_format(name, "x", {.format = TableFormat::kFastText}), TableFormat::kFastText);
  }
}

TEST(TableOptions, TheFirstLineSaysTheFormatOfOthers) {
  const TableOptions labelled, any{.labels = LabelUse::kOptional};
  for (const auto& [line, format] : {std::pair{"__label__x y", TableFormat::kFastText},
                                     {"{\"a\": 1}", TableFormat::kJsonLines},
                                     {"label\ttext", TableFormat::kTsv},
                                     {"label,\"Text\"", TableFormat::kCsv}}) {
    EXPECT_EQ(find_format("a.txt", line, labelled), format) << line;
    EXPECT_EQ(find_format("standard input", line, any), format) << line;
  }
  // A tab is a separator where there have to be labels, and else a character.
  EXPECT_EQ(find_format("a.txt", "1\tgood", labelled), TableFormat::kTsv);
  EXPECT_EQ(find_format("a.txt", "1\tgood", any), TableFormat::kLines);
  EXPECT_EQ(find_format("a.txt", "{not, text}", any), TableFormat::kLines);
  EXPECT_THROWS(find_format("a.txt", "pos,good", labelled), kInputFormat,
                "a.txt: expected labelled texts, got a first line that is neither");
  EXPECT_THROWS(find_format("a.txt", "\xFF\xFEx", labelled), kEncoding, "a.txt:1:1");
}

TEST(TableOptions, WhatDoesNotFitTogetherIsAnError) {
  check_options({});
  for (const char* separator : {",,", "\"", "\n", "\u4E2D"}) {
    EXPECT_THROWS(check_options({.separator = separator}), kOptionValue, "--separator: ");
  }
  check_options({.separator = "|"});
  EXPECT_THROWS(check_options({.format = TableFormat::kLines}), kOptionValue, "has no labels");
  check_options({.format = TableFormat::kLines, .labels = LabelUse::kOptional});
  EXPECT_THROWS(check_options({.text_column = "a", .label_column = "a"}), kOptionValue,
                "--label-column: a is the column of the text");
}

}  // namespace
}  // namespace fovea

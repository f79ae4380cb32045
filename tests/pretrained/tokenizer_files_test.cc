// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/tokenizer_files.h"

#include <gmock/gmock.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A tokenizer of four letters and two merges, with a mark, and a hole in its ids.
std::string small_file(
    std::string_view cuts = R"({"type": "ByteLevel", "add_prefix_space": false})",
    std::string_view more = "") {
  return std::string(
             R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [)") +
         R"({"id": 7, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false,)" +
         R"( "normalized": false, "special": true}], "normalizer": null, "pre_tokenizer": )" +
         std::string(cuts) + std::string(more) +
         R"(, "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "dropout": null,)" +
         R"( "unk_token": null, "continuing_subword_prefix": "", "end_of_word_suffix": "",)" +
         R"( "fuse_unk": false, "byte_fallback": false, "vocab": {"a": 0, "b": 1, "1": 2, "Ġ": 3,)" +
         R"( "ab": 4, "Ġab": 5}, "merges": [["a", "b"], "Ġ ab"]}})";
}

BpeOfJson read(std::string_view text) {
  return bpe_of_json(parse_json(text, {"tokenizer.json", ErrorCode::kModelDamaged}),
                     "tokenizer.json");
}

std::vector<token> encode(std::string_view file, std::string_view text) {
  std::vector<token> ids;
  ByteBpe(read(file).model).encode(ids, text);
  return ids;
}

std::string replaced(std::string text, std::string_view old, std::string_view by) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, text.npos) << old;
  return text.replace(at, old.size(), by);
}

TEST(BpeJson, MergesAreJoinedInTheirOrder) {
  EXPECT_THAT(encode(small_file(), "ab ab"), ElementsAre(4, 5));
  EXPECT_THAT(encode(small_file(), "ba<end>ab"), ElementsAre(1, 0, 7, 4));
  const BpeOfJson file = read(small_file());
  EXPECT_EQ(file.model.kinds[6], BpeTokenKind::kUnused);
  EXPECT_EQ(file.model.kinds[7], BpeTokenKind::kControl);
  EXPECT_TRUE(file.marks.before.empty());
}

TEST(BpeJson, EachWayOfCuttingIsKnownByWhatTheFileSays) {
  const std::string bytes = R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": )";
  const auto sequence = [&](std::string_view first, std::string_view use) {
    return R"({"type": "Sequence", "pretokenizers": [)" + std::string(first) + ", " + bytes +
           std::string(use) + "}]}";
  };
  const std::string digits = R"({"type": "Digits", "individual_digits": true})";
  EXPECT_TRUE(read(small_file(sequence(digits, "true"))).model.split.digits_apart);
  const std::string qwen =
      R"x({"type": "Split", "pattern": {"Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}, "behavior": "Isolated", "invert": false})x";
  EXPECT_EQ(read(small_file(sequence(qwen, "false"))).model.split.digits, 1);
  EXPECT_EQ(read(small_file(sequence(replaced(qwen, R"(\\p{N}| )", R"(\\p{N}{1,3}| )"), "false")))
                .model.split.digits,
            3);
  EXPECT_THROWS(read(small_file(sequence(replaced(qwen, "'ve|", ""), "false"))), kModelWrongKind,
                "pattern");
  EXPECT_THROWS(read(small_file(sequence(qwen, "true"))), kModelWrongKind, "pretokenizers");
  EXPECT_THROWS(read(small_file(R"({"type": "Whitespace"})")), kModelWrongKind, "Whitespace");
  const std::string prefixed = replaced(bytes, "false", "true");
  EXPECT_TRUE(read(small_file(prefixed + "true}")).model.prefix_space);
  EXPECT_THROWS(read(small_file(replaced(sequence(digits, "true"), R"("add_prefix_space": false)",
                                         R"("add_prefix_space": true)"))),
                kModelWrongKind, "add_prefix_space");
  EXPECT_THROWS(read(small_file(bytes + "false}")), kModelWrongKind, "merges");
}

TEST(BpeJson, AMarkBeforeTextsIsThatOfTheTemplate) {
  const std::string before =
      R"(, "post_processor": {"type": "TemplateProcessing", "single": [)"
      R"({"SpecialToken": {"id": "<end>", "type_id": 0}}, {"Sequence": {"id": "A",)"
      R"( "type_id": 0}}], "pair": [], "special_tokens": {}})";
  const std::string cuts = R"({"type": "ByteLevel", "add_prefix_space": false})";
  EXPECT_THAT(read(small_file(cuts, before)).marks.before, ElementsAre(7));
  EXPECT_THROWS(read(small_file(cuts, replaced(before, "<end>", "<none>"))), kModelDamaged,
                "<none>");
  EXPECT_THROWS(read(small_file(cuts, replaced(before, R"({"Sequence": {"id": "A", "type_id": 0}})",
                                               R"({"SpecialToken": {"id": "<end>"}})"))),
                kModelWrongKind, "single");
}

// What stands between the texts of a pair: read where it is what fovea can compute, else left out.
TEST(BpeJson, MarksBetweenTheTextsOfAPairAreThoseOfTheTemplate) {
  const auto file = [](std::string_view pair) {
    return small_file(R"({"type": "ByteLevel", "add_prefix_space": false})",
                      fmt::format(R"(, "post_processor": {{"type": "TemplateProcessing", )"
                                  R"("single": [{{"SpecialToken": {{"id": "a", "type_id": 0}}}}, )"
                                  R"({{"Sequence": {{"id": "A", "type_id": 0}}}}, )"
                                  R"({{"SpecialToken": {{"id": "<end>", "type_id": 0}}}}], )"
                                  R"("pair": {}, "special_tokens": {{}}}})",
                                  pair));
  };
  const auto mark = [](std::string_view name, int type) {
    return fmt::format(R"({{"SpecialToken": {{"id": "{}", "type_id": {}}}}})", name, type);
  };
  const auto text = [](std::string_view name, int type) {
    return fmt::format(R"({{"Sequence": {{"id": "{}", "type_id": {}}}}})", name, type);
  };
  const auto pair = [&](std::vector<std::string> pieces) {
    return read(file(fmt::format("[{}]", fmt::join(pieces, ", ")))).marks;
  };
  const std::string begin = mark("a", 0), a = text("A", 0), end = mark("<end>", 0);
  const MarksAround two = pair({begin, a, end, end, text("B", 0), end});
  EXPECT_THAT(two.between, ElementsAre(7, 7));
  EXPECT_FALSE(two.typed);
  const MarksAround typed = pair({begin, a, end, text("B", 1), mark("<end>", 1)});
  EXPECT_THAT(typed.between, ElementsAre(7));
  EXPECT_TRUE(typed.typed);
  const std::string b = text("B", 1), last = mark("<end>", 1);
  for (const auto& odd : std::vector<std::vector<std::string>>{
           {},
           {begin, a, end},
           {begin, b, end, a, end},        // the other way around
           {begin, a, end, end, b, last},  // the second type behind two marks
           {begin, a, begin, b, last},     // behind a mark that stands before
           {begin, a, end, b, end},        // and not up to the end
           {begin, a, end, text("B", 2), mark("<end>", 2)},
           {begin, a, end, b, last, a},
           {begin, a, mark("<none>", 0), b, last},
           {a, end, b, last},  // other marks around than one text has
           {"3"},
           {"{}"},
           {R"({"Sequence": {"id": "A"}})"}}) {
    EXPECT_TRUE(pair(odd).between.empty()) << fmt::format("{}", fmt::join(odd, " "));
  }
  EXPECT_TRUE(read(file("3")).marks.between.empty());
}

// As RoBERTa has them.
TEST(BpeJson, MarksStandOnBothSidesAndMayTakeTheBlankBeforeThem) {
  const std::string around =
      R"(, "post_processor": {"type": "RobertaProcessing", "sep": ["<end>", 7], "cls": ["a", 0],)"
      R"( "trim_offsets": true, "add_prefix_space": false})";
  const std::string cuts = R"({"type": "ByteLevel", "add_prefix_space": true})";
  const std::string file = small_file(cuts, around);
  EXPECT_THAT(read(file).marks.before, ElementsAre(0));
  EXPECT_THAT(read(file).marks.after, ElementsAre(7));
  EXPECT_THROWS(read(replaced(file, R"(["a", 0])", R"(["x", 0])")), kModelDamaged, "'x'");
  EXPECT_THROWS(read(replaced(file, "RobertaProcessing", "BertProcessing")), kModelWrongKind,
                "BertProcessing");
  // A blank comes before what begins with none.
  EXPECT_THAT(encode(file, "ab ab"), ElementsAre(5, 5));
  EXPECT_THAT(encode(file, " ab<end>ab"), ElementsAre(5, 7, 5));
  EXPECT_THAT(encode(file, ""), ElementsAre());
  const std::string plain = small_file();
  EXPECT_THAT(encode(plain, "ab <end> ab"), ElementsAre(4, 3, 7, 5));
  const std::string taking = replaced(plain, R"("lstrip": false)", R"("lstrip": true)");
  EXPECT_THAT(encode(taking, "ab <end> ab"), ElementsAre(4, 7, 5));
}

TEST(BpeJson, LettersAndTheirMarksAreComposedWhereTheFileSaysSo) {
  const std::string file =
      replaced(small_file(), R"("normalizer": null)", R"("normalizer": {"type": "NFC"})");
  EXPECT_TRUE(read(file).model.nfc);
  EXPECT_THROWS(read(replaced(file, "NFC", "NFKC")), kModelWrongKind, "NFKC");
}

// Each named, before memory is taken that the file does not ask for honestly.
TEST(BpeJson, DamagedAndUnknownFilesAreRefused) {
  struct Case {
    const char *old, *by, *words;
  };
  for (const auto& [old, by, words] : {
           Case{R"("type": "BPE")", R"("type": "WordPiece")", "WordPiece"},
           {R"("byte_fallback": false)", R"("byte_fallback": true)", "byte_fallback"},
           {R"("dropout": null)", R"("dropout": 0.1)", "dropout"},
           {R"("end_of_word_suffix": "")", R"("end_of_word_suffix": "</w>")", "end_of_word_suffix"},
           {R"("rstrip": false)", R"("rstrip": true)", "rstrip"},
           {R"("ab": 4)", R"("ab": 1)", "id 1 is"},
           {R"("ab": 4)", R"("ab": -4)", "-4"},
           {R"("ab": 4)", R"("ab": 4000000)", "expected 0 to"},
           {R"("ab": 4)", R"("ab": 4000000000000)", "4000000000000"},
           {R"("ab": 4)", R"("ab": "4")", "expected"},
           {R"(["a", "b"])", R"(["a", "b", "c"])", "merges"},
           {R"(["a", "b"])", R"(["a", "z"])", "z"},
           {R"(["a", "b"])", R"([1, "b"])", "expected"},
           {R"("vocab": {"a": 0,)", R"("words": {"a": 0,)", "vocab"},
           {R"("version": "1.0")", R"("novelty": 3)", "novelty"},
       }) {
    const std::string file = replaced(small_file(), old, by);
    const auto error = error_of([&] { ByteBpe(read(file).model); });
    ASSERT_TRUE(error) << by;
    EXPECT_TRUE(error->code() == ErrorCode::kModelDamaged ||
                error->code() == ErrorCode::kModelWrongKind)
        << error->what();
    EXPECT_THAT(error->what(), HasSubstr(words));
  }
}

}  // namespace
}  // namespace fovea

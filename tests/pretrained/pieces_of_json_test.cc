// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/pieces_of_json.h"

#include <gmock/gmock.h>

#include <chrono>

#include "fovea/text/utf8.h"
#include "tests/pretrained/pieces_golden.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PiecesOfJson read(std::string_view file) {
  return pieces_of_json(parse_json(file, {"tokenizer.json", ErrorCode::kModelDamaged}),
                        "tokenizer.json");
}

std::string golden_file(std::string_view name) {
  for (const GoldenPieces& golden : kGoldenPieces) {
    if (golden.name == name) return std::string(golden.file);
  }
  ADD_FAILURE() << name;
  return "";
}

std::vector<token> encoded(const PiecePipeline& pieces, std::string_view text,
                           Marks marks = Marks::kRead) {
  std::vector<token> ids;
  pieces.encode(ids, text, marks);
  return ids;
}

std::string replaced(std::string text, std::string_view old, std::string_view by) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, text.npos) << old;
  return text.replace(at, old.size(), by);
}

TEST(PiecesOfJson, IdsAndTextAreThoseOfTokenizers) {
  for (const GoldenPieces& golden : kGoldenPieces) {
    SCOPED_TRACE(golden.name);
    PiecesOfJson file = read(golden.file);
    EXPECT_EQ(file.marks.before, golden.before);
    EXPECT_EQ(file.marks.after, golden.after);
    const PiecePipeline pieces(std::move(file.model));
    for (const GoldenText& one : golden.texts) {
      EXPECT_EQ(encoded(pieces, one.text), one.ids) << one.text;
      EXPECT_EQ(pieces.decode(one.ids), one.decoded) << one.text;
    }
  }
}

// Token by token, as text is generated, the text is the same: but for the blank that is left out at
// its beginning, and bytes that are not UTF-8.
TEST(PiecesOfJson, TextThatIsDecodedTokenByTokenIsTheSame) {
  for (const std::string_view name : {"llama 2", "gemma", "t5"}) {
    const auto pieces = std::make_shared<const PiecePipeline>(read(golden_file(name)).model);
    const std::unique_ptr<Tokenizer> tokenizer = subwords_tokenizer(pieces);
    for (const std::string_view text : {"the abc", "  the", "中 é at\n the"}) {
      const std::vector<token> ids = tokenizer->encode(text);
      EXPECT_EQ(tokenizer->decode(ids), pieces->decode(ids)) << name;
      StreamDecoder behind(*tokenizer, "before\n");
      std::string all;
      for (const token id : ids) all += behind.push(id);
      // Behind a text the first blank stays, as does one behind a newline.
      const std::string front = name == std::string_view("gemma") ? "" : " ";
      if (text.starts_with(' ')) continue;
      EXPECT_EQ(all + behind.finish(), front + pieces->decode(ids));
    }
  }
}

TEST(PiecesOfJson, MarksThatAUserWritesAreText) {
  for (const std::string_view name : {"llama 2", "xlm-roberta"}) {
    const PiecePipeline pieces(read(golden_file(name)).model);
    EXPECT_THAT(encoded(pieces, "<s>"), ElementsAre(1));
    for (const token id : encoded(pieces, "<s></s><mask>", Marks::kAreText)) {
      EXPECT_TRUE(!pieces.is_mark(id) || id == pieces.model().unknown) << pieces.name(id);
    }
  }
}

// A part without cuts, of a hundred thousand letters: a time that grows with its square would be
// minutes.
TEST(PiecesOfJson, ALongWordTakesTimeInProportion) {
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string_view name : {"llama 2", "t5", "xlm-roberta"}) {
    const PiecePipeline pieces(read(golden_file(name)).model);
    for (const std::string_view unit : {"a", "abc", "e\u0301", "<mask>", " ", "z"}) {
      std::string text;
      while (text.size() < 200'000) text += unit;
      EXPECT_LE(encoded(pieces, text).size(), text.size() + 1);
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

// Each named, before memory is taken that the file does not ask for honestly.
TEST(PiecesOfJson, DamagedAndUnknownFilesAreRefused) {
  struct Case {
    const char *name, *old, *by, *words;
  };
  for (const auto& [name, old, by, words] : {
           Case{"llama 2", R"("dropout":null)", R"("dropout":0.1)", "dropout"},
           {"llama 2", R"("type":"Prepend")", R"("type":"Lowercase")", "Lowercase"},
           {"llama 2", R"("type":"Fuse")", R"("type":"CTC")", "CTC"},
           {"llama 2", R"(["a","b"])", R"(["a","b","c"])", "merges"},
           {"llama 2", R"(["a","b"])", R"("ab")", "merges"},
           {"llama 2", R"(["a","b"])", R"(["a","x"])", "'x' joins"},
           {"llama 2", R"(["a","b"])", R"(["t","h"])", "there twice"},
           {"llama 2", R"("<0x01>":4)", R"("<0x01>":3)", "id 3 is"},
           {"llama 2", R"("<0x01>":4)", R"("<0x01>":4000000)", "expected 0 to"},
           {"llama 2", R"("unk_token":"<unk>")", R"("unk_token":"<none>")", "unk_token"},
           {"llama 2", R"("single_word":false)", R"("single_word":true)", "single_word"},
           {"llama of transformers 5", R"("prepend_scheme":"first")", R"("prepend_scheme":"last")",
            "last"},
           {"llama of transformers 5", R"("replacement":"▁")", R"("replacement":"__")",
            "one character"},
           {"gemma", R"("MergedWithPrevious")", R"("Removed")", "Removed"},
           {"t5", R"("unk_id":0)", R"("unk_id":100)", "unk_id"},
           {"t5", R"(["<s>",0.0])", R"(["<s>"])", "vocab"},
           {"t5", R"(["<s>",0.0])", R"(["▁",0.0])", "id 1 is"},
           {"t5", R"("precompiled_charsmap":")", R"("precompiled_charsmap":"AAAA)", "rules"},
           {"t5", R"("precompiled_charsmap":")", R"("precompiled_charsmap":"*)", "base64"},
           {"t5", R"("prepend_scheme":"always")", R"("prepend_scheme":"first")",
            "leave out no character"},
           {"mbart", R"({"Regex":" {2,}"})", R"({"Regex":"\\s+"})", "Regex"},
           {"xlm-roberta", R"("WhitespaceSplit")", R"("Whitespace")", "Whitespace"},
           {"xlm-roberta", R"("version":"1.0")", R"("novelty":3)", "novelty"},
       }) {
    const std::string file = replaced(golden_file(name), old, by);
    const auto error = error_of([&] { PiecePipeline pieces(read(file).model); });
    ASSERT_TRUE(error) << by;
    EXPECT_TRUE(error->code() == ErrorCode::kModelDamaged ||
                error->code() == ErrorCode::kModelWrongKind)
        << error->what();
    EXPECT_THAT(error->what(), HasSubstr(words));
  }
}

TEST(PiecesOfJson, RulesThatMakeATextMuchLongerAreStopped) {
  std::string file = golden_file("gemma");
  const std::string more(2000, 'a');
  file = replaced(file, R"("content":"▁")", R"("content":")" + more + '"');
  const PiecePipeline pieces(read(file).model);
  EXPECT_THROWS(encoded(pieces, std::string(100, ' ')), kInputFormat, "rules make more than");
}

}  // namespace
}  // namespace fovea

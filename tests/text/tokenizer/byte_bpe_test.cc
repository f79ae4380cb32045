// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/byte_bpe.h"

#include <gmock/gmock.h>

#include "fovea/base/option.h"
#include "tests/support/throws.h"
#include "tests/text/tokenizer/byte_bpe_golden.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

PreSplit split_called(std::string_view name) {
  // Cuts of a tokenizer.json, which no GGUF file names.
  if (name == "o200k")
    return {.name = name, .pattern = SplitPattern::kO200k, .digits = 3, .endings = true};
  if (name == "tekken") return {.name = name, .pattern = SplitPattern::kO200k, .digits = 1};
  return *find_named(pre_splits(), name);
}

ByteBpeModel golden_model(std::string_view split) {
  ByteBpeModel model;
  for (const std::string_view name : kBpeNames) model.names.emplace_back(name);
  model.kinds.assign(model.names.size(), BpeTokenKind::kNormal);
  model.kinds[0] = model.kinds[1] = BpeTokenKind::kControl;
  model.kinds.back() = BpeTokenKind::kUserDefined;
  for (const std::string_view merge : kBpeMerges) model.merges.emplace_back(merge);
  model.split = split_called(split);
  model.begin = 1;
  model.end = 0;
  return model;
}

std::vector<token> encoded(const ByteBpe& bpe, std::string_view text, Marks marks = Marks::kRead) {
  std::vector<token> ids;
  bpe.encode(ids, text, marks);
  return ids;
}

std::string decoded(const ByteBpe& bpe, const std::vector<token>& ids) {
  std::string text;
  for (const token id : ids) bpe.append_bytes(text, id);
  return text;
}

TEST(PreSplit, PartsAreThoseOfTheRegularExpressions) {
  for (const GoldenCut& golden : kGoldenCuts) {
    if (golden.parts.empty()) continue;
    SCOPED_TRACE(std::string(golden.split) + ": " + std::string(golden.text));
    std::string_view text = golden.text;
    std::vector<int> parts;
    while (!text.empty()) {
      parts.push_back(static_cast<int>(take_part(text, split_called(golden.split)).size()));
    }
    EXPECT_EQ(parts, golden.parts);
  }
}

TEST(ByteBpe, IdsAreThoseOfTokenizers) {
  for (const GoldenCut& golden : kGoldenCuts) {
    SCOPED_TRACE(std::string(golden.split) + ": " + std::string(golden.text));
    const ByteBpe bpe(golden_model(golden.split));
    const std::vector<token> ids = encoded(bpe, golden.text);
    EXPECT_THAT(ids, ElementsAreArray(golden.ids));
    EXPECT_EQ(decoded(bpe, ids), golden.text);
  }
}

TEST(ByteBpe, MarksOfAChatAreTextWhereAUserWritesThem) {
  const ByteBpe bpe(golden_model("smollm"));
  EXPECT_THAT(encoded(bpe, "<|end|>"), ElementsAre(0));
  const std::vector<token> ids = encoded(bpe, "<|end|>", Marks::kAreText);
  EXPECT_THAT(ids, testing::Each(testing::Gt(1)));
  EXPECT_EQ(decoded(bpe, ids), "<|end|>");
  const auto own = static_cast<token>(std::size(kBpeNames) - 1);
  EXPECT_THAT(encoded(bpe, "<|im_start|>x", Marks::kAreText), ElementsAre(own));
}

TEST(ByteBpe, AWordOfAHundredThousandLettersTakesNoLonger) {
  const ByteBpe bpe(golden_model("gpt-2"));
  const std::string text(200'000, 'a');
  EXPECT_EQ(decoded(bpe, encoded(bpe, text)), text);  // quadratic, it would take minutes
}

TEST(ByteBpe, AByteWithoutATokenIsLeftOut) {
  ByteBpeModel model;
  model.names = {"a", "b", "ab"};
  model.kinds.assign(3, BpeTokenKind::kNormal);
  model.merges = {"a b"};
  EXPECT_THAT(encoded(ByteBpe(model), "abcab"), ElementsAre(2, 2));
  EXPECT_THAT(encoded(ByteBpe(model), "acb"), ElementsAre(2));  // as `tokenizers` has it
}

TEST(ByteBpe, AVocabularyThatContradictsItselfIsRefused) {
  ByteBpeModel good;
  good.names = {"a", "b", "ab"};
  good.kinds.assign(3, BpeTokenKind::kNormal);
  good.merges = {"a b"};
  const auto changed = [&](auto&& change) {
    ByteBpeModel model = good;
    change(model);
    ByteBpe bpe(std::move(model));
  };
  using Model = ByteBpeModel&;
  changed([](Model) {});
  EXPECT_THROWS(changed([](Model m) { m.names[1] = "a"; }), kModelDamaged, "'a' is there twice");
  EXPECT_THROWS(changed([](Model m) { m.merges = {"a c"}; }), kModelDamaged, "merge 0 ('a c')");
  EXPECT_THROWS(changed([](Model m) { m.merges = {"b a"}; }), kModelDamaged, "merge 0 ('b a')");
  EXPECT_THROWS(changed([](Model m) { m.merges = {"ab"}; }), kModelDamaged, "merge 0 ('ab')");
  EXPECT_THROWS(changed([](Model m) { m.merges = {""}; }), kModelDamaged, "merge 0");
  EXPECT_THROWS(changed([](Model m) { m.merges = {"a b", "a b"}; }), kModelDamaged, "twice");
  EXPECT_THROWS(changed([](Model m) { m.kinds.pop_back(); }), kShape, "2 kinds for 3 tokens");
}

TEST(ByteBpeTokenizer, IsATokenizer) {
  const auto tokenizer =
      subwords_tokenizer(std::make_shared<const ByteBpe>(golden_model("smollm")));
  EXPECT_EQ(tokenizer->vocabulary_size(), std::ssize(kBpeNames));
  EXPECT_EQ(tokenizer->special().begin, 1);
  EXPECT_EQ(tokenizer->special().end, 0);
  const std::string text = "Hello, 世界 123\n";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a<|end|>b")), "ab");  // a mark is no text
  EXPECT_THROWS(tokenizer->encode("a\xFF"), kEncoding, "invalid UTF-8");
  EXPECT_THROWS(tokenizer->data(), kModelWrongKind, "is kept as its files");
}

}  // namespace
}  // namespace fovea

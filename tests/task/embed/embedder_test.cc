// SPDX-License-Identifier: Apache-2.0
// Vectors of texts by a small random model. That they are the right ones is shown by
// tests/cli/test_embed.py, which computes them in plain Python.
#include "fovea/task/embed/embedder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fovea/base/error.h"

namespace fovea {
namespace {

WordPieceModel small_vocabulary() {
  WordPieceModel words;
  words.names = {"[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "##b"};
  words.marks.before = {1};
  words.marks.after = {2};
  return words;
}

SentenceModel small_model(index max_length = 8) {
  const BertConfig config{
      .vocabulary = 7, .width = 6, .layers = 2, .heads = 2, .ff = 8, .block = max_length};
  return {.model = RowEncoder(Bert(config)),
          .tokenizer = encoder_tokenizer(small_vocabulary()),
          .settings = {.normalizes = true, .max_length = max_length},
          .checksum = "0"};
}

EmbedRules rules_of(const SentenceModel& model) { return embed_rules(model, {}, {}); }

std::vector<float> vector_of(Rows<const float> rows, index n) {
  return {rows[n], rows[n] + rows.columns};
}

TEST(Embedder, TruncatesAndCounts) {
  const SentenceModel model = small_model(5);
  Embedder embedder(Context(2), model, rules_of(model));
  const std::string longest(100'000, 'c');  // one word
  std::string many;
  for (int n = 0; n < 10'000; ++n) many += "a b ";
  const std::vector<std::string_view> texts = {"a b a", "a b a b", many, "", longest, "c"};
  const Rows<const float> found = embedder.embed(texts);
  EXPECT_EQ(embedder.texts(), 6);
  EXPECT_EQ(embedder.truncated(), 2);
  EXPECT_EQ(embedder.tokens(), 5 + 5 + 5 + 2 + 3 + 3);
  EXPECT_EQ(vector_of(found, 0), vector_of(found, 1));
  EXPECT_EQ(vector_of(found, 0), vector_of(found, 2));
  EXPECT_NE(vector_of(found, 4), vector_of(found, 5));  // [UNK]
}

// A text is read in parts where only its beginning counts; but not where a token may reach over a
// blank.
TEST(Embedder, ReadsWholeWhatATokenWithABlankMayReachInto) {
  SentenceModel model = small_model(4);
  WordPieceModel words = small_vocabulary();
  words.names.push_back("c a");
  words.added = {{.text = "c a", .id = 7}};
  model.tokenizer = encoder_tokenizer(std::move(words));
  model.model =
      RowEncoder(Bert({.vocabulary = 8, .width = 6, .layers = 1, .heads = 2, .ff = 8, .block = 4}));
  Embedder embedder(Context(1), model, rules_of(model));
  const std::string text = std::string(17, ' ') + "c a";  // a blank follows the 18th byte
  const std::vector<std::string_view> texts = {text, "c a"};
  const Rows<const float> found = embedder.embed(texts);
  EXPECT_EQ(vector_of(found, 0), vector_of(found, 1));
}

TEST(Embedder, ColumnsAreLeftOutBehindTheNorm) {
  const SentenceModel model = small_model();
  const std::string said[] = {"truncate_dim", "normalize"};
  const EmbedOptions options{.normalize = true, .prompt = {}, .truncate_dim = 2};
  EXPECT_EQ(embed_rules(model, options, {said, 1}).normalizes_again, false);
  const EmbedRules rules = embed_rules(model, options, said);
  Embedder embedder(Context(1), model, rules);
  const std::vector<std::string_view> texts = {"a b"};
  const Rows<const float> found = embedder.embed(texts);
  EXPECT_EQ(found.columns, 2);
  EXPECT_NEAR(std::hypot(found[0][0], found[0][1]), 1, 1e-6);
  EXPECT_THROW(embed_rules(model, {.prompt = {}, .truncate_dim = 7}, {}), Error);
}

TEST(Nearest, GivesTheHighestCosines) {
  const std::vector<float> rows = {1, 0, 0, 1, .6f, .8f, 0, 1};
  const CorpusVectors corpus{.vectors = Tensor::of<float>({4, 2}, rows)};
  const std::vector<float> queries = {0, 5, 3, 0};
  const auto found = nearest(Context(2), corpus, {queries.data(), 2, 2}, 3);
  ASSERT_EQ(found.size(), 2U);
  const auto rows_of = [](const std::vector<Hit>& hits) {
    std::vector<index> numbers;
    for (const Hit& hit : hits) numbers.push_back(hit.row);
    return numbers;
  };
  EXPECT_EQ(rows_of(found[0]), (std::vector<index>{1, 3, 2}));  // equal ones in their order
  EXPECT_EQ(rows_of(found[1]), (std::vector<index>{0, 2, 1}));
  EXPECT_NEAR(found[0][2].score, .8, 1e-6);
  EXPECT_EQ(nearest(Context(1), corpus, {queries.data(), 1, 2}, 9)[0].size(), 4U);
}

TEST(Cosine, OfZerosIsZero) {
  const std::vector<float> a = {3, 4}, b = {4, 3}, zero = {0, 0};
  EXPECT_NEAR(cosine(a, b), .96, 1e-12);
  EXPECT_EQ(cosine(a, zero), 0);
}

}  // namespace
}  // namespace fovea

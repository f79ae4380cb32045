// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/folder_subwords.h"

#include <gmock/gmock.h>

#include "fovea/base/file.h"
#include "fovea/text/sentencepiece/sentencepiece.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"
#include "tests/text/sentencepiece/proto_writer.h"

namespace fovea {
namespace {

using testing::ElementsAre;

class FolderSubwordsTest : public testing::Test {
 protected:
  void write(const char* name, std::string_view text) {
    write_file_atomically(folder_ / name, text);
  }
  FolderSubwords read(std::string_view architecture, index rows, token begin = kNoToken) {
    return read_folder_subwords(ModelFiles(folder_.path()), architecture, rows, begin);
  }
  void write_vocabulary() {
    write("vocab.json", R"({"a": 0, "b": 1, "ab": 2, "Ġ": 3, "<|endoftext|>": 4})");
    write("merges.txt", "#version: 0.2\na b\n\n");
  }
  std::string write_pieces() {
    const std::string model = model_of(
        {{"<s>", 0, PieceType::kControl},
         {"</s>", 0, PieceType::kControl},
         {"\u2581", -1, PieceType::kNormal},
         {"a", -2, PieceType::kNormal},
         {"b", -3, PieceType::kNormal},
         {"ab", -1.5, PieceType::kNormal},
         {"\u2581ab", -2.5, PieceType::kNormal}},
        PieceAlgorithm::kBpe, ProtoWriter().bytes(3, ProtoWriter().number(4, 0).text()).text());
    write("tokenizer.model", model);
    return model;
  }

  TestFolder folder_;
};

std::vector<token> encoded(const FolderSubwords& read, std::string_view text,
                           TextPlace place = TextPlace::kBegin) {
  std::vector<token> ids;
  read.subwords->encode(ids, text, Marks::kRead, place);
  return ids;
}

TEST_F(FolderSubwordsTest, AVocabularyAndItsMerges) {
  write_vocabulary();
  const FolderSubwords gpt2 = read("gpt2", 7, 4);
  EXPECT_THAT(encoded(gpt2, "ab ba<|endoftext|>"), ElementsAre(2, 3, 1, 0, 4));
  EXPECT_TRUE(gpt2.subwords->is_mark(4));
  EXPECT_TRUE(gpt2.subwords->is_unused(6));
  EXPECT_TRUE(gpt2.marks.before.empty());
  EXPECT_EQ(gpt2.subwords->special().begin, 4);
}

TEST_F(FolderSubwordsTest, TokensThatWereAdded) {
  write_vocabulary();
  write("added_tokens.json", R"({"<pad>": 5})");
  write(
      "tokenizer_config.json",
      R"({"eos_token": "ab", "added_tokens_decoder": {"6": {"content": "b b", "special": false}}})");
  const FolderSubwords qwen = read("qwen2", 7);
  EXPECT_THAT(encoded(qwen, "b b<pad>ab"), ElementsAre(6, 5, 2));
  EXPECT_TRUE(qwen.subwords->is_mark(5));
  EXPECT_TRUE(qwen.subwords->is_mark(2));  // eos_token
  EXPECT_FALSE(qwen.subwords->is_mark(6));
}

TEST_F(FolderSubwordsTest, PiecesOfSentencePiece) {
  const SentencePiece pieces(write_pieces());
  const FolderSubwords llama = read("llama", 10);
  for (const std::string_view text : {"ab ab", "  ba", "abab a"}) {
    std::vector<token> ids;
    for (const EncodedPiece& one : pieces.encode(text)) ids.push_back(one.id);
    EXPECT_EQ(encoded(llama, text), ids);
    EXPECT_EQ(llama.subwords->decode(ids), text);
  }
  EXPECT_THAT(encoded(llama, "a</s>b"), ElementsAre(3, 4, 2, 3, 5));
  EXPECT_THAT(llama.marks.before, ElementsAre(1));
  EXPECT_EQ(llama.subwords->special().end, 2);
  EXPECT_TRUE(llama.subwords->is_unused(9));
  write("tokenizer_config.json", R"({"add_bos_token": false})");
  EXPECT_TRUE(read("llama", 10).marks.before.empty());
}

TEST_F(FolderSubwordsTest, WhatContradictsItselfIsRefused) {
  EXPECT_THROWS(read("gpt2", 7), kModelMissing, "tokenizer.json");
  write_vocabulary();
  EXPECT_THROWS(read("mistral", 7), kModelWrongKind, "got 'mistral'");
  EXPECT_THROWS(read("gpt2", 3), kModelDamaged, "5 tokens; the model has 3");
  EXPECT_THROWS(read("gpt2", 5000), kModelDamaged, "vocab_size of config.json is 5000");
  write("merges.txt", "a x\n");
  EXPECT_THROWS(read("gpt2", 7), kModelDamaged, "joins what are no tokens");
  write("vocab.json", R"({"a": 0, "b": 2})");
  EXPECT_THROWS(read("gpt2", 7), kModelDamaged, "no token has the id 1");
  write("vocab.json", R"({"a": "0"})");
  EXPECT_THROWS(read("gpt2", 7), kModelDamaged, "vocab.json");
  write("added_tokens.json", R"({"<pad>": 70})");
  EXPECT_THROWS(read("gpt2", 7), kModelDamaged, "has the id 70");
  write("added_tokens.json", R"({"<pad>": 3})");
  write_pieces();
  EXPECT_THROWS(read("llama", 10), kModelDamaged, "token 3 is");
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "y"}}})");
  EXPECT_THROWS(read("llama", 10), kModelDamaged, "'x' is no id");
  write("tokenizer.model", "no model");
  EXPECT_THROWS(read("llama", 10), kModelDamaged, "tokenizer.model");
}

}  // namespace
}  // namespace fovea

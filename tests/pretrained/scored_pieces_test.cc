// SPDX-License-Identifier: Apache-2.0
// Pieces with scores, as the tokenizer `llama` of GGUF files has them.
#include "fovea/text/tokenizer/scored_pieces.h"

#include <gmock/gmock.h>

#include <cmath>

#include "fovea/base/bytes.h"
#include "fovea/pretrained/hugging_face_tokenizer.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/tensor/gguf_writer.h"
#include "tests/pretrained/scored_pieces_golden.h"
#include "tests/pretrained/unigram_pieces_golden.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int32_t kUnknown = 2, kControl = 3, kByte = 6;

// A vocabulary as it stands in a file, whose parts a test may change.
struct Vocabulary {
  std::vector<std::string> names = {"<unk>", "<s>", "</s>"};
  std::vector<float> scores = {0, 0, 0};
  std::vector<std::int32_t> kinds = {kUnknown, kControl, kControl};
  std::string model = "llama";
  std::uint32_t bos = 1, eos = 2;
  std::vector<GgufEntry> more = {};

  Vocabulary() {
    for (int byte = 0; byte < 256; ++byte) add(name_of_byte(byte), 0, kByte);
    for (const GoldenScoredToken& one : kGoldenScoredTokens) {
      add(std::string(one.name), one.score, one.kind);
    }
  }

  void add(std::string name, float score, std::int32_t kind) {
    names.push_back(std::move(name));
    scores.push_back(score);
    kinds.push_back(kind);
  }

  // That of T5.
  explicit Vocabulary(bool merges) : names{}, scores{}, kinds{}, model("t5"), bos(0), eos(1) {
    for (const GoldenScoredToken& one : kGoldenUnigramTokens) {
      add(std::string(one.name), one.score, one.kind);
    }
    more = {{"tokenizer.ggml.add_space_prefix", true},
            {"tokenizer.ggml.remove_extra_whitespaces", merges},
            {"tokenizer.ggml.precompiled_charsmap", kGoldenCharsmap},
            {"tokenizer.ggml.unknown_token_id", std::uint32_t{2}},
            {"tokenizer.ggml.add_eos_token", true}};
  }

  PretrainedText read() const {
    std::vector<GgufEntry> entries = {{"general.architecture", std::string("llama")},
                                      {"tokenizer.ggml.model", model},
                                      {"tokenizer.ggml.tokens", names},
                                      {"tokenizer.ggml.scores", scores},
                                      {"tokenizer.ggml.token_type", kinds},
                                      {"tokenizer.ggml.bos_token_id", bos},
                                      {"tokenizer.ggml.eos_token_id", eos}};
    entries.insert(entries.end(), more.begin(), more.end());
    const std::string bytes = gguf_bytes(entries, {}, gguf_weight_types().front());
    const MemorySource source(bytes);
    return text_of_gguf(parse_gguf_header(source, "file"), "file");
  }
};

std::vector<token> encoded(const Subwords& pieces, std::string_view text,
                           Marks marks = Marks::kRead) {
  std::vector<token> ids;
  pieces.encode(ids, text, marks);
  return ids;
}

TEST(ScoredPieces, IdsAreThoseOfLlamaCpp) {
  const PretrainedText text = Vocabulary().read();
  for (const GoldenScoredText& golden : kGoldenScoredTexts) {
    EXPECT_EQ(encoded(*text.subwords, golden.text), golden.ids) << golden.text;
  }
  EXPECT_EQ(text.begin, 1);
  EXPECT_THAT(text.ends, ElementsAre(2));
  EXPECT_EQ(text.end, 2);
}

TEST(ScoredPieces, TheBlankInFrontIsLeftOutOfDecodedText) {
  const PretrainedText text = Vocabulary().read();
  for (const std::string_view one : {"the abc", "  two", "中 é z", "a\nb"}) {
    EXPECT_EQ(text.subwords->decode(encoded(*text.subwords, one)), one);
    const std::unique_ptr<Tokenizer> tokenizer = subwords_tokenizer(text.subwords);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(one)), one);
  }
}

TEST(ScoredPieces, WithoutAPrefix) {
  Vocabulary file;
  file.more = {{"tokenizer.ggml.add_space_prefix", false}, {"tokenizer.ggml.add_bos_token", false}};
  const PretrainedText text = file.read();
  EXPECT_EQ(text.subwords->name(encoded(*text.subwords, "the")[0]), "th");
  EXPECT_EQ(text.subwords->decode(encoded(*text.subwords, " the")), " the");
  EXPECT_EQ(text.begin, kNoToken);
}

TEST(ScoredPieces, MarksThatAUserWritesAreText) {
  const PretrainedText text = Vocabulary().read();
  for (const token id : encoded(*text.subwords, "<s></s>", Marks::kAreText)) EXPECT_GT(id, 2);
  // A text that is one token stays one.
  const std::vector<token> ids = encoded(*text.subwords, "<table>", Marks::kAreText);
  EXPECT_THAT(ids, ElementsAre(text.subwords->id_of("<table>")));
}

TEST(ScoredPieces, TheUnknownTokenMayBeNamedByItsId) {
  Vocabulary file;
  file.kinds[0] = kControl;
  EXPECT_THROWS(file.read(), kModelDamaged, "no unknown piece");
  file.more = {{"tokenizer.ggml.unknown_token_id", std::uint32_t{0}}};
  EXPECT_EQ(file.read().subwords->special().unknown, 0);
}

// The unigram model of T5, whose rules write a text before it is cut: with blanks that are merged,
// as T5 has them, and kept.
TEST(ScoredPieces, UnigramIdsAreThoseOfLlamaCpp) {
  for (const bool merges : {true, false}) {
    const PretrainedText text = Vocabulary(merges).read();
    for (const GoldenScoredText& golden : merges ? kGoldenUnigramMerged : kGoldenUnigramKept) {
      EXPECT_EQ(encoded(*text.subwords, golden.text), golden.ids) << golden.text;
    }
    EXPECT_EQ(text.begin, kNoToken);
    EXPECT_EQ(text.end, 1);
    EXPECT_EQ(text.subwords->special().unknown, 2);
    EXPECT_EQ(text.subwords->decode(encoded(*text.subwords, "the abc")), "the abc");
  }
  Vocabulary damaged(true);
  damaged.more[2].value = std::vector<std::int32_t>{1, 2, 3};
  EXPECT_THROWS(damaged.read(), kModelDamaged, "tokenizer.ggml.tokens");
}

TEST(ScoredPieces, DamagedAndUnknownVocabulariesAreRefused) {
  struct Case {
    void (*change)(Vocabulary&);
    const char* words;
  };
  for (const auto& [change, words] : {
           Case{[](Vocabulary& v) { v.model = "rwkv"; }, "rwkv"},
           {[](Vocabulary& v) { v.scores.pop_back(); }, "scores"},
           {[](Vocabulary& v) { v.kinds.pop_back(); }, "token_type"},
           {[](Vocabulary& v) { v.kinds[5] = 7; }, "token_type"},
           {[](Vocabulary& v) { v.kinds[5] = 1; }, "255 of 256"},
           {[](Vocabulary& v) { v.scores[300 - 40] = NAN; }, "score"},
           {[](Vocabulary& v) { v.names[260] = "b"; }, "twice"},
           {[](Vocabulary& v) { v.names[260] = ""; }, "empty"},
           {[](Vocabulary& v) { v.names[260] = "\xFF"; }, "no text"},
           {[](Vocabulary& v) { v.names[260] = std::string(5000, 'a'); }, "5000 bytes"},
           {[](Vocabulary& v) {
              v.more = {{"tokenizer.ggml.add_eos_token", true}};
            },
            "add_eos_token"},
       }) {
    Vocabulary file;
    change(file);
    const auto error = error_of([&] { file.read(); });
    ASSERT_TRUE(error) << words;
    EXPECT_TRUE(error->code() == ErrorCode::kModelDamaged ||
                error->code() == ErrorCode::kModelWrongKind)
        << error->what();
    EXPECT_THAT(error->what(), HasSubstr(words));
  }
}

}  // namespace
}  // namespace fovea

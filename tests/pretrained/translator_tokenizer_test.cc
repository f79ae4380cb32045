// SPDX-License-Identifier: Apache-2.0
// How translators of transformers cut texts, and what text their tokens are.
#include "fovea/pretrained/translator_tokenizer.h"

#include <gmock/gmock.h>

#include "fovea/pretrained/translator.h"
#include "tests/pretrained/marian_support.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

constexpr token kUnk = 1, kEnd = 0, kPad = 23;

class TranslatorVocabularies : public testing::Test {
 protected:
  ForeignVocabularies read(const MarianFiles& files) const {
    files.write(folder_ / "model");
    return std::move(load_foreign_translator(folder_ / "model").vocabularies);
  }
  template <class Change>
  ForeignVocabularies changed(std::string_view name, Change&& change) const {
    MarianFiles files(name);
    change(files);
    return read(files);
  }

  const TestFolder folder_;
};

TEST_F(TranslatorVocabularies, PiecesHaveTheIdsOfTheVocabulary) {
  const ForeignVocabularies found = read(MarianFiles("one table"));
  const Tokenizer& source = *found.of_source;
  EXPECT_EQ(source.vocabulary_size(), 24);
  EXPECT_EQ(source.special().end, kEnd);
  EXPECT_EQ(source.special().unknown, kUnk);
  EXPECT_THAT(source.encode("c d w"), ElementsAre(2, 3, 22));
  EXPECT_THAT(source.encode("x c"), ElementsAre(kUnk, 2));  // a piece without an id
  EXPECT_THAT(source.encode("c \xE4\xB8\xAD"), ElementsAre(2, kUnk));
  EXPECT_THAT(source.encode(""), ElementsAre());
  EXPECT_THROWS(source.encode("\xff"), kEncoding, "text:1:1");
  EXPECT_EQ(found.of_target->special().begin, kPad);
}

TEST_F(TranslatorVocabularies, MarksAndLanguageCodesAreTokens) {
  const ForeignVocabularies found = changed("one table", [](MarianFiles& f) {
    f.set("vocab.json", std::string(kSpaceSymbol) + "w", "");
    f.set("vocab.json", ">>fra<<", "22");
  });
  const Tokenizer& source = *found.of_source;
  EXPECT_THAT(source.encode(">>fra<< c"), ElementsAre(22, 2));
  EXPECT_THAT(source.encode(">>deu<< c"), ElementsAre(kUnk, 2));
  EXPECT_THAT(source.encode("c</s>d<pad>"), ElementsAre(2, kEnd, 3, kPad));
  EXPECT_THAT(source.encode("c</s>>>fra<< d"), ElementsAre(2, kEnd, 22, 3));
  EXPECT_THAT(source.encode("c >>fra<<"), testing::Not(testing::Contains(22)));
  EXPECT_EQ(source.decode(std::vector<token>{22, 2, kEnd}), "c");
  EXPECT_EQ(found.of_target->decode(std::vector<token>{22, 2, kEnd}), ">>fra<< c");
}

TEST_F(TranslatorVocabularies, EachSideMayHaveItsOwn) {
  const ForeignVocabularies found = changed("a table for each side", [](MarianFiles& f) {
    f.set("target_vocab.json", std::string(kSpaceSymbol) + "c", "");
    f.set("target_vocab.json", std::string(kSpaceSymbol) + "z", "2");
    f.set("tokenizer_config.json", "added_tokens_decoder",
          R"({"23": {"content": "<pad>", "special": true}, "21": {"content": "v"}})");
  });
  EXPECT_THAT(found.of_source->encode("c z"), ElementsAre(2, kUnk));
  EXPECT_THAT(found.of_source->encode("cv"), ElementsAre(2, 21));  // a token that was added
  EXPECT_THAT(found.of_target->encode("c z<pad>"), ElementsAre(kUnk, 2, 19));
  EXPECT_EQ(found.of_target->decode(std::vector<token>{2, 19, 3}), "z d");
  EXPECT_FALSE(found.of_target->occurs_in_learned_text(19));
  EXPECT_TRUE(found.of_target->occurs_in_learned_text(2));
}

TEST_F(TranslatorVocabularies, DamagedFilesAreFound) {
  const auto vocabulary = [&](const std::string& name, const std::string& value) {
    return changed("one table", [&](MarianFiles& f) { f.set("vocab.json", name, value); });
  };
  EXPECT_THROWS(vocabulary("x", "24"), kModelDamaged, "an id from 0 to 23");
  EXPECT_THROWS(vocabulary("x", "2"), kModelDamaged, "have the id 2");
  EXPECT_THROWS(vocabulary("x", "\"2\""), kModelDamaged, "vocab.json");
  EXPECT_THROWS(vocabulary("<unk>", ""), kModelDamaged, "there is no '<unk>'");
  EXPECT_THROWS(vocabulary("</s>", ""), kModelDamaged, "there is no '</s>'");
  EXPECT_THROWS(changed("one table", [](MarianFiles& f) { f.texts.erase("source.spm"); }),
                kModelMissing, "source.spm");
  EXPECT_THROWS(changed("one table", [](MarianFiles& f) { f.texts["target.spm"] = "no model"; }),
                kModelDamaged, "target.spm");
  const auto rules = [&](const std::string& key, const std::string& value) {
    return changed("one table",
                   [&](MarianFiles& f) { f.set("tokenizer_config.json", key, value); });
  };
  EXPECT_THROWS(rules("sp_model_kwargs", R"({"enable_sampling": true})"), kModelWrongKind,
                "sp_model_kwargs");
  EXPECT_THROWS(rules("sp_model_kwargs", "3"), kModelDamaged, "tokenizer_config.json");
  EXPECT_THROWS(rules("added_tokens_decoder", R"({"24": {"content": "x"}})"), kModelDamaged,
                "an id from 0 to 23");
  EXPECT_THROWS(rules("added_tokens_decoder", R"({"3": {"content": "x", "single_word": true}})"),
                kModelWrongKind, "single_word");
}

TEST_F(TranslatorVocabularies, BlanksBeforePunctuationMayGo) {
  EXPECT_FALSE(read(MarianFiles("one table")).cleans);
  EXPECT_TRUE(changed("one table", [](MarianFiles& f) {
                f.set("tokenizer_config.json", "clean_up_tokenization_spaces", "true");
              }).cleans);
  EXPECT_EQ(without_spare_blanks("I do n't , he 's . a ' b"), "I don't, he's. a'b");
}

}  // namespace
}  // namespace fovea

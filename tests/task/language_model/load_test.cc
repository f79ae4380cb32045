// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <limits>

#include "fovea/text/vocabulary.h"
#include "fovea/train/model_folder.h"
#include "tests/support/throws.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

TEST(Load, GivesBackWhatWasTrained) {
  const TestFolder folder;
  const LanguageModelRun run = prepare_run(tiny_settings(folder));
  TrainingObserver silent;
  train_language_model(Context(2), run, folder / "model", {}, silent);
  const LoadedLanguageModel loaded = load_language_model(folder / "model");
  EXPECT_EQ(loaded.settings.model, run.settings.model);
  EXPECT_EQ(config_text(loaded.settings), config_text(run.settings));
  EXPECT_EQ(loaded.tokenizer->data(), run.tokenizer->data());
  EXPECT_EQ(safetensors_bytes(parameter_tensors(loaded.model->parameters())),
            safetensors_bytes(read_model_weights(folder / "model").tensors));
}

TEST(Load, NamesTheKindItFound) {
  EXPECT_THROWS(settings_from_text(R"({"kind":"classifier"})", "c.json"), kModelWrongKind,
                "c.json: expected \"kind\": \"language_model\", got \"classifier\"");
  EXPECT_THROWS(settings_from_text(R"({"architectures":[]})", "c.json"), kModelWrongKind,
                "got none");
  EXPECT_THROWS(settings_from_text("{", "c.json"), kModelDamaged, "c.json");
}

// A model computes what it has always computed.
TEST(Load, AModelWithoutAnEmbeddingScaleHasTheScaleOne) {
  const auto model = [](const char* text) { return settings_from_text(text, "c.json").model; };
  const char* const before = R"({"kind":"language_model","model":{"position":"sinusoidal"}})";
  EXPECT_EQ(model(before).embedding_scale, 1);
  const char* const since = R"({"kind":"language_model","model":{"embedding_scale":0}})";
  EXPECT_EQ(model(since).embedding_scale, 0);
}

TEST(Load, ATokenizerOfAnotherModelIsDamage) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.model.vocabulary = 300;
  write_model_files(
      folder / "m",
      std::vector<NamedFile>{{"config.json", config_text(settings)},
                             {"tokenizer.txt", to_text({.kind = "byte", .characters = {}})}});
  EXPECT_THROWS(load_language_model(folder / "m"), kModelDamaged,
                "the tokenizer has 259 tokens, the model 300");
}

TEST(Load, AModelIsNoLargerThanItsWeights) {
  const TestFolder folder;
  const LanguageModelRun run = prepare_run(tiny_settings(folder));
  TrainingObserver silent;
  train_language_model(Context(2), run, folder / "m", {}, silent);
  const std::vector<NamedTensor> weights = read_model_weights(folder / "m").tensors;
  constexpr index kHuge = std::numeric_limits<std::int32_t>::max();
  using Config = LanguageModelConfig;
  const std::pair<index Config::*, index> forgeries[] = {{&Config::width, index{1} << 21},
                                                         {&Config::width, kHuge},
                                                         {&Config::layers, 65536},
                                                         {&Config::ff, kHuge},
                                                         {&Config::head_dim, kHuge},
                                                         {&Config::block, kHuge},
                                                         {&Config::heads, -2},
                                                         {&Config::layers, 0}};
  for (const auto& [member, size] : forgeries) {
    LanguageModelSettings forged = run.settings;
    forged.model.*member = size;
    write_model_files(folder / "m",
                      std::vector<NamedFile>{{"config.json", config_text(forged)},
                                             {"tokenizer.txt", to_text(run.tokenizer->data())}});
    write_model_weights(folder / "m", weights, {});
    EXPECT_THROWS(load_language_model(folder / "m"), kModelDamaged, "config.json: ");
  }
}

TEST(Load, AnEmptyFolderIsNoModel) {
  const TestFolder folder;
  EXPECT_THROWS(load_language_model(folder.path()), kModelMissing, "no model");
}

// Settings that came later have the values that these models were trained with.
TEST(Load, AModelOfBeforeWordsIsReadAsItWas) {
  const TextOptions text =
      settings_from_text(R"({"kind":"language_model","text":{"data":"lines"}})", "c.json").text;
  EXPECT_EQ(text.data, "lines");
  EXPECT_TRUE(text.marks);
  EXPECT_FALSE(text.lower);
  EXPECT_EQ(text.max_length, 0);
}

TEST(Load, AVocabularyOfWordsIsThatOfTheModel) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.tokenizer = "word";
  const LanguageModelRun run = prepare_run(settings);
  TrainingObserver silent;
  train_language_model(Context(2), run, folder / "model", {}, silent);
  const LoadedLanguageModel loaded = load_language_model(folder / "model");
  EXPECT_EQ(loaded.tokenizer->data(), run.tokenizer->data());
  EXPECT_EQ(read_model_file(folder / "model", "vocab.txt"), word_list_text(run.tokenizer->data()));
  TokenizerData larger = run.tokenizer->data();
  larger.words.push_back({"owl", 1});
  write_model_files(folder / "model",
                    std::vector<NamedFile>{{"config.json", config_text(run.settings)},
                                           {"tokenizer.txt", to_text(larger)}});
  const index size = run.settings.model.vocabulary;
  EXPECT_THROWS(load_language_model(folder / "model"), kModelDamaged,
                fmt::format("the tokenizer has {} tokens, the model {}", size + 1, size));
}

}  // namespace
}  // namespace fovea

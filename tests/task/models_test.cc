// SPDX-License-Identifier: Apache-2.0
// fovea/models.h: each kind of model by its content, the results of what the commands call, and the
// same bits for any number of callers.
#include "fovea/models.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "fovea/base/file.h"
#include "fovea/task/classify/text_predictor.h"
#include "fovea/task/embed/embedder.h"
#include "fovea/task/language_model/generate.h"
#include "fovea/task/tag/tag_predictor.h"
#include "fovea/task/translate/line_translator.h"
#include "fovea/tensor/safetensors.h"
#include "tests/support/gguf_file.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"
#include "tests/task/classify/tiny.h"
#include "tests/task/tag/tiny.h"
#include "tests/task/tiny.h"
#include "tests/task/translate/tiny.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

// Numbers that are no pattern.
std::vector<float> numbers(index count, index seed) {
  std::vector<float> values;
  for (index n = 0; n < count; ++n) {
    values.push_back(0.7f * std::sin(static_cast<float>(n * n + 3 * n + 11 * seed)));
  }
  return values;
}

// A llama of one layer whose vocabulary is letters, a newline and the marks of ChatML.
fs::path write_gguf_model(const TestFolder& folder) {
  Texts names = {"<|im_start|>", "<|im_end|>", "\u010A"};
  for (char c = 'a'; c <= 'z'; ++c) names.emplace_back(1, c);
  std::vector<std::int32_t> kinds(names.size(), 1);
  kinds[0] = kinds[1] = 3;
  constexpr std::uint32_t kWidth = 8, kFf = 12;
  const auto vocabulary = static_cast<std::uint64_t>(names.size());
  std::vector<GgufTensorText> tensors;
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> sizes) {
    index count = 1;
    for (const std::uint64_t size : sizes) count *= static_cast<index>(size);
    tensors.push_back(gguf_tensor(name + ".weight", sizes, numbers(count, std::ssize(tensors))));
  };
  add("token_embd", {kWidth, vocabulary});
  add("blk.0.attn_norm", {kWidth});
  for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
    add(std::string("blk.0.") + name, {kWidth, kWidth});
  }
  add("blk.0.ffn_norm", {kWidth});
  add("blk.0.ffn_gate", {kWidth, kFf});
  add("blk.0.ffn_up", {kWidth, kFf});
  add("blk.0.ffn_down", {kFf, kWidth});
  add("output_norm", {kWidth});
  const std::string program =
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
      "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
      "{{ '<|im_start|>assistant\n' }}{% endif %}";
  const std::vector<std::string> pairs = {
      gguf_pair("general.architecture", "llama"),
      gguf_pair("llama.block_count", std::uint32_t{1}),
      gguf_pair("llama.context_length", std::uint32_t{64}),
      gguf_pair("llama.embedding_length", kWidth),
      gguf_pair("llama.feed_forward_length", kFf),
      gguf_pair("llama.attention.head_count", std::uint32_t{2}),
      gguf_pair("llama.attention.layer_norm_rms_epsilon", 1e-5f),
      gguf_pair("tokenizer.ggml.model", "gpt2"),
      gguf_pair("tokenizer.ggml.pre", "smollm"),
      gguf_array("tokenizer.ggml.tokens", names),
      gguf_array("tokenizer.ggml.token_type", kinds),
      gguf_array<std::string>("tokenizer.ggml.merges", {}),
      gguf_pair("tokenizer.ggml.eos_token_id", std::uint32_t{1}),
      gguf_pair("tokenizer.chat_template", std::string_view(program))};
  write_file_atomically(folder / "model.gguf", gguf_file(pairs, tensors));
  return folder / "model.gguf";
}

// A folder of transformers with a BERT of one layer, and a head of two labels where `head` names
// one: "Sequence", "Token".
fs::path write_encoder(const TestFolder& folder, const std::string& head = "") {
  const fs::path model = folder / ("encoder" + head);
  fs::create_directory(model);
  const std::string said =
      head.empty() ? ""
                   : R"("id2label": {"0": "O", "1": "good"}, "architectures": ["BertFor)" + head +
                         R"(Classification"], )";
  write_file_atomically(
      model / "config.json",
      "{" + said +
          R"("model_type": "bert", "vocab_size": 10, "hidden_size": 6, "num_hidden_layers": 1,)"
          R"( "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 16})");
  write_file_atomically(model / "vocab.txt",
                        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\ndog\n##s\n.\n");
  std::vector<NamedTensor> tensors;
  const auto add = [&](const std::string& name, const Shape& shape) {
    tensors.push_back({name, Tensor::of<float>(shape, numbers(shape.size(), std::ssize(tensors)))});
  };
  const auto linear = [&](const std::string& name, index out, index in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  };
  const auto norm = [&](const std::string& name) {
    add(name + ".weight", {6});
    add(name + ".bias", {6});
  };
  add("embeddings.word_embeddings.weight", {10, 6});
  add("embeddings.position_embeddings.weight", {16, 6});
  add("embeddings.token_type_embeddings.weight", {2, 6});
  norm("embeddings.LayerNorm");
  const std::string layer = "encoder.layer.0.";
  for (const char* part : {"query", "key", "value"}) {
    linear(layer + "attention.self." + part, 6, 6);
  }
  linear(layer + "attention.output.dense", 6, 6);
  norm(layer + "attention.output.LayerNorm");
  linear(layer + "intermediate.dense", 8, 6);
  linear(layer + "output.dense", 6, 8);
  norm(layer + "output.LayerNorm");
  if (head == "Sequence") linear("pooler.dense", 6, 6);
  if (!head.empty()) {
    for (NamedTensor& tensor : tensors) tensor.name.insert(0, "bert.");
    linear("classifier", 2, 6);
  }
  write_safetensors(model / "model.safetensors", tensors);
  return model;
}

// What many threads compute with one model, at once and again, each on inputs of its own, is what
// one alone computes.
template <class Compute>
void expect_same_bits_for_concurrent_callers(const Compute& compute) {
  constexpr int kThreads = 6, kTimes = 3;
  std::vector<decltype(compute(0))> alone, found(kThreads * kTimes);
  for (int n = 0; n < kThreads; ++n) alone.push_back(compute(n));
  EXPECT_NE(alone[0], alone[1]);
  std::vector<std::thread> threads;
  for (int n = 0; n < kThreads; ++n) {
    threads.emplace_back([&, n] {
      for (int time = 0; time < kTimes; ++time) {
        const int input = (n + time) % kThreads;
        found[static_cast<std::size_t>(n * kTimes + time)] = compute(input);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int n = 0; n < kThreads * kTimes; ++n) {
    const int input = (n / kTimes + n % kTimes) % kThreads;
    EXPECT_EQ(found[static_cast<std::size_t>(n)], alone[static_cast<std::size_t>(input)]);
  }
}

Texts texts_of(int n) {
  Texts texts;
  for (int i = 0; i <= n; ++i)
    texts.push_back(std::string(i % 3 == 0 ? "A dull" : "What a fine") + " film");
  return texts;
}

class Models : public testing::Test {
 protected:
  const TestFolder folder_;
};

TEST_F(Models, ALanguageModelWritesWhatTheCommandWrites) {
  const fs::path path = tiny_model(folder_, tiny_settings(folder_));
  EXPECT_EQ(models::kind_of(path), models::Kind::kLanguageModel);
  const models::LanguageModel model(path, {.context = Context(2)});
  const LoadedLanguageModel loaded = load_language_model(path);
  const SamplingOptions options{.max_tokens = 30, .seed = 4};
  std::string written;
  const auto write = [&](std::string_view piece) {
    written += piece;
    return true;
  };
  generate_text(Context(1), loaded, "the ", options, write);
  ASSERT_FALSE(written.empty());
  EXPECT_EQ(model.generate("the ", options), written);
  const std::string expected = std::exchange(written, "");
  EXPECT_EQ(model.generate("the ", options, write), expected);
  EXPECT_EQ(written, expected);
  const std::vector<token> ids = model.encode("the cat");
  EXPECT_EQ(ids, loaded.tokenizer->encode("the cat"));
  EXPECT_EQ(model.decode(ids), "the cat");
  EXPECT_EQ(model.logits(ids).shape(), Shape({std::ssize(ids), loaded.settings.model.vocabulary}));
  EXPECT_THROWS(model.chat(), kModelWrongKind, "no chat template");
}

TEST_F(Models, GenerationEndsWhenTheCallerSaysSo) {
  const models::LanguageModel model(write_gguf_model(folder_));
  int pieces = 0;
  const std::string text =
      model.generate("a", {.max_tokens = 30}, [&](std::string_view) { return ++pieces < 3; });
  EXPECT_EQ(pieces, 3);
  EXPECT_LE(text.size(), 3u);
}

TEST_F(Models, AFileOfLlamaIsALanguageModelThatTalks) {
  const fs::path path = write_gguf_model(folder_);
  EXPECT_EQ(models::kind_of(path), models::Kind::kLanguageModel);
  const SamplingOptions options{.max_tokens = 6, .seed = 2};
  models::Chat chat = std::get<models::LanguageModel>(models::load(path)).chat("be", options);
  const LoadedLanguageModel loaded = load_language_model(path);
  Conversation conversation(Context(1), loaded, "be", options);
  for (const char* message : {"hello", "again"}) {
    std::string expected;
    conversation.answer(message, [&](std::string_view piece) {
      expected += piece;
      return true;
    });
    EXPECT_EQ(chat.answer(message), expected);
  }
  const models::LanguageModel narrow(path, {.max_context = 4});
  EXPECT_THROWS(narrow.chat().answer("hello"), kInputFormat, "there is room for 2");
  EXPECT_THROWS(models::Encoder{path}, kModelWrongKind, "no folder of an encoder");
  EXPECT_THROWS(models::LanguageModel(path, {.max_context = 65}), kOptionValue, "max-context");
}

TEST_F(Models, AnEncoderMakesTheVectorsOfTheCommand) {
  const fs::path path = write_encoder(folder_);
  EXPECT_EQ(models::kind_of(path), models::Kind::kEncoder);
  const auto encoder = std::get<models::Encoder>(models::load(path));
  const SentenceModel loaded = load_sentence_model(path);
  Embedder embedder(Context(1), loaded, embed_rules(loaded, {}, {}));
  const Texts texts = {"the cat", "dogs .", "the cat"};
  EXPECT_EQ(to_vector(encoder.embed(texts).rows<float>()),
            to_vector(embedder.embed_all(texts).rows<float>()));
  EXPECT_EQ(encoder.embed({}).shape(), Shape({0, 6}));
  EXPECT_EQ(encoder.width(), 6);
  const std::vector<double> cosines = encoder.similarity("the cat", texts);
  EXPECT_NEAR(cosines[0], 1, 1e-6);
  EXPECT_EQ(cosines[0], cosines[2]);
  EXPECT_LT(cosines[1], 0.999);
  EXPECT_THROWS(models::LanguageModel{path}, kModelWrongKind, "bert");
}

TEST_F(Models, AnEncoderWithAHeadIsAClassifierOrATagger) {
  const auto classifier =
      std::get<models::Classifier>(models::load(write_encoder(folder_, "Sequence")));
  EXPECT_EQ(classifier.labels(), (Texts{"O", "good"}));
  const auto said = classifier.classify({"the cat", "dogs ."});
  EXPECT_NEAR(said[0].values[0] + said[0].values[1], 1, 1e-6);
  EXPECT_NE(said[0].values, said[1].values);
  EXPECT_EQ(said[1].labels[0], said[1].values[1] > said[1].values[0] ? "good" : "O");
  const auto tagger = std::get<models::Tagger>(models::load(write_encoder(folder_, "Token")));
  const auto tagged = tagger.tag({"the dogs."});
  EXPECT_EQ(tagged[0].words, (Texts{"the", "dogs", "."}));
  EXPECT_THAT(tagged[0].tags[0], testing::Each(testing::AnyOf("O", "good")));
}

TEST_F(Models, AClassifierSaysLabelsAndProbabilities) {
  const fs::path path = trained(folder_, tiny_classifier(folder_));
  EXPECT_EQ(models::kind_of(path), models::Kind::kClassifier);
  const auto classifier = std::get<models::Classifier>(models::load(path));
  EXPECT_EQ(classifier.labels(), (Texts{"bad", "good"}));
  const LoadedClassifier loaded = load_classifier(path);
  const Texts texts = texts_of(4);
  const Tensor expected = TextPredictor(Context(1), loaded).predict_all(texts);
  const auto found = classifier.classify(texts);
  ASSERT_EQ(found.size(), texts.size());
  for (std::size_t n = 0; n < texts.size(); ++n) {
    const float* const row = expected.rows<float>()[static_cast<index>(n)];
    EXPECT_EQ(found[n].values, (std::vector<double>{row[0], row[1]}));
    EXPECT_EQ(found[n].labels, Texts{row[1] > row[0] ? "good" : "bad"});
  }
  EXPECT_THROWS(models::Tagger{path}, kModelWrongKind, "tagger");
}

TEST_F(Models, ARegressionSaysNumbersInTheirUnit) {
  std::string rows;
  for (int n = 0; n < 40; ++n) rows += n % 2 == 0 ? "1000\tmany and more\n" : "2000\tfew\n";
  ClassifierSettings settings = tiny_classifier(folder_);
  settings.text.train = {write_file(folder_, "numbers.tsv", rows)};
  settings.text.regression = true;
  const models::Classifier classifier(trained(folder_, settings));
  const auto found = classifier.classify({"many and more", "few"});
  EXPECT_THAT(found[0].labels, testing::IsEmpty());
  EXPECT_NEAR(found[0].values[0], 1000, 300);
  EXPECT_NEAR(found[1].values[0], 2000, 300);
}

TEST_F(Models, ATaggerTagsEachColumnOfATextOrOfWords) {
  const fs::path path = trained(folder_, tiny_columns(folder_));
  EXPECT_EQ(models::kind_of(path), models::Kind::kTagger);
  const models::Tagger tagger(path);
  EXPECT_EQ(tagger.columns().size(), 2u);
  const auto of_text = tagger.tag({"Ada saw New York."});
  EXPECT_EQ(of_text[0].words, (Texts{"Ada", "saw", "New", "York", "."}));
  const auto of_words = tagger.tag_words({of_text[0].words, {"Ada"}, {}});
  EXPECT_EQ(of_words[0].tags, of_text[0].tags);
  EXPECT_EQ(of_words[0].tags.size(), 2u);
  EXPECT_EQ(of_words[1].tags[0][0], "N");
  EXPECT_EQ(of_words[1].tags[1][0], "B-person");
  EXPECT_EQ(of_words[2].tags, (std::vector<Texts>{{}, {}}));
}

TEST_F(Models, ASegmenterFindsWords) {
  const models::Tagger segmenter(trained(folder_, tiny_segmenter(folder_)));
  EXPECT_TRUE(segmenter.segments());
  const auto found = segmenter.tag({"我们在北京", ""});
  EXPECT_EQ(found[0].words, (Texts{"我们", "在", "北京"}));
  EXPECT_THAT(found[1].words, testing::IsEmpty());
  EXPECT_THROWS(segmenter.tag_words({{"a"}}), kModelWrongKind, "segmenter");
}

TEST_F(Models, ATranslatorTranslatesLines) {
  const fs::path path = trained(folder_, tiny_translator(folder_));
  EXPECT_EQ(models::kind_of(path), models::Kind::kTranslator);
  const models::Translator translator(path);
  const LoadedTranslator loaded = load_translator(path);
  LineTranslator lines(Context(1), *loaded.model, loaded.vocabulary, {}, "lines");
  const Texts texts = {"one two", "", "three"};
  EXPECT_EQ(translator.translate(texts), *translate_all(lines, texts, [] { return false; }));
  EXPECT_THROWS(translator.translate(texts, {.beam = 0}), kOptionValue, "beam");
  std::string longer;
  for (int n = 0; n < 20; ++n) longer += "one ";
  EXPECT_THROWS(translator.translate({"one", longer}), kInputFormat, "lines:2");
  EXPECT_THROWS(models::load(path, {.adapters = {"peft"}}), kUsage, "no adapters of translators");
}

TEST_F(Models, WhatIsNoModelIsSaid) {
  EXPECT_THROWS(models::kind_of(folder_ / "nowhere"), kModelMissing, "nowhere");
  EXPECT_THROWS(models::load(folder_ / "nowhere"), kModelMissing, "nowhere");
}

TEST_F(Models, ConcurrentCallersGetTheBitsOfOneAlone) {
  {
    const models::LanguageModel model(write_gguf_model(folder_), {.context = Context(3)});
    expect_same_bits_for_concurrent_callers([&](int n) {
      const std::string text =
          model.generate(Texts{"ab", "cd", "e", "fgh", "i", "jk"}[static_cast<std::size_t>(n)],
                         {.max_tokens = 20, .seed = static_cast<std::uint64_t>(n)});
      return text + model.chat().answer("hello") +
             std::to_string(model.logits(model.encode("abc")).rows<float>()[2][n]);
    });
  }
  {
    const models::Encoder encoder(write_encoder(folder_), {.context = Context(3)});
    expect_same_bits_for_concurrent_callers([&](int n) {
      return to_vector(
          encoder.embed(Texts(static_cast<std::size_t>(n + 1), "the dogs")).rows<float>());
    });
  }
  const TestFolder classifier_folder, tagger_folder, translator_folder;
  const models::Classifier classifier(
      trained(classifier_folder, tiny_classifier(classifier_folder)), {.context = Context(3)});
  expect_same_bits_for_concurrent_callers([&](int n) {
    std::vector<double> values;
    for (const auto& one : classifier.classify(texts_of(n))) {
      values.insert(values.end(), one.values.begin(), one.values.end());
    }
    return values;
  });
  const models::Tagger tagger(trained(tagger_folder, tiny_tagger(tagger_folder)),
                              {.context = Context(3)});
  expect_same_bits_for_concurrent_callers([&](int n) {
    Texts words;
    for (const auto& one : tagger.tag(Texts(static_cast<std::size_t>(n + 1), "Ada saw New York"))) {
      words.insert(words.end(), one.tags[0].begin(), one.tags[0].end());
    }
    return words;
  });
  const models::Translator translator(
      trained(translator_folder, tiny_translator(translator_folder)), {.context = Context(3)});
  expect_same_bits_for_concurrent_callers([&](int n) {
    Texts lines(static_cast<std::size_t>(n + 1), "one three two");
    lines.back() = n % 2 == 0 ? "four" : "two two";
    return translator.translate(lines);
  });
}

}  // namespace
}  // namespace fovea

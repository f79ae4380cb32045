// SPDX-License-Identifier: Apache-2.0
// Models of the architecture llama, written as GGUF files and read again.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <optional>

#include "fovea/base/file.h"
#include "fovea/grad/tape.h"
#include "fovea/pretrained/pretrained.h"
#include "tests/pretrained/golden_numbers.h"
#include "tests/pretrained/llama_golden.h"
#include "tests/support/folder.h"
#include "tests/support/gguf_file.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

// Rows j and j + half of each head become 2 j and 2 j + 1, as llama.cpp's converter has it.
std::vector<float> permuted(const std::vector<float>& values, index heads, index columns) {
  const index rows = std::ssize(values) / columns, head = rows / heads;
  std::vector<float> result(values.size());
  for (index n = 0; n < rows; ++n) {
    const index j = n % head % (head / 2), half = n % head / (head / 2);
    const index to = n / head * head + 2 * j + half;
    std::copy_n(values.begin() + n * columns, columns, result.begin() + to * columns);
  }
  return result;
}

// A model as it stands in a file, whose parts a test may change.
struct LlamaFile {
  std::vector<std::string> pairs;
  std::vector<GgufTensorText> tensors;

  explicit LlamaFile(const GoldenLlama& golden) {
    set_pairs(golden);
    set_tensors(golden);
  }

  std::string bytes() const { return gguf_file(pairs, tensors); }

  GgufTensorText& tensor(std::string_view name) {
    for (GgufTensorText& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::out_of_range(std::string(name));
  }

  // Replaces the pair of this key, or adds it; an empty text removes it.
  void set(std::string_view key, const std::string& pair) {
    std::erase_if(pairs, [&](const std::string& one) { return one.starts_with(gguf_text(key)); });
    if (!pair.empty()) pairs.push_back(pair);
  }

 private:
  void set_pairs(const GoldenLlama& g) {
    const auto number = [](int value) { return static_cast<std::uint32_t>(value); };
    std::vector<std::string> names;
    for (int n = 0; n < kGoldenVocabulary; ++n)
      names.push_back(std::string(1, static_cast<char>('a' + n)));
    names[0] = "<|im_end|>";
    std::vector<std::int32_t> kinds(names.size(), 1);
    kinds[0] = 3;
    pairs = {gguf_pair("general.architecture", "llama"),
             gguf_pair("llama.block_count", number(kGoldenLayers)),
             gguf_pair("llama.context_length", std::uint32_t{16}),
             gguf_pair("llama.embedding_length", number(kGoldenWidth)),
             gguf_pair("llama.feed_forward_length", number(kGoldenFf)),
             gguf_pair("llama.attention.head_count", number(g.heads)),
             gguf_pair("llama.attention.head_count_kv", number(g.kv_heads)),
             gguf_pair("llama.attention.key_length", number(g.head_dim)),
             gguf_pair("llama.attention.value_length", number(g.head_dim)),
             gguf_pair("llama.rope.dimension_count", number(g.head_dim)),
             gguf_pair("llama.rope.freq_base", static_cast<float>(g.base)),
             gguf_pair("llama.attention.layer_norm_rms_epsilon", static_cast<float>(g.epsilon)),
             gguf_pair("tokenizer.ggml.model", "gpt2"),
             gguf_pair("tokenizer.ggml.pre", "smollm"),
             gguf_array("tokenizer.ggml.tokens", names),
             gguf_array("tokenizer.ggml.token_type", kinds),
             gguf_array<std::string>("tokenizer.ggml.merges", {}),
             gguf_pair("tokenizer.ggml.eos_token_id", std::uint32_t{0})};
  }

  void set_tensors(const GoldenLlama& g) {
    GoldenNumbers numbers;
    const index q = g.heads * g.head_dim, kv = g.kv_heads * g.head_dim;
    const auto matrix = [&](const std::string& name, index rows, index columns, index heads = 0) {
      std::vector<float> values = numbers.next(rows * columns);
      if (heads > 0) values = permuted(values, heads, columns);
      tensors.push_back(gguf_tensor(
          name, {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows)}, values));
    };
    const auto gains = [&](const std::string& name) {
      std::vector<float> values = numbers.next(kGoldenWidth);
      for (float& value : values) value += 1;
      tensors.push_back(gguf_tensor(name, {kGoldenWidth}, values));
    };
    matrix("token_embd.weight", kGoldenVocabulary, kGoldenWidth);
    for (int n = 0; n < kGoldenLayers; ++n) {
      const std::string layer = "blk." + std::to_string(n) + ".";
      gains(layer + "attn_norm.weight");
      matrix(layer + "attn_q.weight", q, kGoldenWidth, g.heads);
      matrix(layer + "attn_k.weight", kv, kGoldenWidth, g.kv_heads);
      matrix(layer + "attn_v.weight", kv, kGoldenWidth);
      matrix(layer + "attn_output.weight", kGoldenWidth, q);
      gains(layer + "ffn_norm.weight");
      matrix(layer + "ffn_gate.weight", kGoldenFf, kGoldenWidth);
      matrix(layer + "ffn_up.weight", kGoldenFf, kGoldenWidth);
      matrix(layer + "ffn_down.weight", kGoldenWidth, kGoldenFf);
    }
    gains("output_norm.weight");
    if (!g.tied) matrix("output.weight", kGoldenVocabulary, kGoldenWidth);
  }
};

class Llama : public testing::Test {
 protected:
  PretrainedLanguageModel load(const LlamaFile& file, const PretrainedOptions& options = {}) {
    write_file_atomically(path_, file.bytes());
    return load_gguf(path_, options);
  }

  template <class Change>
  auto load_changed(Change&& change) {
    LlamaFile file(kGoldenLlamas[0]);
    change(file);
    return load(file);
  }

 private:
  const TestFolder folder_;
  const std::filesystem::path path_ = folder_ / "m.gguf";
};

struct GoldenBatch {
  std::vector<std::int32_t> ids{kGoldenIds.begin(), kGoldenIds.end()}, targets, offsets;

  GoldenBatch() {
    targets.assign(ids.begin() + 1, ids.end());
    targets.push_back(-1);
    offsets = {0, static_cast<std::int32_t>(ids.size())};
  }
  static Vec<const std::int32_t> view(const std::vector<std::int32_t>& of) {
    return {of.data(), std::ssize(of)};
  }
  TokenBatch batch() const {
    return {.ids = view(ids), .targets = view(targets), .offsets = view(offsets)};
  }
};

void expect_golden(const PretrainedLanguageModel& loaded, const GoldenLlama& golden) {
  Tape tape(Context(1), TapeMode::kInference);
  const GoldenBatch batch;
  const std::vector<float> logits =
      to_vector(loaded.model->logits(tape, batch.batch()).value<float>());
  ASSERT_EQ(logits.size(), golden.logits.size());
  double largest = 0;
  for (const double value : golden.logits) largest = std::max(largest, std::abs(value));
  for (std::size_t n = 0; n < logits.size(); ++n) {
    EXPECT_NEAR(logits[n], golden.logits[n], 2e-5 * largest) << n;
  }
}

TEST_F(Llama, LogitsAreThoseOfTransformers) {
  for (const GoldenLlama& golden : kGoldenLlamas) {
    SCOPED_TRACE(golden.name);
    expect_golden(load(LlamaFile(golden)), golden);
  }
}

// Angles of a quarter of the base, each divided by what makes it that of the whole base.
TEST_F(Llama, AnglesAreDividedByTheTensorOfTheFile) {
  for (const GoldenLlama& golden : kGoldenLlamas) {
    LlamaFile file(golden);
    const char* base = "llama.rope.freq_base";
    file.set(base, gguf_pair(base, static_cast<float>(golden.base / 4)));
    const auto pairs = static_cast<std::uint64_t>(golden.head_dim / 2);
    std::vector<float> divisors;
    for (std::uint64_t c = 0; c < pairs; ++c) {
      divisors.push_back(std::pow(4.F, static_cast<float>(c) / static_cast<float>(pairs)));
    }
    file.tensors.push_back(gguf_tensor("rope_freqs.weight", {pairs}, divisors));
    expect_golden(load(file), golden);
    const char* type = "llama.rope.scaling.type";
    file.set(type, gguf_pair(type, "linear"));
    EXPECT_THROWS(load(file), kModelWrongKind, "rope_freqs.weight beside rope.scaling.type");
    file.set(type, "");
    divisors[0] = -1;
    file.tensor("rope_freqs.weight") = gguf_tensor("rope_freqs.weight", {pairs}, divisors);
    EXPECT_THROWS(load(file), kModelDamaged, "expected numbers over 0, got -1");
    file.tensor("rope_freqs.weight") =
        gguf_tensor("rope_freqs.weight", {1}, std::vector<float>{1.F});
    EXPECT_THROWS(load(file), kModelDamaged, "half the columns of a head");
  }
}

// Halves as they lie: the logits of the same values widened, token by token and all at once.
TEST_F(Llama, WeightsStayInTheTypeOfTheFile) {
  LlamaFile file(kGoldenLlamas[0]);
  for (GgufTensorText& tensor : file.tensors) {
    if (tensor.sizes.size() < 2 || tensor.name == "blk.1.ffn_up.weight") continue;
    std::string halves;
    for (std::size_t at = 0; at < tensor.values.size(); at += 4) {
      halves += tensor.values.substr(at + 2, 2);  // a bfloat16 is the upper half of a float
    }
    tensor.type = 30;
    tensor.values = halves;
  }
  const PretrainedLanguageModel kept = load(file, {.weights = WeightTypes::kAsTheyLie});
  const PretrainedLanguageModel wide = load(file);
  index in_blocks = 0;
  for (const Parameter* one : kept.model->parameters()) in_blocks += one->blocks != nullptr;
  EXPECT_GE(in_blocks, 2 * kGoldenLayers + 1);
  const GoldenBatch batch;
  Tape tape(Context(1), TapeMode::kInference), other(Context(1), TapeMode::kInference);
  const std::vector<float> logits =
      to_vector(kept.model->logits(tape, batch.batch()).value<float>());
  const std::vector<float> expected =
      to_vector(wide.model->logits(other, batch.batch()).value<float>());
  for (std::size_t n = 0; n < logits.size(); ++n) EXPECT_NEAR(logits[n], expected[n], 1e-5) << n;
  LanguageModelDecoder decoder(Context(1), *kept.model);
  for (std::size_t n = 0; n < kGoldenIds.size(); ++n) {
    const std::int32_t id = kGoldenIds[n];
    const Vec<const float> next = decoder.append({&id, 1});
    for (std::size_t v = 0; v < kGoldenVocabulary; ++v) {
      EXPECT_NEAR(next[static_cast<index>(v)], expected[n * kGoldenVocabulary + v], 1e-5);
    }
  }
  Tape training{Context(1)};
  EXPECT_THROWS(kept.model->loss(training, batch.batch()), kShape, "has no gradient");
}

TEST_F(Llama, KeysOfScaledPositionsAreRead) {
  const auto config = [&](const char* type, float base = 10000) {
    return load_changed([&](LlamaFile& file) {
             const char *key = "llama.rope.scaling.type", *freq = "llama.rope.freq_base";
             if (type != nullptr) file.set(key, gguf_pair(key, type));
             file.set(freq, gguf_pair(freq, base));
             file.set("llama.rope.scaling.factor", gguf_pair("llama.rope.scaling.factor", 4.F));
             file.set("llama.rope.scaling.attn_factor",
                      gguf_pair("llama.rope.scaling.attn_factor", .5F));
           })
        .config;
  };
  // llama.cpp takes a factor without a type as linear, and multiplies by attn_factor in any case.
  for (const char* const type : {"linear", static_cast<const char*>(nullptr)}) {
    EXPECT_THAT(divisors_of(config(type)), testing::Each(4));
    EXPECT_THAT(divisors_of(config(type)), testing::Not(testing::IsEmpty()));
    EXPECT_EQ(config(type).rotary_amplitude, .5);
  }
  EXPECT_THAT(divisors_of(config("none")), testing::IsEmpty());
  EXPECT_EQ(config("none").rotary_amplitude, .5);
  const auto yarn = config("yarn");
  EXPECT_GT(divisors_of(yarn).back(), divisors_of(yarn).front());
  EXPECT_DOUBLE_EQ(yarn.rotary_amplitude, .5 * (.1 * std::log(4.0) + 1));
  EXPECT_THROWS(config("yarn", 1), kModelWrongKind, "with yarn it is over 1");
  EXPECT_THROWS(config("longrope"), kModelWrongKind, "fovea knows none, linear and yarn");
}

TEST_F(Llama, ADecoderWithItsCacheGivesTheSameLogits) {
  for (const GoldenLlama& golden : kGoldenLlamas) {
    const PretrainedLanguageModel loaded = load(LlamaFile(golden));
    LanguageModelDecoder decoder(Context(1), *loaded.model);
    for (std::size_t n = 0; n < kGoldenIds.size(); ++n) {
      const std::int32_t id = kGoldenIds[n];
      const Vec<const float> logits = decoder.append({&id, 1});
      for (std::size_t v = 0; v < kGoldenVocabulary; ++v) {
        EXPECT_NEAR(logits[static_cast<index>(v)], golden.logits[n * kGoldenVocabulary + v], 5e-5);
      }
    }
  }
}

TEST_F(Llama, GradientsAreThoseOfTorch) {
  for (const GoldenLlama& golden : kGoldenLlamas) {
    SCOPED_TRACE(golden.name);
    const PretrainedLanguageModel loaded = load(LlamaFile(golden));
    Tape tape{Context(1)};
    const GoldenBatch batch;
    const double scale = 1.0 / static_cast<double>(kGoldenIds.size() - 1);
    const Variable loss = loaded.model->loss(tape, batch.batch(), {.scale = scale});
    EXPECT_NEAR(loss.value<float>()[0][0], golden.loss, 1e-5 * golden.loss);
    tape.backward(loss);
    ASSERT_EQ(loaded.model->parameters().size(), golden.gradients.size());
    for (Parameter* const parameter : loaded.model->parameters()) {
      const auto found =
          std::find_if(golden.gradients.begin(), golden.gradients.end(),
                       [&](const auto& one) { return one.parameter == parameter->name; });
      ASSERT_NE(found, golden.gradients.end()) << parameter->name;
      const std::vector<float> gradient = to_vector(parameter->finished_gradient().vec<float>());
      const double squares =
          std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0);
      EXPECT_NEAR(squares, found->squares, 2e-4 * found->squares) << parameter->name;
    }
  }
}

TEST_F(Llama, TextsEndAsTheFileSays) {
  const PretrainedLanguageModel loaded = load_changed([](LlamaFile& file) {
    file.set("tokenizer.ggml.add_bos_token", gguf_pair("tokenizer.ggml.add_bos_token", true));
    file.set("tokenizer.ggml.bos_token_id",
             gguf_pair("tokenizer.ggml.bos_token_id", std::uint32_t{2}));
    file.set("tokenizer.ggml.eos_token_id",
             gguf_pair("tokenizer.ggml.eos_token_id", std::uint32_t{3}));
    file.set("tokenizer.chat_template", gguf_pair("tokenizer.chat_template", "{% x %}"));
  });
  EXPECT_EQ(loaded.text.begin, 2);
  EXPECT_THAT(loaded.text.ends, testing::ElementsAre(3, 0));  // and <|im_end|>
  EXPECT_EQ(loaded.text.chat_template, "{% x %}");
  EXPECT_EQ(load(LlamaFile(kGoldenLlamas[0])).text.begin, kNoToken);
}

// Files of Llama 3 often do not say it, and llama.cpp begins with the mark all the same.
TEST_F(Llama, TextsBeginWithTheMarkWhereTheirCutsSaySo) {
  const auto begin = [&](const char* pre, std::optional<bool> says) {
    return load_changed([&](LlamaFile& file) {
             file.set("tokenizer.ggml.pre", gguf_pair("tokenizer.ggml.pre", pre));
             file.set("tokenizer.ggml.bos_token_id",
                      gguf_pair("tokenizer.ggml.bos_token_id", std::uint32_t{2}));
             if (!says) return;
             file.set("tokenizer.ggml.add_bos_token",
                      gguf_pair("tokenizer.ggml.add_bos_token", *says));
           })
        .text.begin;
  };
  EXPECT_EQ(begin("llama-bpe", std::nullopt), 2);
  EXPECT_EQ(begin("llama-bpe", false), kNoToken);
  EXPECT_EQ(begin("qwen2", std::nullopt), kNoToken);
}

TEST_F(Llama, AShorterContextIsThatOfTheModel) {
  EXPECT_EQ(load(LlamaFile(kGoldenLlamas[0])).config.block, 16);
  EXPECT_EQ(load(LlamaFile(kGoldenLlamas[0]), {.max_context = 5}).config.block, 5);
  EXPECT_THROWS(load(LlamaFile(kGoldenLlamas[0]), {.max_context = 17}), kOptionValue,
                "max-context");
}

TEST_F(Llama, WhatIsNotKnownIsNamed) {
  const auto with = [&](std::string_view key, const std::string& pair) {
    return load_changed([&](LlamaFile& file) { file.set(key, pair); });
  };
  const auto text = [&](std::string_view key, const char* value) {
    return with(key, gguf_pair(key, value));
  };
  const auto number = [&](std::string_view key, std::uint32_t value) {
    return with(key, gguf_pair(key, value));
  };
  EXPECT_THROWS(text("general.architecture", "mamba"), kModelWrongKind,
                "the architecture 'mamba' is not one");
  EXPECT_THROWS(text("llama.rope.scaling.type", "longrope"), kModelWrongKind,
                "fovea knows none, linear and yarn, got 'longrope'");
  EXPECT_THROWS(number("llama.expert_count", 8), kModelWrongKind, "'llama.expert_count' = '8'");
  EXPECT_THROWS(number("llama.rope.dimension_count", 2), kModelWrongKind, "of which 2 are turned");
  EXPECT_THROWS(text("tokenizer.ggml.model", "bert"), kModelWrongKind, "tokenizer.ggml.model");
  EXPECT_THROWS(text("tokenizer.ggml.pre", "other"), kModelWrongKind,
                "tokenizer.ggml.pre: 'other'");
  EXPECT_THROWS(with("llama.attention.head_count_kv",
                     gguf_array<std::int32_t>("llama.attention.head_count_kv", {1, 2})),
                kModelWrongKind, "layers of different sizes");
  EXPECT_THROWS(
      load_changed([](LlamaFile& file) {
        file.tensors.push_back(gguf_tensor("blk.0.attn_q.bias", {16}, std::vector<float>(16)));
      }),
      kModelWrongKind, "tensor 'blk.0.attn_q.bias' has no place in the architecture");
  EXPECT_EQ(number("llama.expert_count", 0).config.layers, kGoldenLayers);  // says nothing
  EXPECT_EQ(text("llama.rope.scaling.type", "none").config.layers, kGoldenLayers);
}

TEST_F(Llama, AFileThatContradictsItselfIsRefused) {
  const auto number = [&](std::string_view key, std::uint32_t value) {
    return load_changed([&](LlamaFile& file) { file.set(key, gguf_pair(key, value)); });
  };
  const auto without = [&](std::string_view key) {
    return load_changed([&](LlamaFile& file) { file.set(key, ""); });
  };
  for (const char* key :
       {"general.architecture", "llama.block_count", "llama.embedding_length",
        "llama.feed_forward_length", "llama.context_length", "llama.attention.head_count",
        "tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.pre"}) {
    EXPECT_THROWS(without(key), kModelDamaged, std::string("lack ") + key);
  }
  EXPECT_THROWS(number("llama.block_count", 0), kModelDamaged, "llama.block_count: expected 1 to");
  EXPECT_THROWS(number("llama.block_count", 3), kModelDamaged, "more values than");
  EXPECT_THROWS(number("llama.block_count", 65536), kModelDamaged, "more values than");
  EXPECT_THROWS(number("llama.block_count", 1), kModelWrongKind, "tensor 'blk.1.");
  EXPECT_THROWS(number("llama.feed_forward_length", 19), kModelDamaged, "tensor blk.0.ffn");
  EXPECT_THROWS(number("llama.feed_forward_length", 2'000'000'000), kModelDamaged,
                "more values than");
  EXPECT_THROWS(number("tokenizer.ggml.eos_token_id", 14), kModelDamaged, "token 14 of 14");
  EXPECT_THROWS(load_changed([](LlamaFile& file) {
                  const char* key = "llama.rope.freq_base";
                  file.set(key, gguf_pair(key, -1.F));
                }),
                kModelDamaged, "llama.rope.freq_base: expected a number over 0");
  EXPECT_THROWS(
      load_changed([](LlamaFile& file) { file.tensor("token_embd.weight").name = "other"; }),
      kModelDamaged, "token_embd.weight is missing");
  EXPECT_THROWS(
      load_changed([](LlamaFile& file) { file.tensor("blk.1.attn_v.weight").name = "other"; }),
      kModelDamaged, "tensor blk.1.attn_v.weight is missing");
  EXPECT_THROWS(load_changed([](LlamaFile& file) {
                  std::vector<std::uint64_t>& sizes = file.tensor("blk.0.ffn_down.weight").sizes;
                  std::swap(sizes[0], sizes[1]);
                }),
                kModelDamaged,
                "tensor blk.0.ffn_down.weight is [20, 12]; its sizes ask for [12, 20]");
}

}  // namespace
}  // namespace fovea

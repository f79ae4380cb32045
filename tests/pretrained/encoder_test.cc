// SPDX-License-Identifier: Apache-2.0
// Encoders of every architecture, written as transformers writes them and read again.
#include "fovea/pretrained/encoder.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "fovea/base/file.h"
#include "fovea/config/json.h"
#include "fovea/grad/ops.h"
#include "fovea/pretrained/encoder_table.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/tensor/safetensors.h"
#include "tests/pretrained/encoder_golden.h"
#include "tests/pretrained/golden_numbers.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

const GoldenEncoder& golden(std::string_view name) {
  return *std::ranges::find(kGoldenEncoders, name, &GoldenEncoder::name);
}

BertHead head_of(const GoldenEncoder& golden) {
  return golden.name.ends_with("texts") ? BertHead::kText : BertHead::kTokens;
}

std::vector<NamedTensor> tensors_of(const GoldenEncoder& golden) {
  GoldenNumbers numbers;
  std::vector<NamedTensor> tensors;
  for (const GoldenEncoder::Stored& stored : golden.tensors) {
    const Shape shape(std::vector<index>(stored.shape.begin(), stored.shape.end()));
    std::vector<float> values = numbers.next(shape.size());
    const bool is_norm = stored.name.find("norm") != stored.name.npos ||
                         stored.name.find("Norm") != stored.name.npos;
    if (is_norm && stored.name.ends_with("weight")) {
      for (float& value : values) value += 1;
    }
    tensors.push_back({std::string(stored.name), Tensor::of<float>(shape, values)});
  }
  return tensors;
}

class Encoders : public testing::Test {
 protected:
  // A folder with this model, whose parts a test may change.
  struct Files {
    std::string config;
    std::vector<NamedTensor> tensors;

    // Replaces a member of config.json, or adds it; an empty text removes it.
    void set(const std::string& key, const std::string& value) {
      Json::Object object = parse_json(config, {"config.json"}).object();
      std::erase_if(object, [&](const auto& member) { return member.first == key; });
      if (!value.empty()) object.emplace_back(key, parse_json(value, {"a test"}));
      config = Json(std::move(object)).line();
    }
    NamedTensor& tensor(std::string_view name) {
      return *std::ranges::find(tensors, name, &NamedTensor::name);
    }
    void rename(std::string_view from, std::string to) { tensor(from).name = std::move(to); }
    void remove(std::string_view name) {
      std::erase_if(tensors, [&](const NamedTensor& one) { return one.name == name; });
    }
  };

  static Files files_of(std::string_view name) {
    return {std::string(golden(name).config), tensors_of(golden(name))};
  }

  LoadedEncoder load(const Files& files, BertHead head) const {
    write_file_atomically(folder_ / "config.json", files.config);
    write_file_atomically(folder_ / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
    std::filesystem::remove(folder_ / "model.safetensors");
    write_safetensors(folder_ / "model.safetensors", files.tensors);
    return load_encoder(folder_.path(), head);
  }
  LoadedEncoder load(std::string_view name) const {
    return load(files_of(name), head_of(golden(name)));
  }
  template <class Change>
  LoadedEncoder load_changed(std::string_view name, Change&& change) const {
    Files files = files_of(name);
    change(files);
    return load(files, head_of(golden(name)));
  }

  const TestFolder folder_;
};

Variable logits_of(Tape& tape, const Bert& model, const std::vector<std::int32_t>& ids) {
  auto* const offsets = tape.saved<std::int32_t>(2);
  offsets[0] = 0;
  offsets[1] = static_cast<std::int32_t>(ids.size());
  const TextRows texts{.ids = {ids.data(), std::ssize(ids)}, .offsets = {offsets, 2}};
  return model.logits(tape, model.forward(tape, {.texts = texts}));
}

void expect_logits(const LoadedEncoder& loaded, const GoldenEncoder& golden) {
  Tape tape(Context(1), TapeMode::kInference);
  const std::vector<float> found =
      to_vector(logits_of(tape, loaded.model, golden.ids).value<float>());
  ASSERT_EQ(found.size(), golden.logits.size());
  double largest = 0;
  for (const double value : golden.logits) largest = std::max(largest, std::abs(value));
  for (std::size_t n = 0; n < found.size(); ++n) {
    EXPECT_NEAR(found[n], golden.logits[n], 2e-5 * largest) << n;
  }
}

// Positions behind padding, types of one kind, epsilons, no pooler, biases by distance: each is one
// of these models, and wrong logits show where it is not as in transformers.
TEST_F(Encoders, LogitsAreThoseOfTransformers) {
  for (const GoldenEncoder& one : kGoldenEncoders) {
    SCOPED_TRACE(one.name);
    expect_logits(load(one.name), one);
  }
}

TEST_F(Encoders, GradientsAreThoseOfTransformers) {
  for (const GoldenEncoder& one : kGoldenEncoders) {
    SCOPED_TRACE(one.name);
    LoadedEncoder loaded = load(one.name);
    Tape tape{Context(1)};
    const Variable y = logits_of(tape, loaded.model, one.ids);
    tape.backward(mean(tape, multiply(tape, y, y)));
    const Json config = parse_json(one.config, {"config.json"});
    const EncoderArchitecture& row = encoder_architecture(ForeignObject(config, "config.json"));
    std::size_t compared = 0;
    for (Parameter* parameter : loaded.model.parameters()) {
      double expected = 0;
      for (std::string name : encoder_tensors(row, head_of(one), parameter->name)) {
        name = name.starts_with('.') ? name.substr(1) : std::string(row.prefix) + name;
        expected += std::ranges::find(one.tensors, name, &GoldenEncoder::Stored::name)->squares;
        ++compared;
      }
      if (expected < 0) continue;
      const std::vector<float> gradient = to_vector(parameter->finished_gradient().vec<float>());
      const double squares =
          std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0);
      EXPECT_NEAR(squares, expected, 2e-4 * expected) << parameter->name;
    }
    EXPECT_EQ(compared, one.tensors.size());
  }
}

TEST_F(Encoders, AFolderSaysWhichHeadItHas) {
  EXPECT_EQ(load("bert, texts").model.config().head, BertHead::kText);
  const Files texts = files_of("bert, texts");
  EXPECT_THROWS(load(texts, BertHead::kTokens), kModelWrongKind, "...ForTokenClassification here");
  const Files tokens = files_of("bert, tokens");
  EXPECT_THROWS(load(tokens, BertHead::kText), kModelWrongKind,
                "...ForSequenceClassification here");
  const LoadedEncoder bare = load(texts, BertHead::kNone);  // without its head, but with its pooler
  EXPECT_EQ(bare.model.config().head, BertHead::kNone);
  EXPECT_TRUE(bare.model.config().pools);
  EXPECT_FALSE(load(tokens, BertHead::kNone).model.config().pools);
}

TEST_F(Encoders, AHeadIsWhole) {
  const auto changed = [&](std::string_view name, auto change) { load_changed(name, change); };
  EXPECT_THROWS(changed("bert, texts", [](Files& f) { f.remove("classifier.bias"); }),
                kModelDamaged, "classifier.bias");
  EXPECT_THROWS(changed("bert, texts", [](Files& f) { f.remove("bert.pooler.dense.weight"); }),
                kModelDamaged, "pooler.dense.weight");
  EXPECT_THROWS(changed("distilbert, texts", [](Files& f) { f.remove("pre_classifier.bias"); }),
                kModelDamaged, "pre_classifier.bias");
  EXPECT_THROWS(changed("bert, texts",
                        [](Files& f) { f.rename("classifier.weight", "classifier.0.weight"); }),
                kModelDamaged, "classifier.weight");
  EXPECT_THROWS(changed("bert, texts",
                        [](Files& f) {
                          f.tensors.push_back({"classifier.norm.weight", Tensor::empty({8})});
                        }),
                kModelWrongKind, "classifier.norm.weight' is not one of bert's");
  EXPECT_THROWS(
      changed("bert, texts", [](Files& f) { f.set("id2label", R"({"0": "a", "1": "b"})"); }),
      kModelDamaged, "3 outputs, config.json 2 labels");
  // What belongs to other heads is left out.
  changed("bert, tokens", [](Files& f) {
    f.tensors.push_back({"bert.pooler.dense.weight", Tensor::empty({8, 8})});
    f.tensors.push_back({"cls.predictions.bias", Tensor::empty({24})});
  });
}

TEST_F(Encoders, LabelsAreNamedByTheirNumbers) {
  const auto labels = [&](const std::string& names, const std::string& count = "") {
    return load_changed("bert, texts",
                        [&](Files& f) {
                          f.set("id2label", names);
                          f.set("num_labels", count);
                        })
        .labels;
  };
  using testing::ElementsAre;
  EXPECT_THAT(labels(R"({"2": "c", "0": "a", "1": "b"})"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(labels("", "3"), ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  EXPECT_THROWS(labels(R"({"0": "a", "1": "b", "3": "c"})"), kModelDamaged, "'3'");
  EXPECT_THROWS(labels(R"({"0": "a", "1": "b", "x": "c"})"), kModelDamaged, "'x'");
  EXPECT_THROWS(labels(R"({"0": "a", "1": "b", "01": "c"})"), kModelDamaged, "'01'");
  EXPECT_THROWS(labels(R"({"0": "a", "1": "b", "2": "a"})"), kModelDamaged, "no other number");
  EXPECT_THROWS(labels(R"({"0": "a", "1": 1, "2": "b"})"), kModelDamaged, "'1'");
  EXPECT_THROWS(labels("{}"), kModelDamaged, "id2label");
  EXPECT_THROWS(labels(R"({"0": "a", "1": "b", "2": "c"})", "4"), kModelDamaged, "num_labels");
}

TEST_F(Encoders, TheProblemSaysWhatOutputsMean) {
  const auto problem = [&](const std::string& said) {
    return load_changed("bert, texts", [&](Files& f) { f.set("problem_type", said); }).problem;
  };
  EXPECT_EQ(problem(""), EncoderProblem::kOneLabel);
  EXPECT_EQ(problem("null"), EncoderProblem::kOneLabel);
  EXPECT_EQ(problem(R"("multi_label_classification")"), EncoderProblem::kAnyLabels);
  EXPECT_EQ(problem(R"("single_label_classification")"), EncoderProblem::kOneLabel);
  EXPECT_THROWS(problem(R"("regression")"), kModelWrongKind, "one number");
  EXPECT_THROWS(problem(R"("ranking")"), kModelWrongKind, "ranking");
  const auto one = [&](const std::string& said) {
    return load_changed("bert, texts", [&](Files& f) {
      f.set("problem_type", said);
      f.set("id2label", R"({"0": "score"})");
      f.tensor("classifier.weight").tensor = Tensor::of<float>({1, 8}, std::vector<float>(8, 1));
      f.tensor("classifier.bias").tensor = Tensor::of<float>({1}, std::vector<float>{2});
    });
  };
  EXPECT_EQ(one("").problem, EncoderProblem::kNumber);
  EXPECT_TRUE(one("").labels.empty());
  EXPECT_EQ(one(R"("regression")").problem, EncoderProblem::kNumber);
  EXPECT_EQ(one(R"("multi_label_classification")").problem, EncoderProblem::kAnyLabels);
  EXPECT_THROWS(one(R"("single_label_classification")"), kModelDamaged, "problem_type");
}

// SentencePiece's file says no marks, and its ids are not those of XLM-RoBERTa.
TEST_F(Encoders, SubwordsAreReadFromTokenizerJsonAlone) {
  write_file_atomically(folder_ / "tokenizer.model", "a file");
  EXPECT_EQ(load("roberta, texts").tokenizer->size(), 6);  // of vocab.txt
}

// A key that could change what is computed is named.
TEST_F(Encoders, KeysThatAreNotKnownAreRefused) {
  const auto refused = [&](std::string_view name, const std::string& key, const std::string& value,
                           ErrorCode code) {
    try {
      load_changed(name, [&](Files& f) { f.set(key, value); });
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << key;
      EXPECT_NE(std::string_view(error.what()).find(key), std::string_view::npos) << error.what();
      return;
    }
    ADD_FAILURE() << key << " was read";
  };
  for (const GoldenEncoder& one : kGoldenEncoders) {
    SCOPED_TRACE(one.name);
    refused(one.name, "my_own_key", "7", ErrorCode::kModelWrongKind);
    refused(one.name, "is_decoder", "true", ErrorCode::kModelWrongKind);
    refused(one.name, "position_embedding_type", R"("relative_key")", ErrorCode::kModelWrongKind);
    refused(one.name, "max_position_embeddings", "0", ErrorCode::kModelDamaged);
  }
  refused("distilbert, texts", "hidden_size", "8", ErrorCode::kModelWrongKind);
  refused("distilbert, texts", "type_vocab_size", "2", ErrorCode::kModelWrongKind);
  refused("mpnet, texts", "type_vocab_size", "2", ErrorCode::kModelWrongKind);
  refused("mpnet, texts", "relative_attention_num_buckets", "16", ErrorCode::kModelWrongKind);
}

}  // namespace
}  // namespace fovea

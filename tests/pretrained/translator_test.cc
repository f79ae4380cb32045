// SPDX-License-Identifier: Apache-2.0
// Translators of transformers, written as it writes them and read again.
#include "fovea/pretrained/translator.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "fovea/grad/ops.h"
#include "fovea/nn/embedding.h"
#include "tests/pretrained/marian_support.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

GoldenPairs pairs_of(const ForeignTranslator& translator) {
  return GoldenPairs(kMarianSources, kMarianTargets, translator.rules.begin);
}

class ForeignTranslators : public testing::Test {
 protected:
  ForeignTranslator load(const MarianFiles& files) const {
    files.write(folder_ / "model");
    return load_foreign_translator(folder_ / "model");
  }
  template <class Change>
  ForeignTranslator changed(std::string_view name, Change&& change) const {
    MarianFiles files(name);
    change(files);
    return load(files);
  }
  // config.json with another value.
  ForeignTranslator with(const std::string& key, const std::string& value) const {
    return changed("one table", [&](MarianFiles& f) { f.set("config.json", key, value); });
  }
  ForeignTranslator searched(const std::string& key, const std::string& value) const {
    return changed("one table",
                   [&](MarianFiles& f) { f.set("generation_config.json", key, value); });
  }

  const TestFolder folder_;
};

// Halves of sines and cosines, scaled embeddings, norms behind sums, the bias of the logits: each
// is one of these models, and wrong logits show where it is not as in transformers.
TEST_F(ForeignTranslators, LogitsOfABatchAreThoseOfTransformers) {
  for (const GoldenMarian& one : kGoldenMarians) {
    SCOPED_TRACE(one.name);
    const ForeignTranslator loaded = load(MarianFiles(one));
    Tape tape(Context(2), TapeMode::kInference);
    expect_near(to_vector(loaded.model->logits(tape, pairs_of(loaded).view()).value<float>()),
                one.logits);
  }
}

// Token by token, with what is kept of those before.
TEST_F(ForeignTranslators, LogitsOfStepsAreThoseOfTransformers) {
  for (const GoldenMarian& one : kGoldenMarians) {
    SCOPED_TRACE(one.name);
    const ForeignTranslator loaded = load(MarianFiles(one));
    expect_near(logits_of_steps(loaded, pairs_of(loaded)), one.logits);
  }
}

// In double, for some of these gradients are small differences.
TEST_F(ForeignTranslators, GradientsAreThoseOfTransformers) {
  for (const GoldenMarian& one : kGoldenMarians) {
    SCOPED_TRACE(one.name);
    const ForeignTranslator loaded = load(MarianFiles(one));
    const GoldenPairs pairs = pairs_of(loaded);
    const Translator model = in_double(loaded);
    Tape tape{Context(1)};
    const Variable y = model.logits(tape, pairs.view());
    tape.backward(mean(tape, multiply(tape, y, y)));
    const Json config = parse_json(one.config, {"config.json"});
    const TranslatorArchitecture& row =
        translator_architecture(ForeignObject(config, "config.json"));
    std::size_t compared = 0;
    for (Parameter* parameter : model.parameters()) {
      double expected = 0;
      for (const std::string& name : translator_tensors(row, loaded.config, parameter->name)) {
        expected += std::ranges::find(one.tensors, name, &GoldenMarian::Stored::name)->squares;
        ++compared;
      }
      if (expected < 0) continue;
      parameter->gather_rows();
      const std::vector<double> gradient = to_vector(parameter->finished_gradient().vec<double>());
      const double squares =
          std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0);
      EXPECT_NEAR(squares, expected, 1e-4 * expected + 1e-16) << parameter->name;
    }
    EXPECT_EQ(compared, one.tensors.size());
  }
}

TEST_F(ForeignTranslators, ATableHasAnyOfItsNames) {
  const auto logits = [&](const ForeignTranslator& loaded) {
    Tape tape(Context(1), TapeMode::kInference);
    return to_vector(loaded.model->logits(tape, pairs_of(loaded).view()).value<float>());
  };
  const std::vector<float> expected = logits(load(MarianFiles("one table")));
  for (const char* const name : {"model.encoder.embed_tokens.weight",
                                 "model.decoder.embed_tokens.weight", "lm_head.weight"}) {
    EXPECT_EQ(logits(changed("one table",
                             [&](MarianFiles& f) { f.tensor("model.shared.weight").name = name; })),
              expected);
    EXPECT_EQ(logits(changed("one table",
                             [&](MarianFiles& f) {
                               f.tensors.push_back({name, f.tensor("model.shared.weight").tensor});
                             })),
              expected);
  }
  const std::vector<float> separate = logits(load(MarianFiles("a table for each side")));
  EXPECT_EQ(logits(changed("a table for each side",
                           [](MarianFiles& f) {
                             f.tensor("model.decoder.embed_tokens.weight").name = "lm_head.weight";
                           })),
            separate);
}

// Without a bias of the logits it is zero.
TEST_F(ForeignTranslators, TheBiasOfTheLogitsMayBeMissing) {
  for (const char* const name : {"one table", "and one for the logits"}) {
    const auto logits = [&](const std::function<void(MarianFiles&)>& change) {
      const ForeignTranslator loaded = changed(name, change);
      Tape tape(Context(1), TapeMode::kInference);
      return to_vector(loaded.model->logits(tape, pairs_of(loaded).view()).value<float>());
    };
    EXPECT_EQ(logits([](MarianFiles& f) { f.remove("final_logits_bias"); }),
              logits([](MarianFiles& f) {
                for (float& x : f.tensor("final_logits_bias").tensor.vec<float>()) x = 0;
              }));
  }
}

TEST_F(ForeignTranslators, PositionsOfAFileAreTheSinesAndCosines) {
  const auto with_positions = [&](SinusoidOrder order) {
    return changed("one table", [&](MarianFiles& f) {
      f.tensors.push_back({"model.decoder.embed_positions.weight",
                           sinusoidal_positions(20, {.width = 8, .order = order})});
    });
  };
  with_positions(SinusoidOrder::kSinCos);
  EXPECT_THROWS(with_positions(SinusoidOrder::kInterleaved), kModelWrongKind,
                "model.decoder.embed_positions.weight holds");
}

TEST_F(ForeignTranslators, WhatIsNotKnownIsRefusedByItsName) {
  for (const auto& [key, value] : {std::pair{"normalize_before", "true"},
                                   {"normalize_embedding", "true"},
                                   {"add_final_layer_norm", "true"},
                                   {"static_position_embeddings", "false"},
                                   {"is_encoder_decoder", "false"},
                                   {"activation_function", "\"mish\""},
                                   {"decoder_attention_heads", "4"},
                                   {"decoder_ffn_dim", "16"},
                                   {"num_hidden_layers", "3"},
                                   {"tie_word_embeddings", "false"},
                                   {"decoder_vocab_size", "23"},
                                   {"rotary_dim", "4"}}) {
    EXPECT_THROWS(with(key, value), kModelWrongKind, key);
  }
  EXPECT_THROWS(with("d_model", "7"), kModelDamaged, "config.json");
  EXPECT_THROWS(with("d_model", "\"8\""), kModelDamaged, "d_model");
  EXPECT_THROWS(with("vocab_size", "1000000"), kModelDamaged, "model.shared.weight is [24, 8]");
  EXPECT_THROWS(with("decoder_layers", "900"), kModelDamaged, "too few for 902 layers");
  with("encoder_layerdrop", "0.1");  // of training
  EXPECT_THROWS(
      changed("one table",
              [](MarianFiles& f) {
                f.tensors.push_back({"model.encoder.layer_norm.weight", Tensor::empty({1})});
              }),
      kModelWrongKind, "model.encoder.layer_norm.weight' is not one of marian's");
  EXPECT_THROWS(
      changed("one table",
              [](MarianFiles& f) { f.remove("model.decoder.layers.1.encoder_attn.k_proj.bias"); }),
      kModelDamaged, "1.encoder_attn.k_proj.bias");
}

TEST_F(ForeignTranslators, PicklesAreRefusedByTheirName) {
  MarianFiles("one table").write(folder_ / "model");
  std::filesystem::rename(folder_ / "model/model.safetensors", folder_ / "model/pytorch_model.bin");
  EXPECT_THROWS(load_foreign_translator(folder_ / "model"), kModelWrongKind, "pytorch_model.bin");
}

TEST_F(ForeignTranslators, RulesOfGenerationAreRead) {
  const TranslationRules rules = load(MarianFiles("a table for each side")).rules;
  EXPECT_EQ(rules.begin, 19);
  EXPECT_EQ(rules.end, 0);
  EXPECT_EQ(rules.beams, 3);
  EXPECT_EQ(rules.length_penalty, 0.6);
  EXPECT_EQ(rules.early_stop, EarlyStop::kYes);
  EXPECT_EQ(rules.most_tokens, 13);
  EXPECT_TRUE(rules.forced_end);
  EXPECT_FALSE(rules.renormalizes);
  // Without the file, config.json says it.
  const TranslationRules older = changed("one table", [](MarianFiles& f) {
                                   f.texts.erase("generation_config.json");
                                   f.set("config.json", "num_beams", "6");
                                 }).rules;
  EXPECT_EQ(older.beams, 6);
  EXPECT_EQ(older.most_tokens, 0);
  for (const auto& [key, value] : {std::pair{"no_repeat_ngram_size", "3"},
                                   {"repetition_penalty", "1.2"},
                                   {"forced_bos_token_id", "5"},
                                   {"early_stopping", "\"often\""},
                                   {"bad_words_ids", "[[3, 4]]"},
                                   {"forced_eos_token_id", "5"},
                                   {"do_sample", "true"}}) {
    EXPECT_THROWS(searched(key, value), kModelWrongKind, key);
  }
  EXPECT_THROWS(searched("bad_words_ids", "[[24]]"), kModelDamaged, "ids from 0 to 23");
  EXPECT_THROWS(searched("eos_token_id", "[0, 3]"), kModelWrongKind, "forced_eos_token_id");
  EXPECT_THROWS(searched("eos_token_id", "23"), kModelWrongKind, "eos_token_id");
}

TEST_F(ForeignTranslators, IsToldFromOtherFolders) {
  MarianFiles("one table").write(folder_ / "model");
  EXPECT_TRUE(is_foreign_translator(folder_ / "model"));
  EXPECT_FALSE(is_foreign_translator(folder_.path()));
  MarianFiles other("one table");
  other.set("config.json", "model_type", "\"bart\"");
  other.write(folder_ / "other");
  EXPECT_FALSE(is_foreign_translator(folder_ / "other"));
}

}  // namespace
}  // namespace fovea

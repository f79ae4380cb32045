// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/translator_memory.h"

#include <gtest/gtest.h>

#include "tests/model/tape_bytes.h"
#include "tests/model/translator_support.h"

namespace fovea {
namespace {

TranslatorConfig wide() {
  TranslatorConfig c = translator_config();
  c.width = 64;
  c.heads = 4;
  c.ff = 0;
  c.block = 48;
  c.vocabulary = c.target_vocabulary = 300;
  return c;
}

std::vector<TranslatorConfig> cases() {
  std::vector<TranslatorConfig> all(8, wide());
  all[1].norm_position = NormPosition::kPost;
  all[1].decoder_layers = 4;
  all[2].encoder_layers = 6;
  all[2].dropout = 0.1;
  all[3].encoder = "conv3,bilstm:32";
  all[4].kv_heads = 2;
  all[4].qk_norm = true;
  all[4].share_embeddings = true;
  all[5].tie = false;
  all[5].norm = NormKind::kRms;
  for (const std::size_t n : {6, 7}) {
    all[n].kind = TranslatorKind::kBahdanauGru;
    all[n].encoder_layers = TranslatorConfig().encoder_layers;
  }
  all[7].dropout = 0.1;
  all[7].encoder = "bigru:48,bigru:48";
  return all;
}

void expect_activations(const TranslatorConfig& c, index from, index to, TapeMode mode,
                        Precision precision) {
  SCOPED_TRACE(testing::Message() << from << " " << to << " " << int(mode) << " " << c.encoder
                                  << " " << precision_name(precision));
  const OwnedPairs batch(std::vector<std::pair<index, index>>(8, {from, to}), c);
  const Translator model(c, 1);
  Tape tape(Context(2).with(precision), mode);
  for (int step = 0; step < 2; ++step) {
    tape.reset();
    const Variable loss = model.loss(tape, batch.view());
    if (mode == TapeMode::kTrain) tape.backward(loss);
  }
  const TranslationLoad load{{.tokens = 8 * from, .mode = mode, .precision = precision},
                             {.tokens = 8 * to, .mode = mode, .precision = precision}};
  const double share = bytes_used(tape) / activation_bytes(c, load);
  EXPECT_LT(share, 1.02);
  EXPECT_GT(share, 0.6);
}

// A forecast must hold, and not be far too large.
TEST(TranslatorMemory, ActivationsAreThoseOfATape) {
  for (const TranslatorConfig& c : cases()) {
    for (const auto& [from, to] : {std::pair{40, 20}, {20, 40}}) {
      expect_activations(c, from, to, TapeMode::kTrain, Precision::kFloat32);
      expect_activations(c, from, to, TapeMode::kInference, Precision::kFloat32);
      expect_activations(c, from, to, TapeMode::kTrain, Precision::kBFloat16);
    }
  }
}

// By hand: for each token of the target q and o of 4 heads of width 16, for each of the source k
// and v, and as many gradients, of two bytes each.
TEST(TranslatorMemory, AttentionToTheSourceRoundsItsRowsInTraining) {
  const auto scratch = [](index from, index to, TapeMode mode, Precision precision) {
    const TranslationLoad load{{.tokens = from, .mode = mode, .precision = precision},
                               {.tokens = to, .mode = mode, .precision = precision}};
    TranslatorConfig c = wide();
    c.vocabulary = c.target_vocabulary = 3;  // so that the loss takes less
    return scratch_bytes(Context(1), c, load);
  };
  const double row = has_bfloat16_products() ? 2 * 2 * 2 * 4 * 16 : 0;
  const auto bytes = [&](index from, index to) {
    return scratch(from, to, TapeMode::kTrain, Precision::kBFloat16);
  };
  EXPECT_EQ(bytes(4000, 1000) - bytes(3000, 1000), 1000 * row);
  EXPECT_EQ(bytes(1000, 4000) - bytes(1000, 3000), row > 0 ? 1000 * row : 1000 * sizeof(float));
  for (const auto& [mode, precision] : {std::pair{TapeMode::kTrain, Precision::kFloat32},
                                        {TapeMode::kInference, Precision::kBFloat16}}) {
    EXPECT_EQ(scratch(4000, 1000, mode, precision), scratch(3000, 1000, mode, precision));
  }
}

TEST(TranslatorMemory, ScratchGrowsWithThreadsAndGradientsWithTables) {
  const TranslatorConfig c = wide();
  const TranslationLoad load{{384}, {384}},
      read{{8000, TapeMode::kInference}, {8000, TapeMode::kInference}};
  EXPECT_GT(scratch_bytes(Context(4), c, load), scratch_bytes(Context(2), c, load));
  EXPECT_GT(packed_bytes(c, read), 0);
  TranslatorConfig untied = c;
  untied.vocabulary = untied.target_vocabulary = 100000;
  untied.tie = false;
  // Of a table that only lookups read, an update has few rows.
  EXPECT_LT(gradient_bytes(untied, 100, 100), 4.0 * static_cast<double>(parameter_count(untied)));
  EXPECT_EQ(gradient_bytes(c, 10000, 10000) > 0, true);
}

}  // namespace
}  // namespace fovea

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

// A forecast must hold, and not be far too large.
TEST(TranslatorMemory, ActivationsAreThoseOfATape) {
  for (const TranslatorConfig& c : cases()) {
    for (const auto& [from, to] : {std::pair{40, 20}, {20, 40}}) {
      const OwnedPairs batch(std::vector<std::pair<index, index>>(8, {from, to}), c);
      const Translator model(c, 1);
      for (const TapeMode mode : {TapeMode::kTrain, TapeMode::kInference}) {
        Tape tape(Context(2), mode);
        for (int step = 0; step < 2; ++step) {
          tape.reset();
          const Variable loss = model.loss(tape, batch.view());
          if (mode == TapeMode::kTrain) tape.backward(loss);
        }
        const TranslationLoad load{{8 * from, mode}, {8 * to, mode}};
        const double share = bytes_used(tape) / activation_bytes(c, load);
        EXPECT_LT(share, 1.02) << from << " " << to << " " << int(mode) << c.encoder;
        EXPECT_GT(share, 0.6) << from << " " << to << " " << int(mode) << c.encoder;
      }
    }
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

// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/classifier_memory.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "tests/model/classifier_support.h"
#include "tests/model/tape_bytes.h"

namespace fovea {
namespace {

ClassifierConfig base(const char* encoder) {
  ClassifierConfig c = classifier_config(ClassifierTask::kSingleLabel, encoder);
  c.heads = 4;
  c.width = 64;
  c.ff = 0;
  c.block = 48;
  c.vocabulary = 500;
  return c;
}

std::vector<ClassifierConfig> cases() {
  std::vector<ClassifierConfig> all;
  for (const char* encoder :
       {"", "attention:no-output:plain", "attention", "transformer:layers=2", "bilstm:32",
        "conv3,attention:window=8", "conv5+bigru:32", "bisru:32", "conv3:48+conv3:40"}) {
    all.push_back(base(encoder));
  }
  all.push_back(base("attention:no-output:plain"));
  all.back().position = PositionKind::kLearned;
  all.back().block = 4 * 48;  // a position for every second token
  for (const char* encoder : {"conv3:48+conv3:40", "conv3:48"}) {
    all.push_back(base(encoder));
    all.back().dropout = 0.1;
  }
  for (const char* encoder : {"", "conv3"}) {
    all.push_back(base(encoder));
    all.back().ngrams = 3;
    all.back().buckets = 1000;
    all.back().ngram_width = 40;
    all.back().output_dropout = encoder[0] == 0 ? 0.5 : 0;
  }
  for (const auto& [pooling, name] : enum_names(PoolingKind{})) {
    all.push_back(base("transformer"));
    all.back().pooling = pooling;
    all.push_back(base(""));
    all.back().pooling = pooling;
    all.back().output_dropout = 0.5;
  }
  return all;
}

TEST(ClassifierMemory, ActivationsAreThoseOfATape) {
  for (const ClassifierConfig& c : cases()) {
    const index texts = 8 * 48 / c.block;
    OwnedTexts batch(std::vector<index>(static_cast<std::size_t>(texts), c.block), c);
    std::iota(batch.tokens.ids.begin(), batch.tokens.ids.end(), 0);  // no token twice
    const Classifier model(c, 1);
    for (const TapeMode mode : {TapeMode::kTrain, TapeMode::kInference}) {
      Tape tape(Context(2), mode);
      for (int step = 0; step < 2; ++step) {
        tape.reset();
        const Variable loss = model.loss(tape, batch.view());
        if (mode == TapeMode::kTrain) tape.backward(loss);
      }
      const double share = bytes_used(tape) / activation_bytes(c, {texts, {8 * 48, mode}});
      const bool trains = mode == TapeMode::kTrain;
      EXPECT_LT(share, 1.02) << c.encoder << " " << to_string(c.pooling) << " " << trains;
      EXPECT_GT(share, 0.96) << c.encoder << " " << to_string(c.pooling) << " " << trains;
    }
  }
}

TEST(ClassifierMemory, PackedFormsAreCopiesOfTheMatrices) {
  const double one = packed_bytes(base("attention"), {1000, {8000, TapeMode::kInference}});
  EXPECT_GE(one, 4.0 * (4 * 64 * 64 + 3 * 64));
  EXPECT_LT(one, 4.0 * (4 * 64 * 64 + 16 * 64) * 1.2);
  EXPECT_EQ(packed_bytes(base("attention"), {8, {80, TapeMode::kTrain}}), 0);
}

TEST(ClassifierMemory, ScratchGrowsWithThreads) {
  const ClassifierConfig c = base("transformer");
  const TextLoad load{8, {384}};
  EXPECT_GT(scratch_bytes(Context(4), c, load), scratch_bytes(Context(2), c, load));
}

}  // namespace
}  // namespace fovea

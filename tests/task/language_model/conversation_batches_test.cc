// SPDX-License-Identifier: Apache-2.0
// Conversations of any lengths in one batch (--data chat): each is a sequence of its own, from
// position 0 on, sees no other, and nothing is computed on padding. So its loss has the bits that
// it has alone, and a batch is as long as its conversations together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fovea/data/batcher.h"
#include "fovea/model/language_model.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

constexpr index kLengths[] = {130, 7, 64, 2, 65, 200, 3, 31};
constexpr token kVocabulary = 40;

// As read_conversations() makes them: a slice for each, and answers alone are counted.
Sequences conversations() {
  Sequences all;
  for (const index length : kLengths) {
    all.slices.push_back({std::ssize(all.stream), length});
    for (index n = 0; n <= length; ++n) {
      all.stream.push_back(static_cast<token>((7 * n + length) % kVocabulary));
      all.counted.push_back(n == length || n % 3 != 0);
    }
  }
  return all;
}

LanguageModelConfig config_of(PositionKind position) {
  LanguageModelConfig config;
  config.vocabulary = kVocabulary;
  config.width = 16;
  config.heads = 4;
  config.layers = 2;
  config.block = 256;
  config.position = position;
  return config;
}

TokenBatch view_of(const Batch& batch) {
  return {.ids = batch.ids,
          .targets = batch.targets,
          .offsets = batch.offsets,
          .samples = batch.samples};
}

std::vector<double> losses_of(const LanguageModel& model, const Batch& batch, int threads) {
  Tape tape(Context(threads), TapeMode::kInference);
  return model.losses_of_rows(tape, model.rows(tape, view_of(batch)), view_of(batch));
}

TEST(ConversationBatches, PackedAndAloneHaveTheSameBits) {
  const Sequences all = conversations();
  for (const auto& [position, name] : enum_names(PositionKind())) {
    const LanguageModel model(config_of(position), 3);
    const EvaluationBatches together(all, std::ssize(all.slices)), apart(all, 1);
    ASSERT_EQ(together.size(), 1);
    std::vector<double> alone;
    for (index i = 0; i < apart.size(); ++i) {
      alone.push_back(losses_of(model, apart[i], 1).at(0));
    }
    for (const int threads : {1, 3}) {
      EXPECT_EQ(losses_of(model, together[0], threads), alone) << name;
    }
  }
}

TEST(ConversationBatches, ABatchHasNoPadding) {
  const Sequences all = conversations();
  const EvaluationBatches together(all, std::ssize(all.slices));
  index sum = 0;
  for (const index length : kLengths) sum += length;
  EXPECT_EQ(std::ssize(together[0].ids), sum);
  EXPECT_EQ(together.largest_batch(), sum);
}

// The update of a batch is that of its conversations, one after another.
TEST(ConversationBatches, GradientsAddUp) {
  const Sequences all = conversations();
  const LanguageModel model(config_of(PositionKind::kRotary), 3);
  const auto gradients = [&](const EvaluationBatches& set) {
    std::vector<float> sums;
    for (Parameter* const one : model.parameters()) one->clear_gradient();
    for (index i = 0; i < set.size(); ++i) {
      const Batch batch = set[i];
      Tape tape(Context(2));
      tape.backward(model.loss(tape, view_of(batch)));
    }
    for (Parameter* const one : model.parameters()) {
      const std::vector<float> values = to_vector(one->finished_gradient().vec<float>());
      sums.insert(sums.end(), values.begin(), values.end());
    }
    return sums;
  };
  const std::vector<float> together = gradients({all, std::ssize(all.slices)}),
                           apart = gradients({all, 1});
  ASSERT_EQ(together.size(), apart.size());
  double largest = 0, apart_by = 0;
  for (std::size_t n = 0; n < apart.size(); ++n) {
    largest = std::max(largest, std::abs(static_cast<double>(apart[n])));
    apart_by = std::max(apart_by, std::abs(static_cast<double>(together[n]) - apart[n]));
  }
  EXPECT_GT(largest, 1);
  EXPECT_LT(apart_by, 1e-5 * largest);
}

}  // namespace
}  // namespace fovea

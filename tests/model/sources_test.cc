// SPDX-License-Identifier: Apache-2.0
// Where the book's language models compute something else than they say: --compat repeats it, and
// without --compat it is right (docs/articles).
#include <gtest/gtest.h>

#include <cmath>

#include "tests/model/support.h"

namespace fovea {
namespace {

std::vector<float> logits_of(const LanguageModel& model, const TokenBatch& batch) {
  Tape tape(Context(2), TapeMode::kInference);
  return to_vector(model.logits(tape, batch).value<float>());
}

// D13, D14, D15: --compat of the attention RNN reaches its layer: each of the first two changes the
// logits, and with both they do not depend on the last token; `state-is-attention` changes what is
// generated alone.
TEST(Sources, D13ToD15CompatRepeatsTheDefects) {
  const OwnedBatch batch({6}, 11);
  const auto run = [&](std::string compat, std::int32_t last) {
    LanguageModelConfig c = small_config();
    c.kind = LanguageModelKind::kAttentionRnn;
    c.position = PositionKind::kNone;
    c.heads = 1;
    c.compat = std::move(compat);
    c.init = InitScheme::kSource;
    OwnedBatch other = batch;
    other.ids.back() = last;
    const auto logits = logits_of(LanguageModel(c, 1), other.view());
    return std::vector<float>(logits.end() - 11, logits.end());
  };
  EXPECT_NE(run("", 3), run("", 4));
  EXPECT_NE(run("sum-weights", 3), run("sum-weights", 4));
  EXPECT_NE(run("sum-weights", 3), run("", 3));
  EXPECT_NE(run("history-only", 3), run("", 3));
  EXPECT_EQ(run("sum-weights,history-only", 3), run("sum-weights,history-only", 4));
  EXPECT_EQ(run("all", 3), run("all", 4));
  EXPECT_EQ(run("state-is-attention", 3), run("", 3));
}

// D15, in generation: what is written depends on how the tokens come in calls.
TEST(Sources, D15CompatBreaksATextInTwo) {
  const OwnedBatch batch({7}, 11);
  const auto equal = [&](std::string compat) {
    LanguageModelConfig c = small_config();
    c.kind = LanguageModelKind::kAttentionRnn;
    c.position = PositionKind::kNone;
    c.compat = std::move(compat);
    c.init = InitScheme::kSource;
    const LanguageModel model(c, 1);
    LanguageModelDecoder once(Context(1), model), twice(Context(1), model);
    const auto all = to_vector(once.append({batch.ids.data(), 7}));
    twice.append({batch.ids.data(), 4});
    return to_vector(twice.append({batch.ids.data() + 4, 3})) == all;
  };
  EXPECT_TRUE(equal(""));
  EXPECT_FALSE(equal("state-is-attention"));
}

// D18: --compat=ln-unbiased is the norm of the source, by std + eps.
TEST(Sources, D18CompatIsTheUnbiasedNorm) {
  const OwnedBatch batch({6, 3}, 11);
  const auto run = [&](std::string compat, LayerNormVariant variant) {
    LanguageModelConfig c = small_config();
    c.compat = std::move(compat);
    c.ln_variant = variant;
    return logits_of(LanguageModel(c, 1), batch.view());
  };
  const auto standard = run("", LayerNormVariant::kStandard);
  const auto unbiased = run("", LayerNormVariant::kUnbiased);
  EXPECT_NE(standard, unbiased);
  EXPECT_EQ(run("ln-unbiased", LayerNormVariant::kStandard), unbiased);
}

// D19: the Transformer takes batches of any size, without padding: each sequence has the logits
// that it has alone, and the loss is the mean over all tokens. (The published one takes one
// sentence, pads it, and reports the loss of the last.)
TEST(Sources, D19TheTransformerTakesAnyBatch) {
  const LanguageModelConfig c = source_config();
  const LanguageModel model(c, 1);
  const OwnedBatch batch({40, 1, 17, 40, 5}, c.vocabulary);
  const auto all = logits_of(model, batch.view());
  double sum = 0;
  for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
    const std::int32_t begin = batch.offsets[s], n = batch.offsets[s + 1] - begin;
    const std::int32_t own[] = {0, n};
    const TokenBatch one{{batch.ids.data() + begin, n}, {batch.targets.data() + begin, n}, own, {}};
    const auto alone = logits_of(model, one);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + begin * c.vocabulary)) << s;
    Tape tape(Context(1), TapeMode::kInference);
    sum += double{model.loss(tape, one).value<float>()[0][0]};
  }
  Tape tape(Context(1), TapeMode::kInference);
  EXPECT_NEAR(double{model.loss(tape, batch.view()).value<float>()[0][0]}, sum, 1e-6 * sum);
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "fovea/reference/gradcheck.h"
#include "tests/model/forms.h"
#include "tests/model/support.h"
#include "tests/support/part_range.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using Logits = std::vector<float>;

class EveryModel : public testing::TestWithParam<LanguageModelConfig> {};

LanguageModel small_model(LanguageModelConfig c) {
  c.width = 4;
  c.ff = 5;
  c.vocabulary = 5;
  LanguageModel model(c, 1, DType::kFloat64);
  for (Parameter* p : model.parameters()) {  // a fresh model is too flat to tell errors apart
    Random random(3, RandomUse::kTest, p->value.size());
    const double least = has_range(p->name) ? 0.1 : -1;
    for (double& x : p->value.vec<double>()) x = random.uniform(least, 1);
  }
  return model;
}

TEST_P(EveryModel, GradientIsThatOfTheLoss) {
  const LanguageModel model = small_model(GetParam());
  const OwnedBatch batch({3, 0, 5}, 5);
  const auto report = check_gradients(Context(2), model.parameters(), [&](Tape& tape) {
    return model.loss(tape, batch.view(), {.scale = 0.2, .dropout = {1, 2, 0}});
  });
  EXPECT_LE(report.error, 1e-7) << report.where;
}

// Each sequence has a factor of its own; without factors the sum is the loss.
TEST_P(EveryModel, GradientWithAFactorForEachSequence) {
  const LanguageModel model = small_model(GetParam());
  const OwnedBatch batch({3, 1, 5}, 5);
  const double factors[] = {0.7, -0.3, 2};
  const auto report = check_gradients(Context(2), model.parameters(), [&](Tape& tape) {
    const Variable rows = model.rows(tape, batch.view(), {.dropout = {1, 2, 0}});
    return model.loss_of_rows(tape, rows, batch.view(), {factors, 3});
  });
  EXPECT_LE(report.error, 1e-7) << report.where;
  Tape tape(Context(2), TapeMode::kInference);
  const std::vector<double> losses =
      model.losses_of_rows(tape, model.rows(tape, batch.view()), batch.view());
  ASSERT_EQ(losses.size(), 3u);
  const double whole = model.loss(tape, batch.view()).value<double>()[0][0];
  EXPECT_NEAR(losses[0] + losses[1] + losses[2], whole, 1e-12 * whole);
}

Logits all_logits(const LanguageModel& model, std::vector<std::int32_t> ids) {
  Tape tape(Context(2), TapeMode::kInference);
  const std::int32_t offsets[] = {0, static_cast<std::int32_t>(ids.size())};
  TokenBatch batch{.ids = {ids.data(), offsets[1]}, .offsets = {offsets, 2}};
  return to_vector(model.logits(tape, batch).value<float>());
}

// One token at a time, with a cache: the bits of the whole window at once, past `block` too.
TEST_P(EveryModel, DecodesToTheBitsOfTheWholeWindow) {
  const LanguageModel model(GetParam(), 1);
  const index V = model.config().vocabulary, block = model.config().block;
  LanguageModelDecoder decoder(Context(2), model);
  std::vector<std::int32_t> tokens{3, 1, 4};
  Vec<const float> next = decoder.append({tokens.data(), 3});
  for (int step = 0; step < 20; ++step) {
    const auto start = tokens.begin() + LanguageModelDecoder::window_start(decoder.size(), block);
    const Logits whole = all_logits(model, {start, tokens.end()});
    ASSERT_EQ(to_vector(next), Logits(whole.end() - V, whole.end())) << tokens.size();
    const auto best = std::max_element(next.begin(), next.end()) - next.begin();
    tokens.push_back(static_cast<std::int32_t>((best + step) % V));
    next = decoder.append({&tokens.back(), 1});
  }
}

// Every position, score and norm whose decoding has the bits of the whole.
std::vector<LanguageModelConfig> forms_with_windows() {
  std::vector<LanguageModelConfig> all;
  const auto add = [&](std::string_view window) -> LanguageModelConfig& {
    LanguageModelConfig& c = all.emplace_back(small_config());
    c.block = 700;
    c.window = window;
    return c;
  };
  for (const auto& [position, name] : enum_names(PositionKind())) add("20,70").position = position;
  for (const auto& [score, name] : enum_names(AttentionScoreKind())) {
    auto& c = add("127,128");
    c.score = score;
    c.position = PositionKind::kRotary;
  }
  add("1,0").attention_norm = AttentionNormKind::kSigmoid;
  add("300").log_n_scale = true;
  auto& grouped = add("30,20");
  grouped.kv_heads = 1;
  grouped.qk_norm = grouped.sink = true;
  return all;
}

// From token `first` on, one at a time, the logits are those of the whole.
void expect_goes_on(const LanguageModel& model, const OwnedBatch& text, index first,
                    const Logits& whole, const std::string& what) {
  const index V = model.config().vocabulary, end = static_cast<index>(text.ids.size());
  LanguageModelDecoder decoder(Context(2), model);
  decoder.append({text.ids.data(), first});
  for (index n = first; n < end; ++n) {
    const Logits next = to_vector(decoder.append({text.ids.data() + n, 1}));
    const auto at = whole.begin() + n * V;
    ASSERT_EQ(next, Logits(at, at + V)) << what << " " << n;
  }
}

// Longer than a cache of its window, so that it drops rows: the same bits as with all of them.
TEST(LanguageModelDecoder, WithAWindowDropsOldRowsWithoutATrace) {
  for (const LanguageModelConfig& c : forms_with_windows()) {
    const LanguageModel model(c, 1);
    const OwnedBatch text({690}, c.vocabulary);
    expect_goes_on(model, text, 600, all_logits(model, text.ids),
                   fmt::format("{} {} {}", to_string(c.position), to_string(c.score), c.window));
  }
}

// What the layers carry has a fixed size: the bits of a whole that is longer than `block`.
TEST(LanguageModelDecoder, CarriesAStateBeyondTheBlock) {
  for (const char* layers : {"lstm", "conv3,gru", "sru:layers=2", "attention-rnn:window=4"}) {
    LanguageModelConfig c = small_config();
    c.kind = LanguageModelKind::kEncoder;
    c.encoder = layers;
    c.position = PositionKind::kNone;
    LanguageModelConfig longer = c;
    longer.block = 700;
    const OwnedBatch text({600}, c.vocabulary);
    const Logits whole = all_logits(LanguageModel(longer, 1), text.ids);
    expect_goes_on(LanguageModel(c, 1), text, 500, whole, layers);
  }
}

struct Step {
  Logits loss;
  std::vector<Logits> gradients;
  friend bool operator==(const Step&, const Step&) = default;
};

Step step(const LanguageModelConfig& config, int threads) {
  const LanguageModel model(config, 1);
  const OwnedBatch batch({7, 1, 8, 5, 8, 8, 3, 8, 2, 8}, config.vocabulary);
  Tape tape{Context(threads)};
  const Variable loss = model.loss(tape, batch.view(), {.scale = 0.02, .dropout = {1, 2, 0}});
  tape.backward(loss);
  Step result{to_vector(loss.value<float>()), {}};
  for (Parameter* p : model.parameters()) {
    result.gradients.push_back(to_vector(p->finished_gradient().vec<float>()));
  }
  return result;
}

TEST_P(EveryModel, HasTheSameBitsForAnyNumberOfThreads) {
  LanguageModelConfig c = GetParam();
  c.width = 96;
  c.vocabulary = 300;
  const Step one = step(c, 1);
  const index before = Context::items_run_by_helpers();
  // On a busy machine the helpers may come too late for a whole step.
  for (int round = 0; round == 0 || (Context::items_run_by_helpers() == before && round < 100);
       ++round) {
    for (const int threads : {2, 3, 8}) ASSERT_EQ(step(c, threads), one) << threads;
  }
  EXPECT_GT(Context::items_run_by_helpers(), before);
}

INSTANTIATE_TEST_SUITE_P(Forms, EveryModel, testing::ValuesIn(forms()), [](const auto& test) {
  const LanguageModelConfig& c = test.param;
  std::string name = fmt::format("{}_{}_{}_{}", test.index, to_string(c.kind),
                                 to_string(c.position), to_string(c.score));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// One entry for each layer, and nothing that is computed changes.
TEST(LanguageModel, ShowsWhatItsHeadsLookAt) {
  const LanguageModel model(small_config(), 1);
  const OwnedBatch batch({8, 5}, 11);
  const auto loss = [&](std::span<HeadStatistics> seen) {
    Tape tape{Context(2)};
    const LossOptions options{.dropout = {1, 2, 0}, .attention = seen};
    return model.loss(tape, batch.view(), options).value<float>()[0][0];
  };
  std::vector<HeadStatistics> seen(2);
  EXPECT_EQ(loss(seen), loss({}));
  for (const HeadStatistics& layer : seen) {
    EXPECT_EQ(layer.queries, 13);
    ASSERT_EQ(layer.entropy.size(), 2u);
    // A fresh model spreads its weights evenly over all keys that it sees.
    double even = 0;
    for (const int length : {8, 5}) {
      for (int keys = 1; keys <= length; ++keys) even += std::log(keys);
    }
    EXPECT_NEAR(layer.entropy[0], even, 0.01);
  }
  std::vector<HeadStatistics> wrong(3);
  EXPECT_THROWS(loss(wrong), kShape, "3 statistics for 2 attentions");
}

float loss_of(const LanguageModel& model, const OwnedBatch& batch) {
  Tape tape(Context(2), TapeMode::kInference);
  return model.loss(tape, batch.view()).value<float>()[0][0];
}

// A fresh model knows nothing: every token costs about log V.
TEST(LanguageModel, StartsNearTheUniformDistribution) {
  LanguageModelConfig c = small_config();
  const LanguageModel model(c, 1);
  const OwnedBatch batch(std::vector<index>(20, 8), c.vocabulary);
  const auto targets = 160 - std::count(batch.targets.begin(), batch.targets.end(), -1);
  EXPECT_NEAR(loss_of(model, batch) / static_cast<float>(targets), std::log(11.0), 0.02);
}

TEST(LanguageModel, SequencesDoNotSeeEachOther) {
  const LanguageModel model(small_config(), 1);
  OwnedBatch batch({4, 4}, 11);
  const auto logits = [&] {
    Tape tape(Context(2), TapeMode::kInference);
    return to_vector(model.logits(tape, batch.view()).value<float>());
  };
  const Logits before = logits();
  batch.ids[0] = (batch.ids[0] + 1) % 11;
  const Logits after = logits();
  EXPECT_TRUE(std::equal(before.begin() + 44, before.end(), after.begin() + 44));
  EXPECT_NE(before[0], after[0]);
}

TEST(LanguageModel, FollowsFromItsSeed) {
  const auto first = [](std::uint64_t seed) {
    const LanguageModel model(small_config(), seed);
    return to_vector(model.parameters()[0]->value.vec<float>());
  };
  EXPECT_EQ(first(1), first(1));
  EXPECT_NE(first(1), first(2));
}

// The masks themselves are held to an independent implementation by golden_test.cc.
TEST(LanguageModel, DropsOtherThingsInEveryUpdate) {
  LanguageModelConfig c = small_config();
  c.dropout = 0.2;
  const LanguageModel model(c, 1);
  const OwnedBatch batch({8, 5}, c.vocabulary);
  const auto loss = [&](std::uint64_t update, TapeMode mode) {
    Tape tape(Context(2), mode);
    return model.loss(tape, batch.view(), {.dropout = {1, update, 0}}).value<float>()[0][0];
  };
  EXPECT_EQ(loss(3, TapeMode::kTrain), loss(3, TapeMode::kTrain));
  EXPECT_NE(loss(3, TapeMode::kTrain), loss(4, TapeMode::kTrain));
  EXPECT_EQ(loss(3, TapeMode::kInference), loss(4, TapeMode::kInference));
}

TEST(LanguageModel, ABatchWithoutTokensHasNoLossAndNoGradient) {
  const LanguageModel model(small_config(), 1);
  const OwnedBatch batch({}, 11);
  Tape tape{Context(1)};
  const Variable loss = model.loss(tape, batch.view());
  tape.backward(loss);
  EXPECT_EQ(loss.value<float>()[0][0], 0);
  EXPECT_FALSE(model.parameters()[0]->has_gradient);
}

TEST(LanguageModel, RefusesWhatItCannotSee) {
  const LanguageModel model(small_config(), 1);
  Tape tape{Context(1)};
  EXPECT_THROWS(model.loss(tape, OwnedBatch({3, 9}, 11).view()), kShape,
                "sequence 1 has 9 tokens; the model sees at most 8");
  EXPECT_THROWS(model.loss(tape, OwnedBatch({3}, 100).view()), kShape, "");
}

TEST(LanguageModelDecoder, MovesItsWindowByAQuarter) {
  const auto start = [](index n) { return LanguageModelDecoder::window_start(n, 8); };
  EXPECT_EQ(start(8), 0);
  EXPECT_EQ(start(9), 2);
  EXPECT_EQ(start(10), 2);
  EXPECT_EQ(start(11), 4);
  EXPECT_EQ(LanguageModelDecoder::window_start(5, 1), 4);
}

TEST(LanguageModelDecoder, StaysAsItWasAfterATokenThatDoesNotExist) {
  const LanguageModel model(small_config(), 1);
  LanguageModelDecoder decoder(Context(1), model);
  const std::int32_t good[] = {1, 2}, bad[] = {3, 11};
  const Logits before = to_vector(decoder.append({good, 1}));
  EXPECT_THROWS(decoder.append({bad, 2}), kShape, "token 1 is 11; the vocabulary has 11");
  EXPECT_EQ(decoder.size(), 1);
  decoder.clear();
  EXPECT_EQ(to_vector(decoder.append({good, 1})), before);
}

}  // namespace
}  // namespace fovea

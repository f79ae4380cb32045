// SPDX-License-Identifier: Apache-2.0
// Decoding step by step against the decoder that sees all of the target at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/model/target_decoder.h"
#include "tests/model/translator_support.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

std::vector<TranslatorConfig> configs() {
  std::vector<TranslatorConfig> all;
  for (const auto& [kind, name] : enum_names(PositionKind{})) {
    TranslatorConfig c = translator_config();
    c.position = kind;
    c.t5_buckets = 4;
    c.shaw_clip = 2;
    c.decoder_layers = 2;
    if (all.size() % 2 == 0) c.norm_position = NormPosition::kPost;
    if (all.size() % 3 == 0) c.kv_heads = 1;
    all.push_back(c);
  }
  all.back().softcap = 2;
  all.push_back(recurrent_config());
  return all;
}

class EveryDecoder : public testing::TestWithParam<TranslatorConfig> {};

// Hypotheses 0 and 1 of the first source part after a token, in turned order; of the second source
// there is one. Each row must be what the whole target gives at that place.
TEST_P(EveryDecoder, StepsGiveWhatTheWholeTargetGives) {
  const Translator model(GetParam(), 1);
  const OwnedPairs sources({{4, 1}, {6, 1}}, model.config());
  TranslatorDecoder decoder(Context(2), model);
  decoder.begin(sources.view().source);
  std::vector<std::vector<std::int32_t>> written(2);
  std::vector<std::size_t> sentence = {0, 1};
  const auto step = [&](std::vector<index> parents, std::vector<std::int32_t> ids) {
    std::vector<std::vector<std::int32_t>> next;
    std::vector<std::size_t> of;
    for (std::size_t i = 0; i < parents.size(); ++i) {
      next.push_back(written[static_cast<std::size_t>(parents[i])]);
      next.back().push_back(ids[i]);
      of.push_back(sentence[static_cast<std::size_t>(parents[i])]);
    }
    written = next;
    sentence = of;
    const auto logits =
        to_vector(decoder.step(parents, {ids.data(), static_cast<index>(ids.size())}));
    const auto V = static_cast<std::size_t>(model.config().target_vocabulary);
    for (std::size_t i = 0; i < written.size(); ++i) {
      const auto n = static_cast<std::int32_t>(written[i].size());
      const std::int32_t from[] = {0, sentence[i] == 0 ? 4 : 6}, to[] = {0, n};
      Tape tape(Context(1), TapeMode::kInference);
      const std::int32_t* const first = sources.source.data() + (sentence[i] == 0 ? 0 : 4);
      const auto whole = to_vector(
          model
              .logits(tape, {.source = {.ids = {first, from[1]}, .offsets = {from, 2}},
                             .target = {.ids = {written[i].data(), n}, .offsets = {to, 2}}})
              .value<float>());
      for (std::size_t v = 0; v < V; ++v) {
        EXPECT_NEAR(logits[i * V + v], whole[(static_cast<std::size_t>(n) - 1) * V + v], 1e-5);
      }
    }
  };
  step({0, 1}, {0, 0});
  step({0, 0, 1}, {3, 4, 5});
  step({1, 2, 0, 1}, {2, 2, 6, 1});
  step({3}, {5});
  step({0, 0}, {1, 2});
}

// Alone or among others, with one thread or three.
TEST_P(EveryDecoder, NoBitDependsOnOthers) {
  const Translator model(GetParam(), 1);
  const OwnedPairs sources({{4, 1}, {6, 1}}, model.config());
  const auto last_of = [&](const TextRows& rows, std::vector<std::vector<index>> parents,
                           int threads) {
    TranslatorDecoder decoder(Context(threads), model);
    decoder.begin(rows);
    std::vector<float> logits;
    std::int32_t id = 0;
    for (const auto& of : parents) {
      const std::vector<std::int32_t> ids(of.size(), id++);
      logits = to_vector(decoder.step(of, {ids.data(), static_cast<index>(ids.size())}));
    }
    return std::vector<float>(logits.end() - model.config().target_vocabulary, logits.end());
  };
  const TextRows both = sources.view().source;
  const std::int32_t offsets[] = {0, 6};
  const TextRows second{.ids = {both.ids.data + 4, 6}, .offsets = {offsets, 2}};
  const auto alone = last_of(second, {{0}, {0}, {0}}, 1);
  EXPECT_EQ(last_of(both, {{0, 1}, {0, 0, 1}, {1, 0, 2}}, 3), alone);
}

INSTANTIATE_TEST_SUITE_P(Positions, EveryDecoder, testing::ValuesIn(configs()));

TEST(TextDecoding, NamesWhatDoesNotFit) {
  const Translator model(translator_config(), 1);
  const OwnedPairs sources({{4, 1}}, model.config());
  TranslatorDecoder decoder(Context(1), model);
  decoder.begin(sources.view().source);
  const std::int32_t ids[] = {0, 0};
  const std::vector<index> one = {0}, none = {1};
  EXPECT_THROWS(decoder.step(one, {ids, 2}), kShape, "1 parents for 2 tokens");
  EXPECT_THROWS(decoder.step(none, {ids, 1}), kShape, "no 1 of 1");
}

}  // namespace
}  // namespace fovea

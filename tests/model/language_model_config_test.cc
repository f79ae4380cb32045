// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "fovea/model/language_model.h"
#include "tests/model/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr index kHuge = std::numeric_limits<index>::max();

LanguageModelConfig with(void (*change)(LanguageModelConfig&)) {
  LanguageModelConfig c = small_config();
  change(c);
  return c;
}

// Golden `params`.
TEST(LanguageModelConfig, TheSourceHasItsParameters) {
  LanguageModelConfig c = source_config();
  EXPECT_EQ(parameter_count(c), 478639);
  c.vocabulary = 1078;
  EXPECT_EQ(parameter_count(c), 480438);
}

// GPT-2 small (Radford et al. 2019): 124,439,808 parameters.
TEST(LanguageModelConfig, Gpt2HasItsParameters) {
  LanguageModelConfig c;
  c.layers = c.heads = 12;
  c.width = 768;
  c.block = 1024;
  c.bias = true;
  c.vocabulary = 50257;
  EXPECT_EQ(parameter_count(c), 124439808);
}

TEST(LanguageModelConfig, CountsTheParametersOfTheModelThatIsMade) {
  LanguageModelConfig bare = small_config(), windows = small_config();
  bare.tie = bare.qk_norm = bare.bias = true;
  bare.position = PositionKind::kLearned;
  windows.layers = 5;
  windows.window = "0,2,2,0,1";
  windows.tie = false;
  for (LanguageModelConfig c : {bare, windows}) {
    for (const index layers : {1, 2, 3, 5}) {
      if (c.window.empty()) c.layers = layers;
      index count = 0;
      const LanguageModel model(c, 1);
      for (const Parameter* p : model.parameters()) count += p->value.size();
      EXPECT_EQ(parameter_count(c), count) << c.layers;
    }
  }
}

TEST(LanguageModelConfig, FillsInWhatFollows) {
  const LanguageModelConfig c = resolve(small_config());
  EXPECT_EQ(c.kv_heads, 2);
  EXPECT_EQ(c.head_dim, 4);
  EXPECT_EQ(c.ff, 32);
  EXPECT_EQ(c.position_max, 8);
  EXPECT_EQ(resolve(c), c);
}

TEST(LanguageModelConfig, ChecksThePositionsThatAreJoined) {
  EXPECT_THROWS(resolve(with([](auto& c) { c.position_max = 7; })), kOptionValue,
                "--position-max: 7");
  EXPECT_THROWS(resolve(with([](auto& c) { c.position_max = -1; })), kOptionValue,
                "--position-max: -1");
  EXPECT_THROWS(resolve(with([](auto& c) {
                  c.position = enum_from_name<PositionKind>("alibi");
                  c.position_join = PositionJoin::kConcatenate;
                })),
                kOptionValue, "--position alibi has no rows to concatenate");
  EXPECT_NO_THROW(resolve(with([](auto& c) {
    c.position = PositionKind::kNone;
    c.position_max = 3;  // of no table
  })));
  EXPECT_THROWS(resolve(with([](auto& c) { c.window = "3000000000"; })), kOptionValue,
                "--window: 3000000000 is not in 0 to 2147483647");
  const index plain = parameter_count(small_config());
  EXPECT_EQ(parameter_count(with([](auto& c) { c.position_max = 10; })), plain + 2 * 8);
  EXPECT_EQ(parameter_count(with([](auto& c) { c.position_join = PositionJoin::kConcatenate; })),
            plain + 8 * 16);
  EXPECT_EQ(parameter_count(with([](auto& c) { c.qk_norm = true; })), plain + 2 * 2 * 4);
}

TEST(LanguageModelConfig, ScalesTokensBesideSinusoids) {
  EXPECT_EQ(resolve(small_config()).embedding_scale, 1);
  const auto sinusoidal = [](auto& c) { c.position = PositionKind::kSinusoidal; };
  EXPECT_EQ(resolve(with(sinusoidal)).embedding_scale, std::sqrt(8.0));
  const auto chosen = [](auto& c) {
    c.position = PositionKind::kSinusoidal;
    c.embedding_scale = 2;
  };
  EXPECT_EQ(resolve(with(chosen)).embedding_scale, 2);
}

TEST(LanguageModelConfig, NamesTheOptionThatIsOutOfRange) {
  EXPECT_THROWS(resolve(with([](auto& c) { c.embedding_scale = -1; })), kOptionValue,
                "--embedding-scale: -1");
  EXPECT_THROWS(resolve(with([](auto& c) { c.embedding_scale = 1e300; })), kOptionValue,
                "--embedding-scale: 1e+300");
  EXPECT_THROWS(resolve(with([](auto& c) { c.layers = 0; })), kOptionValue, "--layers: 0");
  EXPECT_THROWS(resolve(with([](auto& c) { c.heads = -3; })), kOptionValue, "--heads: -3");
  EXPECT_THROWS(resolve(with([](auto& c) { c.kv_heads = 3; })), kOptionValue, "--kv-heads: 3");
  EXPECT_THROWS(resolve(with([](auto& c) { c.heads = 4, c.kv_heads = 3; })), kShape,
                "--heads: 4 is not divisible by --kv-heads (3)");
  EXPECT_THROWS(resolve(with([](auto& c) { c.width = kHuge; })), kOptionValue, "--width: ");
  EXPECT_THROWS(resolve(with([](auto& c) { c.vocabulary = 0; })), kOptionValue, "vocabulary");
  EXPECT_THROWS(resolve(with([](auto& c) { c.dropout = 1; })), kOptionValue, "--dropout: 1");
  EXPECT_THROWS(resolve(with([](auto& c) { c.dropout = NAN; })), kOptionValue, "--dropout: nan");
  EXPECT_THROWS(resolve(with([](auto& c) { c.width = 9; })), kShape,
                "--width: 9 is not divisible by --heads (2)");
  EXPECT_THROWS(resolve(with([](auto& c) {
                  c.width = 9;
                  c.head_dim = 4;
                  c.position = PositionKind::kSinusoidal;
                })),
                kShape, "even one; it is 9");
}

TEST(LanguageModelConfig, RefusesSizesWhoseProductsOverflow) {
  const auto c = with([](auto& o) {
    o.width = o.ff = o.head_dim = o.heads = 2147483646;
    o.layers = 65536;
  });
  EXPECT_THROWS(parameter_count(c), kShape, "too many columns");
}

}  // namespace
}  // namespace fovea

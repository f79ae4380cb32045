// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fovea/attention/mask/band.h"
#include "fovea/parts/part_table.h"
#include "tests/isa.h"
#include "tests/nn/attention_support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

const std::int32_t kOffsets[] = {0, 3, 7};
const std::uint64_t kSamples[] = {3, 9};

TEST(MultiHeadAttention, HasTheParametersOfItsFormula) {
  const auto count = [](Options o) {
    ParameterSet set({.memory = ParameterMemory::kShapesOnly});
    const MultiHeadAttention layer(o, ParameterScope(set));
    return set.size();
  };
  Options o = options(4);
  o.width = 128;
  EXPECT_EQ(count(o), 4 * (128 * 128 + 128));
  o.bias = Biases::kNone;
  o.heads = 8;
  o.head_dim = 16;
  o.output = OutputProjection::kNone;
  EXPECT_EQ(count(o), 3 * 128 * 128);
  o.kv_heads = 2;
  o.value_dim = 5;
  o.parts = {{"slopes"}, {"t5", 32}, {"shaw_k", 4}, {"sink"}};
  EXPECT_EQ(count(o), 128 * (8 * 16 + 2 * 16 + 2 * 5) + 8 + 32 * 8 + 9 * 16 + 8);
}

// Spec A7: without positions, rows that are permuted give permuted rows.
TEST(MultiHeadAttention, IsEquivariantToPermutations) {
  ParameterSet set({});
  const MultiHeadAttention layer(options(2), ParameterScope(set));
  const auto x = noise(N * C);
  std::vector<float> turned(x.size());
  for (index n = 0; n < N; ++n) {
    std::copy_n(x.data() + n * C, C, turned.data() + (n + 3) % N * C);
  }
  const auto y = output_of([&](Tape& t) { return self(t, layer, x); });
  const auto z = output_of([&](Tape& t) { return self(t, layer, turned); });
  for (index n = 0; n < N; ++n) {
    for (index c = 0; c < C; ++c) {
      EXPECT_NEAR(y[n * C + c], z[(n + 3) % N * C + c], 1e-7);
    }
  }
}

// Spec A10: h heads are h calls with one head each, side by side.
TEST(MultiHeadAttention, IsItsHeadsConcatenated) {
  ParameterSet set({});
  Options o = options(3, 4);
  o.output = OutputProjection::kNone;
  const MultiHeadAttention all(o, ParameterScope(set)["all"]);
  randomise(set);
  const auto x = noise(N * C);
  const auto y = output_of([&](Tape& t) { return self(t, all, x); });
  const auto weight = set.find("all.qkv.weight")->value.rows<float>();
  const auto bias = set.find("all.qkv.bias")->value.vec<float>();
  for (index h = 0; h < 3; ++h) {
    ParameterSet single({});
    o.heads = 1;
    const MultiHeadAttention one(o, ParameterScope(single));
    for (index part = 0; part < 3; ++part) {
      for (index d = 0; d < 4; ++d) {
        const index from = part * 12 + h * 4 + d, to = part * 4 + d;
        std::copy_n(weight[from], C, single.find("qkv.weight")->value.rows<float>()[to]);
        single.find("qkv.bias")->value.vec<float>()[to] = bias[from];
      }
    }
    const auto z = output_of([&](Tape& t) { return self(t, one, x); });
    for (index n = 0; n < N; ++n) {
      for (index d = 0; d < 4; ++d) EXPECT_EQ(y[n * 12 + h * 4 + d], z[n * 4 + d]);
    }
  }
}

// Spec A9: keys and values permuted together are the same bag.
TEST(MultiHeadAttention, CrossAttentionDoesNotSeeTheOrderOfItsContext) {
  ParameterSet set({});
  Options o = options(2, 3);
  o.context = 4;
  const MultiHeadAttention layer(o, ParameterScope(set));
  const auto x = noise(N * C), context = noise(5 * 4, 1);
  auto turned = context;
  std::rotate(turned.begin(), turned.begin() + 8, turned.end());
  const auto ask = [&](const std::vector<float>& rows) {
    return output_of([&](Tape& t) {
      return layer.forward(t, t.constant(Rows<const float>(x.data(), N, C)), {},
                           t.constant(Rows<const float>(rows.data(), 5, 4)), {});
    });
  };
  EXPECT_THAT(ask(turned), testing::Pointwise(testing::FloatNear(1e-6f), ask(context)));
}

TEST(MultiHeadAttention, CausalRowsNeverSeeLaterOnes) {
  ParameterSet set({});
  Options o = options(2);
  o.mask = mask::Causal();
  const MultiHeadAttention layer(o, ParameterScope(set));
  auto x = noise(N * C);
  const auto before = output_of([&](Tape& t) { return self(t, layer, x); });
  x[4 * C] += 1;
  const auto after = output_of([&](Tape& t) { return self(t, layer, x); });
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 4 * C, after.begin()));
  EXPECT_NE(before[4 * C], after[4 * C]);
}

// Spec A20: which rows change the last one, by their distance from it.
TEST(MultiHeadAttention, SeesTheDistancesOfItsStepsAlone) {
  const auto seen_from_the_end = [](Options o) {
    o.mask = mask::Causal();
    ParameterSet set({});
    const MultiHeadAttention layer(o, ParameterScope(set));
    randomise(set);
    const auto last = [&](const std::vector<float>& x) {
      const auto y = output_of([&](Tape& t) { return self(t, layer, x); });
      return std::vector<float>(y.end() - C, y.end());
    };
    const auto x = noise(N * C);
    std::vector<index> seen;
    for (index distance = 0; distance < N; ++distance) {
      auto changed = x;
      changed[static_cast<std::size_t>((N - 1 - distance) * C)] += 1;
      if (last(changed) != last(x)) seen.push_back(distance);
    }
    return seen;
  };
  using Distances = std::vector<index>;
  Options o = options(2);
  o.dilation = 2;
  EXPECT_EQ(seen_from_the_end(o), Distances({0, 2, 4, 6}));
  o.window = 2;
  EXPECT_EQ(seen_from_the_end(o), Distances({0, 2, 4}));
  o = options(2);
  o.strided = 3;
  EXPECT_EQ(seen_from_the_end(o), Distances({0, 1, 2, 3, 6}));
  o.dilation = 0;
  ParameterSet set({});
  EXPECT_THROWS(MultiHeadAttention(o, ParameterScope(set)), kShape, "dilation must be at least 1");
}

// On every instruction set, of sequences side by side: what is kept of the first step changes no
// bit.
void expect_bits_of_two_steps(const Options& o) {
  ParameterSet set({});
  const MultiHeadAttention layer(o, ParameterScope(set));
  randomise(set);
  const auto x = noise(N * C);
  const auto input = [&](Tape& t) { return t.constant(Rows<const float>(x.data(), N, C)); };
  const auto packed = [](Tape& t) { return lay_out_rows(t, N, {kOffsets, 3}, {}); };
  for_each_isa([&] {
    const auto kept = output_of([&](Tape& t) { return layer.first_step(t, input(t)); });
    ASSERT_EQ(static_cast<index>(kept.size()), N * layer.first_columns());
    EXPECT_EQ(output_of([&](Tape& t) {
                const Rows<const float> stepped(kept.data(), N, layer.first_columns());
                return layer.forward_from(t, t.constant(stepped), packed(t));
              }),
              output_of([&](Tape& t) { return layer.forward(t, input(t), packed(t)); }));
  });
}

TEST(MultiHeadAttention, ItsFirstStepCanBeKept) {
  Options o = options(2);
  expect_bits_of_two_steps(o);
  o.output = OutputProjection::kNone;
  o.value_dim = 5;
  expect_bits_of_two_steps(o);
  o = options(3);
  o.kv_heads = 1;
  o.mask = mask::Causal();
  o.parts = {{"t5", 4}, {"sink"}};
  expect_bits_of_two_steps(o);
  o = options(2, 4);
  o.variant = {.score = AttentionScoreKind::kCosine, .rotary = RotaryPairs::kHalves};
  expect_bits_of_two_steps(o);
  o.context = 4;
  ParameterSet set({});
  const MultiHeadAttention cross(o, ParameterScope(set));
  Tape tape(Context(1), TapeMode::kInference);
  const auto x = noise(N * C);
  EXPECT_THROWS(cross.first_step(tape, tape.constant(Rows<const float>(x.data(), N, C))), kShape,
                "this is cross-attention");
}

void expect_bits_of_the_whole(const Options& o) {
  ParameterSet set({});
  const MultiHeadAttention layer(o, ParameterScope(set));
  const auto x = noise(N * C);
  const auto all = output_of([&](Tape& t) { return self(t, layer, x); });
  KvCache cache(layer.cache_options(N));
  std::vector<float> grown;
  for (const auto& range : {std::pair<index, index>{0, 3}, {3, 4}, {4, 5}, {5, 7}}) {
    const auto rows = output_of([&](Tape& t) {
      const auto part = Rows<const float>(x.data(), N, C).slice(range.first, range.second);
      return layer.forward(t, t.constant(part), cache);
    });
    grown.insert(grown.end(), rows.begin(), rows.end());
  }
  EXPECT_EQ(grown, all);
}

TEST(MultiHeadAttention, ACacheGivesTheBitsOfTheWhole) {
  const std::vector<std::vector<LayerPart>> forms = {
      {}, {{"slopes", 1, LayerPart::Learning::kFixed}}, {{"t5", 4}, {"sink"}}, {{"shaw_k", 2}}};
  for (std::size_t n = 0; n <= forms.size(); ++n) {
    Options o = options(3);
    o.kv_heads = 1;
    o.mask = mask::Causal();
    o.window = 3;
    if (n < forms.size()) {
      o.parts = forms[n];
    } else {
      o.variant = {.softcap = 3, .rotary = RotaryPairs::kHalves};
    }
    expect_bits_of_the_whole(o);
  }
  for (const index window : {0, 2}) {
    Options o = options(2);
    o.mask = mask::Causal();
    o.window = window;
    o.dilation = 2;
    o.parts = {{"shaw_k", 2}, {"shaw_v", 2}};
    expect_bits_of_the_whole(o);
    o.dilation = 1;
    o.strided = 2;
    expect_bits_of_the_whole(o);
  }
}

struct NamedOptions {
  std::string name;
  Options options;
};

NamedOptions named(const char* name, void (*change)(Options&)) {
  NamedOptions n{name, options(2)};
  change(n.options);
  return n;
}

class EveryForm : public testing::TestWithParam<NamedOptions> {};

TEST_P(EveryForm, GradientIsThatOfTheForward) {
  auto set = float64_set();
  const MultiHeadAttention layer(GetParam().options, ParameterScope(set));
  const auto x = noise<double>(N * C), context = noise<double>(N * 4, 1);
  expect_gradients(set, [&](Tape& t) {
    const auto rows = lay_out_rows(t, N, {kOffsets, 3}, {kSamples, 2});
    const Variable asks = t.constant(Rows<const double>(x.data(), N, C));
    if (!GetParam().options.context) return layer.forward(t, asks, rows, {1, 2, 3});
    const Variable asked = t.constant(Rows<const double>(context.data(), N, 4));
    return layer.forward(t, asks, rows, asked, rows, {1, 2, 3});
  });
}

INSTANTIATE_TEST_SUITE_P(
    Forms, EveryForm,
    testing::Values(
        named("plain", [](Options&) {}),
        named("without_biases", [](Options& o) { o.bias = Biases::kNone; }),
        named("without_projection", [](Options& o) { o.output = OutputProjection::kNone; }),
        named("free_sizes_grouped",
              [](Options& o) { o.head_dim = 5, o.value_dim = 2, o.kv_heads = 1; }),
        named("unscaled", [](Options& o) { o.variant.scale = 1; }),
        named("causal_with_dropout", [](Options& o) { o.mask = mask::Causal(), o.dropout = 0.3; }),
        named("learned_slopes", [](Options& o) { o.parts = {{"slopes"}}; }),
        named("t5_with_a_sink",
              [](Options& o) {
                o.parts = {{"t5", 6}, {"sink"}};
              }),
        named("log_n_scale",
              [](Options& o) {
                o.variant.log_n_scale = 3;
                o.mask = mask::Causal();
              }),
        named("shaw",
              [](Options& o) {
                o.parts = {{"shaw_k", 2}, {"shaw_v", 2}};
              }),
        named("additive_softcap",
              [](Options& o) {
                o.parts = {{"score_v"}};
                o.variant = {.score = AttentionScoreKind::kAdditive, .softcap = 2};
              }),
        named("concat",
              [](Options& o) {
                o.parts = {{"score_w"}};
                o.variant.score = AttentionScoreKind::kConcat;
              }),
        named("rotary_cosine_sigmoid",
              [](Options& o) {
                o.head_dim = 4;
                o.variant = {.score = AttentionScoreKind::kCosine,
                             .norm = AttentionNormKind::kSigmoid,
                             .rotary = RotaryPairs::kHalves};
              }),
        named("cross_with_slopes",
              [](Options& o) {
                o.context = 4;
                o.parts = {{"slopes"}};
              }),
        named("cross", [](Options& o) { o.context = 4; })),
    [](const auto& test) { return test.param.name; });

// Each part that a layer can learn.
std::vector<NamedOptions> every_part() {
  std::vector<NamedOptions> all;
  for (const AttentionPart& part : attention_parts()) {
    if (part.start == PartStart::kNone) continue;
    Options o = options(2);
    o.parts = {{part.tensor, 4}};
    o.variant.score = part.score.value_or(o.variant.score);
    all.push_back({std::string(part.tensor), o});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Parts, EveryForm, testing::ValuesIn(every_part()),
                         [](const auto& test) { return test.param.name; });

TEST(MultiHeadAttention, ACacheGivesTheBitsOfTheWholeWithEveryPart) {
  for (const NamedOptions& part : every_part()) {
    SCOPED_TRACE(part.name);
    Options o = part.options;
    o.mask = mask::Causal() & mask::Window(3, 0);
    expect_bits_of_the_whole(o);
  }
}

// Spec A12: sizes must fit only where one follows from the other.
TEST(MultiHeadAttention, RefusesHeadsThatDoNotDivideTheWidth) {
  EXPECT_THROWS(resolve(options(4)), kShape, "width 6 is not divisible by 4 heads");
  EXPECT_EQ(resolve(options(4, 5)).value_dim, 5);
  Options o = options(2);
  o.kv_heads = 3;
  EXPECT_THROWS(resolve(o), kShape, "2 heads are no multiple of 3 kv_heads");
  EXPECT_THROWS(resolve(options(0)), kShape, "heads must be positive");
}

}  // namespace
}  // namespace fovea

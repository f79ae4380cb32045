// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/nn/encoder_layers.h"
#include "tests/nn/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr index N = 6, C = 4;
const std::int32_t kOffsets[] = {0, 2, N};

std::unique_ptr<EncoderLayer> network(const ParameterScope& scope) {
  return feed_forward_layer({.width = C, .hidden = 5}, {}, scope);
}

EncoderStageLayers one(std::unique_ptr<EncoderLayer> layer) {
  EncoderStageLayers stage;
  stage.branches.emplace_back();
  stage.branches.back().push_back(std::move(layer));
  return stage;
}

// f then g, then side by side f and g, joined.
Encoder encoder_of(const ParameterScope& scope) {
  Encoder encoder;
  encoder.add(one(network(scope["f"])));
  EncoderStageLayers both = one(network(scope["g"]));
  both.branches.emplace_back();
  both.branches.back().push_back(network(scope["h"]));
  both.branches.back().push_back(network(scope["i"]));
  both.join.emplace(LinearOptions{.in = 2 * C, .out = C}, scope["join"]);
  encoder.add(std::move(both));
  return encoder;
}

template <class T>
Variable input(Tape& tape, const std::vector<T>& x) {
  return tape.constant(Rows<const T>(x.data(), N, C));
}

TEST(Encoder, IsItsStagesOneAfterAnotherAndItsBranchesSideBySide) {
  ParameterSet set({});
  const Encoder encoder = encoder_of(ParameterScope(set));
  ParameterSet again({});
  const ParameterScope scope(again);
  const FeedForwardOptions options{.width = C, .hidden = 5};
  const FeedForward f(options, scope["f"]["feed_forward"]), g(options, scope["g"]["feed_forward"]),
      h(options, scope["h"]["feed_forward"]), i(options, scope["i"]["feed_forward"]);
  const Linear join({.in = 2 * C, .out = C}, scope["join"]);
  randomise(set);
  randomise(again);
  const auto x = noise(N * C);
  const auto by_hand = output_of([&](Tape& t) {
    const Variable y = f.forward(t, input(t, x));
    const Variable left = g.forward(t, y), right = i.forward(t, h.forward(t, y));
    return join.forward(t, concat_columns(t, std::array{left, right}));
  });
  EXPECT_EQ(output_of([&](Tape& t) { return encoder.forward(t, input(t, x), {}, {}, {}); }),
            by_hand);
}

TEST(Encoder, GradientIsThatOfTheForward) {
  auto set = float64_set();
  const Encoder encoder = encoder_of(ParameterScope(set));
  const auto x = noise<double>(N * C);
  expect_gradients(set, [&](Tape& t) { return encoder.forward(t, input(t, x), {}, {}, {}); });
}

TEST(Encoder, CountsTheAttentionsThatCanBeSeen) {
  ParameterSet set({});
  const ParameterScope scope(set);
  MultiHeadAttentionOptions attention;
  attention.width = C;
  attention.heads = 2;
  Encoder encoder;
  encoder.add(one(attention_layer(attention, {}, scope["a"])));
  encoder.add(one(network(scope["b"])));
  encoder.add(one(attention_layer(attention, {}, scope["c"])));
  EXPECT_EQ(encoder.attentions(), 2);
  const auto x = noise(N * C);
  std::vector<HeadStatistics> seen(2);
  Tape tape(Context(1), TapeMode::kInference);
  encoder.forward(tape, input(tape, x), lay_out_rows(tape, N, {kOffsets, 3}, {}), {}, seen);
  EXPECT_EQ(seen[0].queries, N);
  EXPECT_EQ(seen[1].max_logit.size(), 2);
  seen.pop_back();
  EXPECT_THROWS(encoder.forward(tape, input(tape, x), {}, {}, seen), kShape,
                "1 statistics for 2 attentions");
}

TEST(Encoder, ItsFirstStepCanBeKept) {
  ParameterSet set({});
  const ParameterScope scope(set);
  MultiHeadAttentionOptions attention;
  attention.width = C;
  attention.heads = 2;
  Encoder encoder;
  encoder.add(one(attention_layer(attention, {}, scope["a"])));
  encoder.add(one(network(scope["b"])));
  encoder.add(one(attention_layer(attention, {}, scope["c"])));
  randomise(set);
  const auto x = noise(N * C);
  const auto packed = [](Tape& t) { return lay_out_rows(t, N, {kOffsets, 3}, {}); };
  ASSERT_EQ(encoder.first_columns(), 3 * C);
  const auto kept = output_of([&](Tape& t) { return encoder.first_step(t, input(t, x)); });
  const Rows<const float> stepped(kept.data(), N, 3 * C);
  EXPECT_EQ(
      output_of([&](Tape& t) { return encoder.forward_from(t, t.constant(stepped), packed(t)); }),
      output_of([&](Tape& t) { return encoder.forward(t, input(t, x), packed(t), {}, {}); }));
  Tape tape(Context(1), TapeMode::kInference);
  EXPECT_THROWS(encoder.forward_from(tape, input(tape, x), packed(tape)), kShape,
                "4 columns behind the first step, not 12");
}

// An encoder of attention alone, with random parameters.
Encoder attention_alone(ParameterSet& set) {
  MultiHeadAttentionOptions attention;
  attention.width = C;
  Encoder encoder;
  encoder.add(one(attention_layer(attention, {}, ParameterScope(set))));
  randomise(set);
  return encoder;
}

TEST(Encoder, GradientsPassThroughAFirstStepOnItsOwn) {
  ParameterSet set({});
  const Encoder encoder = attention_alone(set);
  const auto x = noise(N * C);
  const auto gradient = [&](bool in_steps) {
    for (Parameter* p : set.parameters()) p->clear_gradient();
    Tape tape(Context(1));
    const PackedRows rows = lay_out_rows(tape, N, {kOffsets, 3}, {});
    const Variable in = tape.input(Rows<const float>(x.data(), N, C));
    const Variable y = in_steps ? encoder.forward_from(tape, encoder.first_step(tape, in), rows)
                                : encoder.forward(tape, in, rows, {}, {});
    tape.backward(sum(tape, multiply(tape, y, y)));
    std::vector<float> all = to_vector(in.gradient<float>());
    for (Parameter* p : set.parameters()) {
      const Tensor& g = p->finished_gradient();
      all.insert(all.end(), g.data<float>(), g.data<float>() + g.size());
    }
    return all;
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

TEST(Encoder, TheFirstStepOfASumIsAStepAndAProduct) {
  ParameterSet set({});
  const Encoder encoder = attention_alone(set);
  const auto x = noise(N * C), p = noise(N * C);
  std::vector<float> sum = x;
  for (std::size_t n = 0; n < sum.size(); ++n) sum[n] += p[n];
  const auto whole = output_of([&](Tape& t) { return encoder.first_step(t, input(t, sum)); });
  const auto parts = output_of([&](Tape& t) {
    return add(t, encoder.first_step(t, input(t, x)), encoder.first_product(t, input(t, p)));
  });
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_NEAR(whole[n], parts[n], 1e-5);
}

// With a norm or a residual sum before it, beside another branch, or where the first layer is no
// attention.
TEST(Encoder, HasAFirstStepOnlyWhereItsFirstLayerStandsAlone) {
  ParameterSet set({});
  const Encoder encoder = encoder_of(ParameterScope(set));
  EXPECT_EQ(encoder.first_columns(), 0);
  const auto x = noise(N * C);
  Tape tape(Context(1), TapeMode::kInference);
  EXPECT_THROWS(encoder.first_step(tape, input(tape, x)), kShape, "has no first step");
  EXPECT_EQ(Encoder().first_columns(), 0);
}

TEST(Encoder, RefusesAStageThatDoesNotFitTogether) {
  ParameterSet set({});
  Encoder encoder;
  EXPECT_THROWS(encoder.add({}), kInternal, "a stage needs layers");
  EncoderStageLayers two = one(network(ParameterScope(set)["a"]));
  two.branches.emplace_back();
  two.branches.back().push_back(network(ParameterScope(set)["b"]));
  EXPECT_THROWS(encoder.add(std::move(two)), kInternal, "a join for several branches");
}

}  // namespace
}  // namespace fovea

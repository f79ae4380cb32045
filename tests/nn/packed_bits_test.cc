// SPDX-License-Identifier: Apache-2.0
// A sequence alone, or packed among others in any order, has the same bits, forward and backward,
// in training and with dropout, through every kind of layer. (Spec M10: there, batches are padded.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "fovea/attention/mask/band.h"
#include "fovea/attention/mask/segments.h"
#include "fovea/nn/attention_rnn.h"
#include "fovea/nn/depthwise.h"
#include "fovea/nn/encoder_layers.h"
#include "tests/isa.h"
#include "tests/nn/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

// As wide as Winograd's form of a convolution needs, and no multiple of any vector.
constexpr index C = 70;

using Layer = std::function<Variable(Tape&, Variable, const PackedRows&)>;

struct LayerCase {
  std::string name;
  std::function<Layer(const ParameterScope&)> make;
  bool is_row_a_sequence = false;  // the result has a row for each sequence
};

constexpr DropoutKey kKey{7, 3, 2};

Layer layer_of(std::unique_ptr<EncoderLayer> layer) {
  return [layer = std::shared_ptr<EncoderLayer>(std::move(layer))](Tape& t, Variable x,
                                                                   const PackedRows& rows) {
    return layer->forward(t, x, {rows, kKey});
  };
}

ResidualOptions residual() { return {.norm = {.width = C}, .dropout = 0.2}; }

LayerCase recurrent(std::string name, RecurrentKind kind, bool bidirectional) {
  const RecurrentLayersOptions options{.kind = kind,
                                       .in = C,
                                       .hidden = 37,
                                       .layers = 2,
                                       .bidirectional = bidirectional,
                                       .dropout = 0.3};
  return {std::move(name),
          [=](const ParameterScope& s) { return layer_of(recurrent_layer(options, {}, s)); }};
}

LayerCase convolution(std::string name, const ConvolutionLayerOptions& options) {
  return {std::move(name),
          [=](const ParameterScope& s) { return layer_of(convolution_layer(options, {}, s)); }};
}

MultiHeadAttentionOptions attention_options(Mask mask, index window) {
  MultiHeadAttentionOptions o;
  o.width = C;
  o.heads = 5;
  o.mask = std::move(mask);
  o.window = window;
  o.dropout = 0.2;
  return o;
}

LayerCase attention(std::string name, Mask mask, index window) {
  return {std::move(name), [=](const ParameterScope& s) {
            return layer_of(attention_layer(attention_options(mask, window), residual(), s));
          }};
}

LayerCase attention_rnn(std::string name, const AttentionRnnOptions& options) {
  return {std::move(name), [=](const ParameterScope& s) {
            return layer_of(std::make_unique<AttentionRnn>(options, s));
          }};
}

std::vector<LayerCase> recurrent_cases() {
  std::vector<LayerCase> all;
  constexpr std::pair<const char*, RecurrentKind> kKinds[] = {{"rnn", RecurrentKind::kRnn},
                                                              {"gru", RecurrentKind::kGru},
                                                              {"lstm", RecurrentKind::kLstm},
                                                              {"sru", RecurrentKind::kSru}};
  for (const auto& [name, kind] : kKinds) {
    all.push_back(recurrent(name, kind, false));
    all.push_back(recurrent(std::string("bi") + name, kind, true));
  }
  return all;
}

std::vector<LayerCase> cases() {
  std::vector<LayerCase> all = recurrent_cases();
  all.push_back(convolution("conv3", {.in = C, .out = C}));
  all.push_back(convolution("conv3, few columns", {.in = C, .out = 9}));
  all.push_back(convolution("conv4, causal, dilated", {.in = C,
                                                       .out = 40,
                                                       .width = 4,
                                                       .padding = Padding::kCausal,
                                                       .dilation = 3,
                                                       .activation = Activation::kGelu}));
  all.push_back(convolution("glu", {.in = C, .out = C, .gated = true}));
  all.push_back({"dwconv7", [](const ParameterScope& s) {
                   return layer_of(std::make_unique<DepthwiseConvolution>(
                       DepthwiseConvolutionOptions{.columns = C, .width = 7}, s));
                 }});
  all.push_back({"max over time",
                 [](const ParameterScope& s) -> Layer {
                   const auto cnn = std::make_shared<TextCnn>(
                       TextCnnOptions{.in = C, .out = 20, .widths = {1, 3, 4}}, s);
                   return [cnn](Tape& t, Variable x, const PackedRows& rows) {
                     return cnn->forward(t, x, rows);
                   };
                 },
                 true});
  all.push_back(attention("attention", {}, 0));
  all.push_back(attention("attention, causal, a window", mask::Causal(), 5));
  all.push_back(
      {"transformer", [](const ParameterScope& s) {
         return layer_of(std::make_unique<Block>(
             BlockOptions{
                 attention_options(mask::Causal(), 0), {.width = C, .hidden = 33}, residual()},
             s));
       }});
  all.push_back(attention_rnn("attention-rnn", {.in = C, .hidden = C}));
  all.push_back(attention_rnn(
      "attention-rnn, heads, a window",
      {.in = C, .hidden = C, .heads = 5, .window = 6, .defects = {.history_only = true}}));
  return all;
}

// Lengths of the sequences; their rows follow each other in `x` in this order.
constexpr std::int32_t kLengths[] = {1, 17, 0, 3, 40, 2, 64, 5, 1, 130, 9};
constexpr std::size_t kSequences = std::size(kLengths);

std::vector<std::int32_t> begins() {
  std::vector<std::int32_t> at(kSequences + 1);
  std::partial_sum(std::begin(kLengths), std::end(kLengths), at.begin() + 1);
  return at;
}

struct Results {
  std::vector<float> y, dx;
};

// The sequences of these numbers, packed in this order; each has the name of its own number.
Results run(const Layer& layer, const std::vector<float>& x, const std::vector<std::size_t>& order,
            int threads) {
  const auto at = begins();
  std::vector<float> packed;
  std::vector<std::int32_t> offsets{0};
  std::vector<std::uint64_t> samples;
  for (const std::size_t s : order) {
    packed.insert(packed.end(), x.begin() + at[s] * C, x.begin() + at[s + 1] * C);
    offsets.push_back(offsets.back() + kLengths[s]);
    samples.push_back(1000 + s);
  }
  Tape tape{Context(threads)};
  const Variable input = tape.input(Rows<const float>(packed.data(), offsets.back(), C));
  const Variable y = layer(tape, input, lay_out_rows(tape, offsets.back(), offsets, samples));
  tape.backward(sum(tape, multiply(tape, y, y)));
  return {to_vector(y.value<float>()), to_vector(input.gradient<float>())};
}

std::vector<float> part(const std::vector<float>& values, index begin, index count, index columns) {
  const auto first = values.begin() + begin * columns;
  return {first, first + count * columns};
}

std::vector<std::vector<std::size_t>> orders() {
  std::vector<std::size_t> order(kSequences);
  std::iota(order.begin(), order.end(), 0u);
  std::vector<std::vector<std::size_t>> all{order};
  std::reverse(order.begin(), order.end());
  all.push_back(order);
  Random random(3, RandomUse::kTest);
  for (std::size_t n = kSequences; n > 1; --n) std::swap(order[n - 1], order[random.below(n)]);
  all.push_back(order);
  return all;
}

void expect_same_bits(const LayerCase& c) {
  ParameterSet set({});
  const Layer layer = c.make(ParameterScope(set));
  randomise(set);
  const auto x = noise(begins().back() * C);
  std::vector<Results> alone;
  for (std::size_t s = 0; s < kSequences; ++s) {
    alone.push_back(kLengths[s] > 0 ? run(layer, x, {s}, 1) : Results{});
  }
  for (const auto& order : orders()) {
    const Results all = run(layer, x, order, 3);
    const index rows = c.is_row_a_sequence ? static_cast<index>(kSequences) : begins().back();
    const index columns = static_cast<index>(all.y.size()) / rows;
    index begin = 0, place = 0;
    for (const std::size_t s : order) {
      if (kLengths[s] > 0) {
        const auto y = c.is_row_a_sequence ? part(all.y, place, 1, columns)
                                           : part(all.y, begin, kLengths[s], columns);
        EXPECT_EQ(y, alone[s].y) << "y of sequence " << s;
        EXPECT_EQ(part(all.dx, begin, kLengths[s], C), alone[s].dx) << "dx of sequence " << s;
      }
      begin += kLengths[s];
      ++place;
    }
  }
}

TEST(PackedBits, ASequenceIsTheSameAloneAndAmongOthersInAnyOrder) {
  for (const LayerCase& c : cases()) {
    SCOPED_TRACE(c.name);
    for_each_isa([&] { expect_same_bits(c); });
  }
}

// The test above would see it: dropout has other masks for a sequence of another name.
TEST(PackedBits, ASequenceOfAnotherNameHasOtherMasks) {
  ParameterSet set({});
  const Layer layer = recurrent("lstm", RecurrentKind::kLstm, false).make(ParameterScope(set));
  const std::vector<float> x(begins().back() * C, 1.0f);
  const auto first = run(layer, x, {7}, 1), same = run(layer, x, {7}, 1);
  EXPECT_EQ(first.y, same.y);
  const auto all = run(layer, x, {0, 8}, 1);  // two sequences of the same row
  EXPECT_NE(part(all.y, 0, 1, 37), part(all.y, 1, 1, 37));
}

// ------------------------------------------------------------------------------------ padding

constexpr index kPaddedRows = 4, kPaddedLength = 6, kIn = 5, kOut = 6;
constexpr std::int32_t kPadded[kPaddedRows * kPaddedLength] = {3, 4, 5, 0, 0, 0, 7, 0, 0, 0, 0, 0,
                                                               1, 2, 3, 4, 5, 6, 8, 8, 2, 1, 0, 0};

// y, and the states after the last token of each sequence, of rows of a table.
struct Told {
  std::vector<float> y;
  std::vector<RecurrentState> states;
};

Told tell(const RecurrentLayers& layers, std::span<const std::int32_t> ids,
          Vec<const std::int32_t> offsets) {
  const auto table = noise(9 * kIn);
  std::vector<float> x;
  for (const std::int32_t id : ids) {
    x.insert(x.end(), table.begin() + id * kIn, table.begin() + (id + 1) * kIn);
  }
  Told told;
  told.y = output_of([&](Tape& t) {
    const auto n = static_cast<index>(ids.size());
    return layers.forward(t, t.constant(Rows<const float>(x.data(), n, kIn)), told.states,
                          lay_out_rows(t, n, offsets, {}));
  });
  return told;
}

void expect_row_of(const Tensor& all, index row, const Tensor& alone) {
  ASSERT_EQ(all.defined(), alone.defined());
  if (!all.defined()) return;
  EXPECT_EQ(to_vector(all.rows<float>().slice(row, row + 1)), to_vector(alone.rows<float>()));
}

// Spec M10: the lengths of a padded batch follow from the id of padding. No step of padding changes
// a state, so what a padded row carries to its end is the state after its last token.
TEST(PackedBits, APaddedBatchIsItsSequencesAlone) {
  const auto lengths =
      mask::lengths_of(Rows<const std::int32_t>(kPadded, kPaddedRows, kPaddedLength));
  ASSERT_THAT(lengths, testing::ElementsAre(3, 1, 6, 4));
  const auto offsets = offsets_of(lengths);
  std::vector<std::int32_t> ids;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const auto* first = kPadded + static_cast<index>(b) * kPaddedLength;
    ids.insert(ids.end(), first, first + lengths[b]);
  }
  for (const RecurrentKind kind :
       {RecurrentKind::kRnn, RecurrentKind::kGru, RecurrentKind::kLstm, RecurrentKind::kSru}) {
    ParameterSet set({});
    const RecurrentLayers layers({.kind = kind, .in = kIn, .hidden = kOut, .layers = 2},
                                 ParameterScope(set));
    randomise(set);
    const Told all = tell(layers, ids, offsets);
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      const std::int32_t own[] = {0, lengths[b]};
      const Told alone =
          tell(layers, {ids.data() + offsets[b], static_cast<std::size_t>(own[1])}, own);
      EXPECT_EQ(part(all.y, offsets[b], own[1], kOut), alone.y) << "sequence " << b;
      for (std::size_t layer = 0; layer < 2; ++layer) {
        expect_row_of(all.states[layer].hidden, static_cast<index>(b), alone.states[layer].hidden);
        expect_row_of(all.states[layer].cell, static_cast<index>(b), alone.states[layer].cell);
      }
    }
  }
}

}  // namespace
}  // namespace fovea

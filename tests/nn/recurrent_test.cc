// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/recurrent.h"

#include <gmock/gmock.h>

#include "tests/isa.h"
#include "tests/nn/recurrent_golden.h"
#include "tests/nn/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using enum RecurrentKind;
using testing::ElementsAre;
constexpr RecurrentKind kKinds[] = {kRnn, kGru, kLstm, kSru};

using Options = RecurrentLayersOptions;

Options options(RecurrentKind kind, index layers = 1, bool bidirectional = false) {
  return {.kind = kind, .in = 5, .hidden = 6, .layers = layers, .bidirectional = bidirectional};
}

std::vector<std::string> names_of(const ParameterSet& set) {
  std::vector<std::string> names;
  for (const Parameter* p : set.parameters()) names.push_back(p->name);
  return names;
}

// 3, 0, 1 and 6 rows.
constexpr std::int32_t kOffsets[] = {0, 3, 3, 4, 10};
PackedRows four_sequences(Tape& tape) { return lay_out_rows(tape, 10, {kOffsets, 5}, {}); }

// ----------------------------------------------------------------------------------- parameters

TEST(RecurrentLayers, HasTheNamesOfPyTorch) {
  ParameterSet set({});
  const RecurrentLayers layers(options(kGru, 2, true), ParameterScope(set)["rnn"]);
  EXPECT_THAT(
      names_of(set),
      ElementsAre("rnn.weight_ih_l0", "rnn.weight_hh_l0", "rnn.bias_l0", "rnn.bias_hn_l0",
                  "rnn.weight_ih_l0_reverse", "rnn.weight_hh_l0_reverse", "rnn.bias_l0_reverse",
                  "rnn.bias_hn_l0_reverse", "rnn.weight_ih_l1", "rnn.weight_hh_l1", "rnn.bias_l1",
                  "rnn.bias_hn_l1", "rnn.weight_ih_l1_reverse", "rnn.weight_hh_l1_reverse",
                  "rnn.bias_l1_reverse", "rnn.bias_hn_l1_reverse"));
  EXPECT_EQ(set.find("rnn.weight_ih_l1")->value.shape(), Shape({18, 12}));
  EXPECT_EQ(layers.out(), 12);
}

index size_of(const Options& o) {
  ParameterSet set({.memory = ParameterMemory::kShapesOnly});
  const RecurrentLayers layers(o, ParameterScope(set));
  return set.size();
}

// Spec L13: one bias a gate. An RNN(128, 128) has 2 * 128^2 + 128 values.
TEST(RecurrentLayers, HasOneBiasForEachGate) {
  const auto sized = [](RecurrentKind kind, index in) {
    return size_of({.kind = kind, .in = in, .hidden = 128});
  };
  EXPECT_EQ(sized(kRnn, 128), 32896);
  EXPECT_EQ(sized(kLstm, 128), 4 * 32896);
  EXPECT_EQ(sized(kGru, 128), 3 * 32896 + 128);
  EXPECT_EQ(sized(kSru, 128), 3 * 128 * 128 + 4 * 128);
  EXPECT_EQ(sized(kSru, 64), 4 * 128 * 64 + 4 * 128);
  EXPECT_EQ(size_of({.kind = kGru, .in = 8, .hidden = 8, .bias = Biases::kNone}), 6 * 64);
}

TEST(RecurrentLayers, StartsAsInPyTorchOrAsAsked) {
  const double bound = 1 / std::sqrt(6.0);
  ParameterSet set({}), normal({});
  const RecurrentLayers layers(options(kGru), ParameterScope(set));
  Options o = options(kGru);
  o.weight = Init::normal(0.01);
  const RecurrentLayers others(o, ParameterScope(normal));
  for (const Parameter* p : set.parameters()) {
    for (const float v : p->value.vec<float>()) {
      EXPECT_TRUE(v != 0 && std::abs(v) <= bound) << p->name;
    }
  }
  for (const Parameter* p : normal.parameters()) {
    const bool is_bias = p->name.starts_with("bias");
    EXPECT_EQ(p->decay == Decay::kNo, is_bias);
    for (const float v : p->value.vec<float>()) EXPECT_EQ(v == 0, is_bias) << p->name;
  }
}

// The gates stand in the order i, f, g, o.
TEST(RecurrentLayers, ForgetGatesOfAnLstmStartOpen) {
  for (const RecurrentKind kind : {kLstm, kGru}) {
    ParameterSet usual({.seed = 1}), open({.seed = 1});
    Options o = options(kind);
    const RecurrentLayers layers(o, ParameterScope(usual));
    o.forget_bias = 3;
    const RecurrentLayers others(o, ParameterScope(open));
    for (std::size_t n = 0; n < usual.parameters().size(); ++n) {
      const Parameter& parameter = *open.parameters()[n];
      const bool has_gates = kind == kLstm && parameter.name.starts_with("bias");
      const Vec<const float> was = usual.parameters()[n]->value.vec<float>();
      const Vec<const float> is = parameter.value.vec<float>();
      const index H = o.hidden;
      for (index i = 0; i < is.size; ++i) {
        const bool forgets = has_gates && H <= i && i < 2 * H;
        EXPECT_EQ(is[i], was[i] + (forgets ? 3.0F : 0.0F)) << parameter.name << " " << i;
      }
    }
  }
}

TEST(RecurrentLayers, RefusesWhatCannotBe) {
  ParameterSet set({});
  const ParameterScope scope(set);
  EXPECT_THROWS((RecurrentLayers({.in = 3, .hidden = 0}, scope)), kShape,
                "recurrent layers: sizes must be positive; in is 3, hidden 0, layers 1");
  EXPECT_THROWS((RecurrentLayers({.in = 3, .hidden = 2, .dropout = 1}, scope)), kOptionValue,
                "dropout must be in [0, 1); it is 1");
}

// --------------------------------------------------------------------------------------- values

double golden_value(index number, index i) {
  return static_cast<double>((i * i * 31 + i * 7919 + number * 104729 + 13) % 8191) / 8192 - 0.5;
}

template <class T>
std::vector<T> golden_values(index number, index n) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (index i = 0; i < n; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<T>(golden_value(number, i));
  }
  return values;
}

// y, the gradient of x, and of each parameter, of sum(y * golden_values(60)).
template <class T>
std::vector<std::vector<double>> results_of(RecurrentKind kind) {
  ParameterSet set({.dtype = kDTypeOf<T>});
  const RecurrentLayers layers(options(kind, 2, true), ParameterScope(set));
  index number = 0;
  for (Parameter* p : set.parameters()) {
    const auto values = golden_values<T>(number++, p->value.size());
    std::copy(values.begin(), values.end(), p->value.vec<T>().begin());
  }
  const auto numbers = golden_values<T>(50, 50), weights = golden_values<T>(60, 120);
  Tape tape{Context(2)};
  const Variable x = tape.input(Rows<const T>(numbers.data(), 10, 5));
  const Variable y = layers.forward(tape, x, four_sequences(tape), {});
  const auto in_double = [](const std::vector<T>& v) {
    return std::vector<double>(v.begin(), v.end());
  };
  std::vector<std::vector<double>> results{in_double(to_vector(y.value<T>()))};
  tape.backward(sum(tape, multiply(tape, y, tape.constant(Rows<const T>(weights.data(), 10, 12)))));
  results.push_back(in_double(to_vector(x.gradient<T>())));
  for (Parameter* p : set.parameters()) {
    results.push_back(in_double(to_vector(p->finished_gradient().vec<T>())));
  }
  return results;
}

// Sums of up to 120 terms through 12 steps of two layers: a bound of 1e-13 of the largest element
// is some hundred roundings.
TEST(RecurrentLayers, ResultsAndGradientsAreThoseOfPyTorch) {
  constexpr double kBound = 1e-13;
  for (const golden::RecurrentForm& form : golden::kRecurrentForms) {
    for_each_isa([&] {
      const auto results = results_of<double>(form.kind);
      ASSERT_EQ(results.size(), form.summaries.size());
      for (std::size_t i = 0; i < results.size(); ++i) {
        const golden::Summary& expected = form.summaries[i];
        const auto n = static_cast<double>(results[i].size());
        double square = 0, projection = 0;
        for (std::size_t e = 0; e < results[i].size(); ++e) {
          square += results[i][e] * results[i][e];
          projection +=
              results[i][e] * golden_value(100 + static_cast<index>(i), static_cast<index>(e));
        }
        const double error = kBound * expected.largest;
        EXPECT_NEAR(std::sqrt(square), expected.norm, error * std::sqrt(n))
            << form.name << ' ' << expected.name;
        EXPECT_NEAR(projection, expected.projection, error * n / 2)
            << form.name << ' ' << expected.name;
      }
    });
  }
}

TEST(RecurrentLayers, GradientIsThatOfTheForward) {
  for (const RecurrentKind kind : kKinds) {
    for (const bool bidirectional : {false, true}) {
      auto set = float64_set();
      const RecurrentLayers layers(options(kind, 2, bidirectional), ParameterScope(set));
      const auto x = noise<double>(50);
      expect_gradients(set, [&](Tape& tape) {
        return layers.forward(tape, tape.constant(Rows<const double>(x.data(), 10, 5)),
                              four_sequences(tape), {});
      });
    }
  }
}

// Spec M10: a batch of several lengths is each sequence alone.
TEST(RecurrentLayers, ASequenceHasTheSameBitsAloneAndAmongOthers) {
  for (const RecurrentKind kind : kKinds) {
    ParameterSet set({});
    const RecurrentLayers layers(options(kind, 2, true), ParameterScope(set));
    const auto x = noise(50);
    const Rows<const float> rows(x.data(), 10, 5);
    const auto all = output_of(
        [&](Tape& t) { return layers.forward(t, t.constant(rows), four_sequences(t), {}); });
    for (std::size_t s = 0; s < 4; ++s) {
      const index begin = kOffsets[s], end = kOffsets[s + 1];
      const auto one = output_of(
          [&](Tape& t) { return layers.forward(t, t.constant(rows.slice(begin, end)), {}, {}); });
      EXPECT_EQ(one, std::vector<float>(all.begin() + 12 * begin, all.begin() + 12 * end)) << s;
    }
  }
}

TEST(RecurrentLayers, GoesOnFromItsStatesWithTheSameBits) {
  for (const RecurrentKind kind : kKinds) {
    ParameterSet set({});
    const RecurrentLayers layers(options(kind, 3), ParameterScope(set));
    const auto x = noise(50);
    const Rows<const float> rows(x.data(), 10, 5);
    const auto all =
        output_of([&](Tape& t) { return layers.forward(t, t.constant(rows), {}, {}); });
    std::vector<RecurrentState> states;
    std::vector<float> parts;
    for (const auto& [begin, end] : {std::pair<index, index>{0, 4}, {4, 5}, {5, 5}, {5, 10}}) {
      const auto part = output_of(
          [&](Tape& t) { return layers.forward(t, t.constant(rows.slice(begin, end)), states); });
      parts.insert(parts.end(), part.begin(), part.end());
    }
    EXPECT_EQ(parts, all) << static_cast<int>(kind);
  }
}

// A state that was copied, as beam search does, is not changed by what goes on from it.
TEST(RecurrentLayers, StatesAreNotShared) {
  ParameterSet set({});
  const RecurrentLayers layers(options(kLstm), ParameterScope(set));
  const auto x = noise(5);
  std::vector<RecurrentState> states;
  const auto step = [&](std::vector<RecurrentState>& from) {
    return output_of([&](Tape& t) {
      return layers.forward(t, t.constant(Rows<const float>(x.data(), 1, 5)), from);
    });
  };
  step(states);
  auto a = states, b = states;
  const auto first = step(a);
  EXPECT_EQ(step(b), first);
  EXPECT_NE(step(a), first);
}

TEST(RecurrentLayers, DropoutIsBetweenLayersOnly) {
  const auto x = noise(50);
  const auto forward = [&](index layers, double p) {
    ParameterSet set({});
    Options o = options(kGru, layers);
    o.dropout = p;
    const RecurrentLayers layer(o, ParameterScope(set));
    Tape tape{Context(1)};
    return to_vector(layer
                         .forward(tape, tape.constant(Rows<const float>(x.data(), 10, 5)),
                                  four_sequences(tape), {1, 2, 3})
                         .value<float>());
  };
  EXPECT_EQ(forward(1, 0.5), forward(1, 0));
  EXPECT_NE(forward(2, 0.5), forward(2, 0));
}

}  // namespace
}  // namespace fovea

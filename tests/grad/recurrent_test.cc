// SPDX-License-Identifier: Apache-2.0
// The op beyond what every op is asked in ops_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/base/random.h"
#include "fovea/grad/ops.h"
#include "fovea/kernel/sru.h"
#include "tests/isa.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

using enum RecurrentKind;

std::vector<float> noise(index n, std::uint64_t number) {
  Random random(5, RandomUse::kTest, number);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& x : values) x = static_cast<float>(random.uniform(-0.3, 0.3));
  return values;
}

// Weights of both directions as parameters, and what comes out.
struct Layer {
  Layer(RecurrentKind k, index in, index H, std::size_t directions) : kind(k) {
    const index blocks = k == kSru ? sru_blocks(in, H) : recurrent_gates(k);
    parameters.resize(4 * directions);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const Shape shapes[] = {
          {blocks * H, in}, {k == kSru ? 2 : blocks * H, H}, {(k == kSru ? 2 : blocks) * H}, {H}};
      parameters[p].value = Tensor(shapes[p % 4]);
      const auto values = noise(parameters[p].value.size(), p);
      std::copy(values.begin(), values.end(), parameters[p].value.vec<float>().begin());
    }
  }

  Variable forward(Tape& tape, Variable x, const PackedRows& rows,
                   RecurrentState* state = nullptr) {
    std::vector<RecurrentWeights> weights;
    for (std::size_t p = 0; p < parameters.size(); p += 4) {
      weights.push_back({tape.parameter(parameters[p]), tape.parameter(parameters[p + 1]),
                         tape.parameter(parameters[p + 2])});
      if (kind == kGru) weights.back().bias_hn = tape.parameter(parameters[p + 3]);
    }
    return recurrent(tape, x, weights, rows, {.kind = kind, .state = state});
  }

  RecurrentKind kind;
  std::vector<Parameter> parameters;
};

// y and all gradients.
std::vector<std::vector<float>> results(const Context& context, Layer& layer,
                                        const std::vector<float>& x,
                                        const std::vector<std::int32_t>& offsets, index in) {
  Tape tape(context);
  const index N = offsets.back();
  const Variable input = tape.input(Rows<const float>(x.data(), N, in));
  const PackedRows rows = lay_out_rows(tape, N, offsets, {});
  const Variable y = layer.forward(tape, input, rows);
  std::vector<std::vector<float>> found{to_vector(y.value<float>())};
  for (Parameter& p : layer.parameters) p.clear_gradient();
  tape.backward(sum(tape, multiply(tape, y, y)));
  found.push_back(to_vector(input.gradient<float>()));
  for (Parameter& p : layer.parameters) {
    found.push_back(to_vector(p.finished_gradient().vec<float>()));
  }
  return found;
}

TEST(RecurrentOp, BitsDoNotDependOnThreads) {
  const std::vector<std::int32_t> offsets = {0, 9, 9, 10, 40, 47, 70};
  const auto x = noise(70 * 40, 99);
  for (const RecurrentKind kind : {kRnn, kGru, kLstm, kSru}) {
    Layer layer(kind, 40, 40, 2);
    for_each_isa([&] {
      const auto one = results(Context(1), layer, x, offsets, 40);
      for (const int threads : {2, 3, 8}) {
        EXPECT_EQ(results(Context(threads), layer, x, offsets, 40), one) << threads;
      }
    });
  }
}

TEST(RecurrentOp, TakesABatchWithoutRows) {
  for (const RecurrentKind kind : {kRnn, kGru, kLstm, kSru}) {
    Layer layer(kind, 3, 4, 2);
    const auto found = results(Context(2), layer, {0}, {0, 0, 0}, 3);
    EXPECT_TRUE(found[0].empty());
    for (const float g : found[2]) EXPECT_EQ(g, 0);
  }
}

TEST(RecurrentOp, StateIsThatAfterTheLastRowOfEachSequence) {
  Layer layer(kLstm, 3, 4, 1);
  const auto x = noise(15, 7);
  const std::int32_t offsets[] = {0, 3, 3, 5};
  Tape tape(Context(1), TapeMode::kInference);
  RecurrentState state;
  const Variable input = tape.constant(Rows<const float>(x.data(), 5, 3));
  const Variable y = layer.forward(tape, input, lay_out_rows(tape, 5, {offsets, 4}, {}), &state);
  ASSERT_EQ(state.hidden.shape(), Shape({3, 4}));
  for (index c = 0; c < 4; ++c) {
    EXPECT_EQ(state.hidden.rows<float>()[0][c], y.value<float>()[2][c]);
    EXPECT_EQ(state.hidden.rows<float>()[1][c], 0) << "no rows: it stays at the beginning";
    EXPECT_EQ(state.hidden.rows<float>()[2][c], y.value<float>()[4][c]);
    EXPECT_NE(state.cell.rows<float>()[2][c], 0);
  }
}

TEST(RecurrentOp, NamesWhatDoesNotFit) {
  Layer layer(kGru, 3, 4, 1), both(kGru, 3, 4, 2);
  const auto x = noise(16, 7);
  Tape tape{Context(1)};
  const auto input = [&](index columns) {
    return tape.constant(Rows<const float>(x.data(), 2, columns));
  };
  const std::int32_t offsets[] = {0, 1};
  EXPECT_THROWS(layer.forward(tape, input(4), {}), kShape,
                "recurrent: weight_ih must be [12, 4]; it is [12, 3]");
  EXPECT_THROWS(layer.forward(tape, input(3), {{offsets, 2}, {}, {}, {}}), kShape,
                "recurrent: offsets must run from 0 to the 2 rows; they run from 0 to 1");
  RecurrentState state;
  EXPECT_THROWS(layer.forward(tape, input(3), {}, &state), kShape,
                "a state is carried in inference only");
  EXPECT_THROWS(both.forward(tape, input(3), {}, &state), kShape,
                "only the forward direction has a state");
  tape.reset(TapeMode::kInference);
  state.hidden = Tensor({2, 4});
  EXPECT_THROWS(layer.forward(tape, input(3), {}, &state), kShape,
                "the state must be [1, 4]; it is float32 [2, 4]");
  layer.kind = kLstm;
  EXPECT_THROWS(layer.forward(tape, input(3), {}), kShape, "weight_ih must be [16, 3]");
}

}  // namespace
}  // namespace fovea

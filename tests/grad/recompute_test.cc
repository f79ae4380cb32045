// SPDX-License-Identifier: Apache-2.0
// Tape::recompute(): functions of which the result alone is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/grad/ops.h"
#include "fovea/grad/tape.h"
#include "fovea/reference/gradcheck.h"
#include "tests/grad/allocations.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

using testing::Each;
using testing::ElementsAre;

const float kX[] = {1, 2, 3, 4};

Variable four(Tape& tape) { return tape.input(Rows<const float>(kX, 2, 2)); }

template <class T>
std::vector<T> uniform(index n, int number) {
  Random random(5, RandomUse::kTest, static_cast<std::uint64_t>(number));
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& x : values) x = static_cast<T>(random.uniform(-1, 1));
  return values;
}

template <class T>
Parameter parameter_of(const Shape& shape, std::vector<T> values) {
  Parameter p;
  p.name = "p";
  p.value = Tensor::of<T>(shape, values);
  return p;
}

// Two layers with dropout, of x [N,C] and weights [C,C].
Variable two_layers(Tape& tape, Variable x, Parameter& w1, Parameter& w2, const PackedRows& rows) {
  const DropoutOptions dropped{0.5, {3, 1, 2}};
  const Variable h =
      linear(tape, x, tape.parameter(w1), {}, Activation::kGelu, ForReader::kProduct);
  const Variable y = linear(tape, h, tape.parameter(w2));
  return residual(tape, x, y, dropped, rows);
}

struct Layered {
  std::vector<float> loss, dx;
  std::vector<std::vector<float>> gradients;
  std::size_t peak = 0;

  bool operator==(const Layered& other) const {
    return loss == other.loss && dx == other.dx && gradients == other.gradients;
  }
};

Layered train_layers(InnerResults inner, int threads, Precision precision = Precision::kFloat32) {
  constexpr index N = 48, C = 32, kLayers = 8;
  std::vector<Parameter> weights;
  for (index n = 0; n < 2 * kLayers; ++n) {
    weights.push_back(parameter_of<float>({C, C}, uniform<float>(C * C, static_cast<int>(n))));
  }
  const std::vector<float> values = uniform<float>(N * C, 99);
  Layered result;
  Tape tape(Context(threads).with(precision));
  tape.set_inner_results(inner);
  for (int pass = 0; pass < 2; ++pass) {  // the second adds to the gradients of the first
    tape.reset();
    const std::int32_t offsets[] = {0, 20, N};
    const PackedRows rows = lay_out_rows(tape, N, {offsets, 3}, {});
    Variable x = tape.input(Rows<const float>(values.data(), N, C));
    const Variable first = x;
    for (std::size_t n = 0; n < weights.size(); n += 2) {
      const auto f = [x, &w1 = weights[n], &w2 = weights[n + 1], rows](Tape& t, Pass) {
        return two_layers(t, x, w1, w2, rows);
      };
      x = tape.recompute({x}, C, f);
    }
    const Variable loss = sum(tape, multiply(tape, x, x));
    tape.backward(loss, 0.01);
    result.loss = to_vector(loss.value<float>());
    result.dx = to_vector(first.gradient<float>());
  }
  for (Parameter& p : weights) {
    result.gradients.push_back(to_vector(p.finished_gradient().vec<float>()));
  }
  result.peak = tape.peak();
  return result;
}

TEST(Recompute, HasTheBitsOfWhatIsKeptAndLessMemory) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const Layered kept = train_layers(InnerResults::kKept, 1, precision);
    for (const int threads : {1, 2, 3}) {
      const Layered again = train_layers(InnerResults::kRecomputed, threads, precision);
      EXPECT_EQ(again, kept) << threads;
      EXPECT_LT(again.peak, 0.5 * static_cast<double>(kept.peak));
    }
  }
}

TEST(Recompute, GradientIsThatOfTheFunction) {
  Parameter a = parameter_of<double>({3, 3}, uniform<double>(9, 1)),
            b = parameter_of<double>({3, 3}, uniform<double>(9, 2));
  Parameter* const both[] = {&a, &b};
  const auto report = check_gradients(Context(2), both, [&](Tape& tape) {
    tape.set_inner_results(InnerResults::kRecomputed);
    const Variable x = linear(tape, tape.parameter(a), tape.parameter(b));
    const auto outer = [x, &a, &b](Tape& t, Pass) {
      const Variable inside = activation(t, Activation::kTanh, x);
      const auto inner = [x, inside, &a](Tape& u, Pass) {
        return multiply(u, linear(u, inside, u.parameter(a)), x);
      };
      return add(t, t.recompute({inside, x}, 3, inner), t.parameter(b));
    };
    return sum(tape, multiply(tape, tape.recompute({x}, 3, outer), x));
  });
  EXPECT_LE(report.error, 1e-7) << report.where;
}

TEST(Recompute, TellsThePasses) {
  Tape tape{Context(1)};
  tape.set_inner_results(InnerResults::kRecomputed);
  const Variable x = four(tape);
  std::vector<Pass> passes;
  const auto f = [x, &passes](Tape& t, Pass pass) {
    passes.push_back(pass);
    return scale(t, x, 3);
  };
  const Variable y = tape.recompute({x}, 2, f);
  EXPECT_THAT(to_vector(y.value<float>()), ElementsAre(3, 6, 9, 12));
  tape.backward(sum(tape, y));
  EXPECT_THAT(passes, ElementsAre(Pass::kFirst, Pass::kAgain));
  EXPECT_THAT(to_vector(x.gradient<float>()), Each(3));
  tape.reset(TapeMode::kInference);
  const Variable again = four(tape);
  tape.recompute({again}, 2, [again, &passes](Tape& t, Pass pass) {
    passes.push_back(pass);
    return scale(t, again, 3);
  });
  EXPECT_EQ(passes.size(), 3u);
}

TEST(Recompute, KeepsNothingInInference) {
  for (const InnerResults inner : {InnerResults::kKept, InnerResults::kRecomputed}) {
    Tape tape(Context(1), TapeMode::kInference);
    tape.set_inner_results(inner);
    const std::vector<float> values = uniform<float>(64 * 64, 1);
    Variable x = tape.constant(Rows<const float>(values.data(), 64, 64));
    const Variable first = x;
    for (int n = 0; n < 10; ++n) {
      const auto f = [x](Tape& t, Pass) {
        Variable y = x;
        for (int i = 0; i < 20; ++i) y = scale(t, y, 1);
        return y;
      };
      x = tape.recompute({x}, 64, f);
    }
    EXPECT_EQ(to_vector(x.value<float>()), to_vector(first.value<float>()));
    EXPECT_LT(tape.peak(), 35 * values.size() * sizeof(float));
  }
}

// Its parts are freed with the rest of the function, and split again.
TEST(Recompute, TheFunctionMaySplitItsInput) {
  for (const InnerResults inner : {InnerResults::kKept, InnerResults::kRecomputed}) {
    Tape tape{Context(1)};
    tape.set_inner_results(inner);
    const Variable x = four(tape), doubled = scale(tape, x, 2);
    const auto f = [doubled](Tape& t, Pass) {
      const index widths[] = {1, 1};
      return scale(t, split_columns(t, doubled, widths)[1], 5);
    };
    tape.backward(sum(tape, tape.recompute({doubled}, 1, f)));
    EXPECT_THAT(to_vector(x.gradient<float>()), ElementsAre(0, 10, 0, 10));
  }
}

TEST(Recompute, RefusesWhatItCannotMakeAgain) {
  Tape tape{Context(1)};
  tape.set_inner_results(InnerResults::kRecomputed);
  const Variable x = four(tape), other = scale(tape, x, 2);
  EXPECT_THROWS(tape.recompute({x}, 2, [x](Tape&, Pass) { return x; }), kShape, "by an op");
  EXPECT_THROWS(tape.recompute({x}, 3, [x](Tape& t, Pass) { return scale(t, x, 2); }), kShape,
                "must be float32 [2, 3]; it is float32 [2, 2]");
  const Variable y = tape.recompute({x}, 2, [x, other](Tape& t, Pass) { return add(t, x, other); });
  EXPECT_THROWS(tape.backward(sum(tape, y)), kShape, "not among its inputs");
}

TEST(Recompute, AllocatesNothingAfterItsFirstSteps) {
  Parameter p = parameter_of<float>({4096}, std::vector<float>(4096, 1));
  Tape tape{Context(1)};
  tape.set_inner_results(InnerResults::kRecomputed);
  const auto step = [&] {
    tape.reset();
    p.clear_gradient();
    Variable x = tape.parameter(p);
    for (int i = 0; i < 20; ++i) {
      const auto f = [x](Tape& t, Pass) { return scale(t, scale(t, x, 0.5), 2); };
      x = tape.recompute({x}, x.columns(), f);
    }
    tape.backward(sum(tape, x));
  };
  step();
  step();
  const auto before = allocations();
  const std::size_t capacity = tape.capacity();
  step();
  EXPECT_EQ(allocations(), before);
  EXPECT_EQ(tape.capacity(), capacity);
}

}  // namespace
}  // namespace fovea

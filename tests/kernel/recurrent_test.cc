// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/recurrent.h"

#include <array>
#include <cstdint>
#include <numeric>

#include "fovea/reference/recurrent.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

using enum RecurrentKind;
constexpr RecurrentKind kKinds[] = {kRnn, kGru, kLstm};
constexpr TimeDirection kDirections[] = {TimeDirection::kForward, TimeDirection::kReverse};

std::vector<std::int32_t> offsets_of(const std::vector<std::int32_t>& lengths) {
  std::vector<std::int32_t> offsets{0};
  for (const std::int32_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}
// None, one, two and many rows, equals and not, in no order.
const std::vector<std::int32_t> kLengths = {3, 0, 7, 1, 7, 2, 0, 12, 1};

// One direction of a layer with random numbers in all that the kernels read.
template <class T>
struct Problem {
  RecurrentKind kind;
  TimeDirection direction;
  std::vector<std::int32_t> offsets;
  Matrix<T> weight, bias_hn, inputs, first_hidden, first_cell, dy;

  static Problem random(std::uint64_t seed, RecurrentKind kind, TimeDirection direction,
                        const std::vector<std::int32_t>& lengths, index H) {
    Random r(seed, RandomUse::kTest);
    const auto offsets = offsets_of(lengths);
    const index N = offsets.back(), S = std::ssize(lengths);
    const index inputs = recurrent_gates(kind) * H;
    const double deviation = 1 / std::sqrt(static_cast<double>(H));
    return {kind,
            direction,
            offsets,
            Matrix<T>::random(r, inputs, H, deviation),
            Matrix<T>::random(r, 1, H, 0.3),
            Matrix<T>::random(r, N, inputs),
            Matrix<T>::random(r, S, H, 0.5),
            Matrix<T>::random(r, S, H, 0.5),
            Matrix<T>::random(r, N, H)};
  }
  template <class U>
  Problem<U> as() const {
    return {kind,
            direction,
            offsets,
            Matrix<U>(weight),
            Matrix<U>(bias_hn),
            Matrix<U>(inputs),
            Matrix<U>(first_hidden),
            Matrix<U>(first_cell),
            Matrix<U>(dy)};
  }
  index N() const { return offsets.back(); }
  index H() const { return weight.columns(); }
};

// The results: rows after the forward, and the gates after the backward.
template <class T>
struct Result {
  Matrix<T> hidden, cells, cell_tanh, gates, dgates;
  bool operator==(const Result&) const = default;
};

enum class From { kZero, kState };

template <class T>
RecurrentRun<T> run_of(const Problem<T>& p, Result<T>& r, From from) {
  for (index n = 0; n < p.N(); ++n) {
    std::copy_n(p.inputs.view()[n], p.inputs.columns(), r.gates.view()[n]);
  }
  RecurrentRun<T> run{.kind = p.kind,
                      .direction = p.direction,
                      .offsets = p.offsets,
                      .weight = p.weight.view(),
                      .bias_hn = p.kind == kGru ? p.bias_hn.vec() : Vec<const T>(),
                      .gates = r.gates.view(),
                      .hidden = r.hidden.view()};
  if (p.kind == kLstm) {
    run.cells = r.cells.view();
    run.cell_tanh = r.cell_tanh.view();
  }
  if (from == From::kZero) return run;
  run.first_hidden = p.first_hidden.view();
  if (p.kind == kLstm) run.first_cell = p.first_cell.view();
  return run;
}

template <class T>
Result<T> room_for(const Problem<T>& p) {
  const index N = p.N(), H = p.H(), gates = recurrent_blocks(p.kind) * H;
  return {Matrix<T>(N, H), Matrix<T>(N, H), Matrix<T>(N, H), Matrix<T>(N, gates),
          Matrix<T>(N, gates)};
}

// The kernels leave the gradients where the gates were.
template <class T>
RecurrentGradient<T> gradient_of(const Problem<T>& p, const RecurrentRun<T>& run, Result<T>& r) {
  for (index n = 0; n < p.N(); ++n) {
    std::copy_n(run.gates[n], run.gates.columns, r.dgates.view()[n]);
  }
  RecurrentGradient<T> gradient{run, {}, p.dy.view()};
  gradient.run.gates = r.dgates.view();
  gradient.run.first_hidden = gradient.run.first_cell = {};
  return gradient;
}

template <class T>
void forward(const Context& ctx, const RecurrentRun<T>& run) {
  PackedGates<T> packed;
  packed.pack(ctx, run.kind, run.weight);
  const PackedGates<T>* const weights[] = {&packed};
  recurrent_forward<T>(ctx, {&run, 1}, weights);
}

template <class T>
Result<T> fast(const Context& ctx, const Problem<T>& p, From from = From::kZero) {
  Result<T> r = room_for(p);
  const auto run = run_of(p, r, from);
  forward(ctx, run);
  auto gradient = gradient_of(p, run, r);
  PackedMatrix<T> packed;
  packed.pack(ctx, run.weight);
  gradient.weight = packed.panels();
  if (from == From::kZero) recurrent_backward<T>(ctx, {&gradient, 1});
  return r;
}

template <class T>
Result<T> plain(const Problem<T>& p, From from = From::kZero) {
  Result<T> r = room_for(p);
  const auto run = run_of(p, r, from);
  reference::recurrent_forward(run);
  const auto gradient = gradient_of(p, run, r);
  if (from == From::kZero) reference::recurrent_backward(gradient);
  return r;
}

void expect_result_no_worse(const Problem<float>& p, From from) {
  const auto f = fast(Context(2), p, from), g = plain(p, from);
  const auto exact = plain(p.as<double>(), from);
  expect_no_worse(f.hidden, g.hidden, exact.hidden, "hidden");
  expect_no_worse(f.cells, g.cells, exact.cells, "cells");
  expect_no_worse(f.cell_tanh, g.cell_tanh, exact.cell_tanh, "cell_tanh");
  if (p.kind != kRnn) expect_no_worse(f.gates, g.gates, exact.gates, "gates");
  if (from == From::kZero) expect_no_worse(f.dgates, g.dgates, exact.dgates, "dgates");
}

template <class F>
void for_each_form(F&& f) {
  for (const RecurrentKind kind : kKinds) {
    for (const TimeDirection direction : kDirections) {
      SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << ", direction "
                                      << static_cast<int>(direction));
      f(kind, direction);
    }
  }
}

TEST(Recurrent, ErrorIsAtMostTwiceThatOfThePlainFloat) {
  for_each_isa([] {
    for_each_form([](RecurrentKind kind, TimeDirection direction) {
      for (const index H : {1, 5, 16, 17, 40, 64, 100, 130}) {
        const auto p =
            Problem<float>::random(static_cast<std::uint64_t>(H), kind, direction, kLengths, H);
        expect_result_no_worse(p, From::kZero);
        if (H < 64) expect_result_no_worse(p, From::kState);
      }
    });
  });
}

// Every number of rows that a step may have, and one sequence whose columns threads share.
TEST(Recurrent, ErrorIsAtMostTwiceThatOfThePlainFloatForAnyNumberOfSequences) {
  for_each_isa([] {
    for_each_form([](RecurrentKind kind, TimeDirection direction) {
      for (const std::size_t sequences : {1, 2, 3, 11, 29}) {
        const std::vector<std::int32_t> lengths(sequences, 4);
        expect_result_no_worse(Problem<float>::random(sequences, kind, direction, lengths, 37),
                               From::kZero);
      }
    });
  });
}

TEST(Recurrent, AgreesWithThePlainLoopsInDouble) {
  for_each_isa([] {
    for_each_form([](RecurrentKind kind, TimeDirection direction) {
      const auto p = Problem<double>::random(3, kind, direction, kLengths, 21);
      const auto f = fast(Context(2), p), g = plain(p);
      EXPECT_LE(largest_difference(f.hidden.values(), g.hidden.values()), 1e-14);
      EXPECT_LE(largest_difference(f.dgates.values(), g.dgates.values()), 1e-13);
    });
  });
}

TEST(Recurrent, BitsDoNotDependOnThreads) {
  for_each_form([](RecurrentKind kind, TimeDirection direction) {
    for (const auto& lengths : {kLengths, std::vector<std::int32_t>{9}}) {
      const auto p = Problem<float>::random(5, kind, direction, lengths, 150);
      expect_same_for_threads([&](const Context& ctx) { return fast(ctx, p); });
    }
  });
}

TEST(Recurrent, TwoRunsAtOnceAreTwoRuns) {
  for_each_form([](RecurrentKind kind, TimeDirection direction) {
    for (const int threads : {1, 2, 8}) {
      const Context ctx(threads);
      const auto p = Problem<float>::random(6, kind, TimeDirection::kForward, kLengths, 33);
      const auto q = Problem<float>::random(7, kind, direction, kLengths, 33);
      auto rp = room_for(p), rq = room_for(q);
      const std::array runs{run_of(p, rp, From::kZero), run_of(q, rq, From::kZero)};
      std::array<PackedGates<float>, 2> gates;
      std::array<PackedMatrix<float>, 2> panels;
      for (std::size_t i = 0; i < 2; ++i) {
        gates[i].pack(ctx, kind, runs[i].weight);
        panels[i].pack(ctx, runs[i].weight);
      }
      recurrent_forward<float>(ctx, runs,
                               std::array<const PackedGates<float>*, 2>{&gates[0], &gates[1]});
      std::array gradients{gradient_of(p, runs[0], rp), gradient_of(q, runs[1], rq)};
      for (std::size_t i = 0; i < 2; ++i) gradients[i].weight = panels[i].panels();
      recurrent_backward<float>(ctx, gradients);
      EXPECT_TRUE(rp == fast(ctx, p)) << threads << " threads";
      EXPECT_TRUE(rq == fast(ctx, q)) << threads << " threads";
    }
  });
}

// The rows [begin, end) of a problem, as one sequence.
template <class T>
Problem<T> rows_of(const Problem<T>& p, index begin, index end) {
  Problem<T> q = p;
  q.offsets = {0, static_cast<std::int32_t>(end - begin)};
  q.inputs = Matrix<T>(end - begin, p.inputs.columns());
  q.dy = Matrix<T>(end - begin, p.H());
  for (index n = begin; n < end; ++n) {
    std::copy_n(p.inputs.view()[n], q.inputs.columns(), q.inputs.view()[n - begin]);
    std::copy_n(p.dy.view()[n], p.H(), q.dy.view()[n - begin]);
  }
  return q;
}

template <class T>
bool same_rows(const Matrix<T>& whole, index begin, const Matrix<T>& part) {
  for (index n = 0; n < part.rows(); ++n) {
    if (std::memcmp(whole.view()[begin + n], part.view()[n],
                    static_cast<std::size_t>(part.columns()) * sizeof(T)) != 0) {
      return false;
    }
  }
  return true;
}

TEST(Recurrent, ASequenceHasTheSameBitsAloneAndAmongOthers) {
  for_each_isa([] {
    for_each_form([](RecurrentKind kind, TimeDirection direction) {
      const auto p = Problem<float>::random(8, kind, direction, kLengths, 50);
      const auto all = fast(Context(2), p);
      for (std::size_t s = 0; s < kLengths.size(); ++s) {
        const auto one = fast(Context(2), rows_of(p, p.offsets[s], p.offsets[s + 1]));
        EXPECT_TRUE(same_rows(all.hidden, p.offsets[s], one.hidden)) << s;
        EXPECT_TRUE(same_rows(all.dgates, p.offsets[s], one.dgates)) << s;
      }
    });
  });
}

TEST(Recurrent, GoesOnFromAStateWithTheSameBits) {
  for_each_isa([] {
    for (const RecurrentKind kind : kKinds) {
      const auto p = Problem<float>::random(9, kind, TimeDirection::kForward, {9}, 50);
      const auto all = fast(Context(1), p);
      for (index n = 1; n < 9; ++n) {
        auto next = rows_of(p, n, n + 1);
        next.first_hidden = Matrix<float>(1, 50);
        next.first_cell = Matrix<float>(1, 50);
        std::copy_n(all.hidden.view()[n - 1], 50, next.first_hidden.view()[0]);
        std::copy_n(all.cells.view()[n - 1], 50, next.first_cell.view()[0]);
        EXPECT_TRUE(same_rows(all.hidden, n, fast(Context(2), next, From::kState).hidden)) << n;
      }
    }
  });
}

TEST(Recurrent, PreviousRowsAreThoseOfTheStepBefore) {
  const std::vector<std::int32_t> offsets = {0, 3, 3, 4};
  Matrix<float> hidden(4, 1), previous(4, 1);
  for (index n = 0; n < 4; ++n) hidden.at(n, 0) = static_cast<float>(n + 1);
  RecurrentRun<float> run{.offsets = offsets, .hidden = hidden.view()};
  previous_rows(Context(2), run, previous.view());
  EXPECT_THAT(previous.values(), testing::ElementsAre(0, 1, 2, 0));
  run.direction = TimeDirection::kReverse;
  previous_rows(Context(2), run, previous.view());
  EXPECT_THAT(previous.values(), testing::ElementsAre(2, 3, 0, 0));
}

// Saturated gates: exponentials that overflow must give 0 and 1.
TEST(Recurrent, LargeSumsSaturate) {
  for_each_isa([] {
    for (const RecurrentKind kind : kKinds) {
      auto p = Problem<float>::random(10, kind, TimeDirection::kForward, {4, 2}, 19);
      for (index n = 0; n < p.N(); ++n) {
        for (index c = 0; c < p.inputs.columns(); ++c) p.inputs.at(n, c) *= c % 3 == 0 ? 1e4f : 50;
      }
      expect_result_no_worse(p, From::kZero);
    }
  });
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  const Context ctx(1);
  const auto p = Problem<float>::random(1, kLstm, TimeDirection::kForward, {2, 1}, 4);
  auto r = room_for(p);
  auto run = run_of(p, r, From::kZero);
  PackedGates<float> packed;
  packed.pack(ctx, kLstm, p.weight.view());
  const PackedGates<float>* const weights[] = {&packed};
  const auto call = [&] { recurrent_forward<float>(ctx, {&run, 1}, weights); };
  run.gates = run.gates.columns_slice(0, 12);
  EXPECT_THROWS(call(), kShape, "recurrent: gates must be [3, 16]; it is [3, 12]");
  run = run_of(p, r, From::kZero);
  run.kind = kSru;
  EXPECT_THROWS(call(), kShape, "an SRU has kernels of its own");
  run.kind = kLstm;
  const std::vector<std::int32_t> short_of = {0, 2};
  run.offsets = short_of;
  EXPECT_THROWS(call(), kShape, "offsets must run from 0 to the 3 rows");
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/sru.h"

#include <cstdint>

#include "fovea/reference/recurrent.h"
#include "tests/kernel/support.h"

namespace fovea {
namespace {

enum class Highway { kInput, kBlock };

template <class T>
struct Problem {
  TimeDirection direction;
  Highway highway;
  std::vector<std::int32_t> offsets;
  Matrix<T> vectors, bias, inputs, x, first_cell, dy;

  template <class U>
  Problem<U> as() const {
    return {direction,       highway,           offsets,      Matrix<U>(vectors),
            Matrix<U>(bias), Matrix<U>(inputs), Matrix<U>(x), Matrix<U>(first_cell),
            Matrix<U>(dy)};
  }
  index N() const { return offsets.back(); }
  index H() const { return vectors.columns(); }
};

Problem<float> random_problem(TimeDirection direction, Highway highway, index H, index sequences) {
  Random r(static_cast<std::uint64_t>(H), RandomUse::kTest);
  std::vector<std::int32_t> offsets{0};
  for (index s = 0; s < sequences; ++s) {
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(s % 3 == 1 ? 0 : 1 + r.below(9)));
  }
  const index N = offsets.back(), blocks = highway == Highway::kBlock ? 4 : 3;
  return {direction,
          highway,
          offsets,
          Matrix<float>::random(r, 2, H),
          Matrix<float>::random(r, 1, 2 * H),
          Matrix<float>::random(r, N, blocks * H),
          Matrix<float>::random(r, N, H),
          Matrix<float>::random(r, sequences, H),
          Matrix<float>::random(r, N, H)};
}

template <class T>
struct Result {
  Matrix<T> hidden, cells, gates, dgates, dx, dvectors;
  bool operator==(const Result&) const = default;
};

template <class T, class Forward, class Backward>
Result<T> run(const Problem<T>& p, bool from_state, Forward&& forward, Backward&& backward) {
  const index N = p.N(), H = p.H();
  Result<T> r{Matrix<T>(N, H), Matrix<T>(N, H),       p.inputs,
              p.inputs,        Matrix<T>(N, H, T{1}), Matrix<T>(2, H)};
  SruRun<T> call{.direction = p.direction,
                 .offsets = p.offsets,
                 .vectors = p.vectors.view(),
                 .bias = p.bias.vec(),
                 .gates = r.gates.view(),
                 .cells = r.cells.view(),
                 .hidden = r.hidden.view()};
  if (p.highway == Highway::kInput) call.highway = p.x.view();
  if (from_state) call.first_cell = p.first_cell.view();
  forward(call);
  if (from_state) return r;
  r.dgates = r.gates;
  SruGradient<T> gradient{call, p.dy.view(), {}, Store::kAdd, r.dvectors.view()};
  gradient.run.gates = r.dgates.view();
  if (p.highway == Highway::kInput) gradient.dhighway = r.dx.view();
  backward(gradient);
  return r;
}

template <class T>
Result<T> fast(const Context& ctx, const Problem<T>& p, bool from_state = false) {
  return run(
      p, from_state, [&](const SruRun<T>& call) { sru_forward(ctx, call); },
      [&](const SruGradient<T>& g) { sru_backward(ctx, g); });
}
template <class T>
Result<T> plain(const Problem<T>& p, bool from_state = false) {
  return run(
      p, from_state, [](const SruRun<T>& call) { reference::sru_forward(call); },
      [](const SruGradient<T>& g) { reference::sru_backward(g); });
}

template <class F>
void for_each_form(F&& f) {
  for (const auto direction : {TimeDirection::kForward, TimeDirection::kReverse}) {
    for (const auto highway : {Highway::kInput, Highway::kBlock}) f(direction, highway);
  }
}

TEST(Sru, ErrorIsAtMostTwiceThatOfThePlainFloat) {
  for_each_isa([] {
    for_each_form([](TimeDirection direction, Highway highway) {
      for (const index H : {1, 7, 16, 33, 64, 100, 257}) {
        const auto p = random_problem(direction, highway, H, 40);
        for (const bool from_state : {false, true}) {
          const auto f = fast(Context(2), p, from_state), g = plain(p, from_state);
          const auto exact = plain(p.as<double>(), from_state);
          expect_no_worse(f.hidden, g.hidden, exact.hidden, "hidden");
          expect_no_worse(f.cells, g.cells, exact.cells, "cells");
          expect_no_worse(f.gates, g.gates, exact.gates, "gates");
          expect_no_worse(f.dgates, g.dgates, exact.dgates, "dgates");
          expect_no_worse(f.dx, g.dx, exact.dx, "dx");
          // The error of the plain loops in two long sums is luck.
          if (H > 1) expect_no_worse(f.dvectors, g.dvectors, exact.dvectors, "dvectors");
        }
      }
    });
  });
}

TEST(Sru, BitsDoNotDependOnThreads) {
  for_each_form([](TimeDirection direction, Highway highway) {
    for (const index sequences : {1, 50}) {
      const auto p = random_problem(direction, highway, 200, sequences);
      expect_same_for_threads([&](const Context& ctx) { return fast(ctx, p); });
    }
  });
}

TEST(Sru, TakesABatchWithoutRows) {
  for_each_form([](TimeDirection direction, Highway highway) {
    const auto r = fast(Context(2), random_problem(direction, highway, 5, 0));
    EXPECT_THAT(r.dvectors.values(), testing::Each(0));
  });
}

TEST(Sru, GoesOnFromAStateWithTheSameBits) {
  for_each_isa([] {
    auto p = random_problem(TimeDirection::kForward, Highway::kInput, 50, 1);
    const auto all = fast(Context(1), p);
    for (index n = 1; n < p.N(); ++n) {
      auto next = p;
      next.offsets = {0, 1};
      for (auto* matrix : {&next.inputs, &next.x, &next.dy}) {
        const auto whole = *matrix;
        *matrix = Matrix<float>(1, whole.columns());
        std::copy_n(whole.view()[n], whole.columns(), matrix->view()[0]);
      }
      std::copy_n(all.cells.view()[n - 1], 50, next.first_cell.view()[0]);
      const auto one = fast(Context(2), next, true);
      for (index c = 0; c < 50; ++c) EXPECT_EQ(one.hidden.at(0, c), all.hidden.at(n, c)) << n;
    }
  });
}

TEST(Sru, RefusesWhatDoesNotFit) {
  auto p = random_problem(TimeDirection::kForward, Highway::kBlock, 4, 3);
  p.inputs = Matrix<float>(p.N(), 12);
  EXPECT_THROWS(fast(Context(1), p), kShape, "sru: gates must be [");
}

}  // namespace
}  // namespace fovea

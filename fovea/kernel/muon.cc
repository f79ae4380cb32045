// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/muon.h"

#include <algorithm>
#include <cmath>

#include "fovea/base/check.h"
#include "fovea/base/memory.h"
#include "fovea/base/profile.h"
#include "fovea/kernel/gemm.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

namespace {

// Calls f(n) for every row of x.
template <class T, class F>
void for_rows(const Context& ctx, Rows<T> x, F&& f) {
  constexpr double kCost = 4;  // operations for one element
  ctx.for_ranges(x.rows, kCost * static_cast<double>(x.columns), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) f(n);
  });
}

// The Frobenius norm, with the same bits for any number of threads.
template <class T>
double norm_of(const Context& ctx, Rows<const T> x, Scratch& scratch) {
  double* const squares = scratch.allocate<double>(std::max<index>(x.rows, 1));
  for_rows(ctx, x, [&](index n) {
    double sum = 0;
    for (index c = 0; c < x.columns; ++c) {
      sum += static_cast<double>(x[n][c]) * static_cast<double>(x[n][c]);
    }
    squares[n] = sum;
  });
  double sum = 0;
  ctx.run_here([&] {
    for (index n = 0; n < x.rows; ++n) sum += squares[n];
  });
  return std::sqrt(sum);
}

// to = factor from, or factor from^T where the shapes say so.
template <class T>
void copy_scaled(const Context& ctx, Rows<const T> from, T factor, bool transposed, Rows<T> to) {
  for_rows(ctx, to, [&](index n) {
    for (index c = 0; c < to.columns; ++c) {
      to[n][c] = factor * (transposed ? from[c][n] : from[n][c]);
    }
  });
}

// C = A B.
template <class T>
void product(const Context& ctx, Rows<const T> a, Rows<const T> b, Form form, Rows<T> c) {
  Scratch scratch;
  const bool plain = form == Form::kPlain;
  const index size = packed_size<T>(plain ? b.rows : b.columns, plain ? b.columns : b.rows);
  matmul<T>(ctx, a, pack_into(ctx, b, form, scratch.allocate<T>(size)), c);
}

// One step of X, whose result is in Y. a and b are rooms for [R,R].
template <class T>
void newton_schulz_step(const Context& ctx, Rows<T> x, Rows<T> a, Rows<T> b, Rows<T> y) {
  product<T>(ctx, x, x, Form::kTransposed, a);
  product<T>(ctx, a, a, Form::kPlain, b);
  const auto of_identity = static_cast<T>(kNewtonSchulz[0]),
             of_a = static_cast<T>(kNewtonSchulz[1]), of_square = static_cast<T>(kNewtonSchulz[2]);
  for_rows(ctx, b, [&](index n) {
    for (index c = 0; c < b.columns; ++c) b[n][c] = of_a * a[n][c] + of_square * b[n][c];
    b[n][n] += of_identity;
  });
  product<T>(ctx, b, x, Form::kPlain, y);
}

}  // namespace

template <class T>
void orthogonalise(const Context& given, Rows<const T> x, Rows<T> out) {
  check_rows("orthogonalise", "out", out, x.rows, x.columns);
  const Context ctx = given.with(Precision::kFloat32);
  Scratch scratch;
  const bool transposed = x.rows > x.columns;
  const index R = std::min(x.rows, x.columns), C = std::max(x.rows, x.columns);
  const auto room = [&](index rows, index columns) {
    return Rows<T>(scratch.allocate<T>(rows * columns), rows, columns);
  };
  Rows<T> from = room(R, C), to = room(R, C);
  const Rows<T> a = room(R, R), b = room(R, R);
  const double norm = norm_of(ctx, x, scratch);
  copy_scaled<T>(ctx, x, static_cast<T>(norm > 0 ? 1 / norm : 0), transposed, from);
  for (int step = 0; step < kNewtonSchulzSteps; ++step) {
    newton_schulz_step(ctx, from, a, b, to);
    std::swap(from, to);
  }
  copy_scaled<T>(ctx, from, T{1}, transposed, out);
}

double muon_scratch_bytes(double rows, double columns) {
  const double R = std::min(rows, columns);
  return sizeof(float) * (4 * rows * columns + 2 * R * R);
}

template <class T>
void muon(const Context& ctx, const MuonSlot<T>& slot, const AdamWStep& step) {
  const index R = slot.value.rows, C = slot.value.columns;
  check_rows("muon", "gradient", slot.gradient, R, C);
  check_rows("muon", "m", slot.m, R, C);
  const AdamWOptions& o = step.options;
  const auto momentum = static_cast<T>(kMuonMomentum), scale = static_cast<T>(step.gradient_scale);
  Scratch scratch;
  const Rows<T> direction(scratch.allocate<T>(R * C), R, C);
  for_rows(ctx, direction, [&](index n) {
    for (index c = 0; c < C; ++c) {
      const T g = scale * slot.gradient[n][c];
      slot.m[n][c] = momentum * slot.m[n][c] + g;
      direction[n][c] = g + momentum * slot.m[n][c];
    }
  });
  orthogonalise<T>(ctx, direction, direction);
  const auto size = static_cast<T>(o.lr * 0.2 * std::sqrt(static_cast<double>(std::max(R, C))));
  const auto shrink = static_cast<T>(o.lr * o.weight_decay * slot.decay);
  for_rows(ctx, slot.value, [&](index n) {
    T* const x = slot.value[n];
    for (index c = 0; c < C; ++c) x[c] -= size * direction[n][c] + shrink * x[c];
  });
}

template void orthogonalise(const Context&, Rows<const float>, Rows<float>);
template void orthogonalise(const Context&, Rows<const double>, Rows<double>);
template void muon(const Context&, const MuonSlot<float>&, const AdamWStep&);
template void muon(const Context&, const MuonSlot<double>&, const AdamWStep&);

}  // namespace fovea

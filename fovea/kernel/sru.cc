// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/sru.h"

#include <algorithm>

#include "fovea/base/memory.h"
#include "fovea/base/profile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/sru.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void Scan(const detail::SruPart<T>& p) {
  const SruRun<T>& run = p.run;
  const index H = run.hidden.columns;
  const T *const v_f = run.vectors[0], *const v_r = run.vectors[1];
  const bool has_bias = !run.bias.empty();
  for (index k = 0; k < p.length(); ++k) {
    const index n = p.n(k);
    T *const gates = run.gates[n], *const cells = run.cells[n], *const hidden = run.hidden[n];
    const T *const before = p.cell_before(k), *const highway = p.highway(n);
    ForEachLane<T>(p.end - p.begin, [&](auto lanes, index i) {
      const index c = p.begin + i;
      const auto d = lanes.d;
      const auto cell = before == nullptr ? hn::Zero(d) : lanes.Load(before + c);
      auto f = hn::MulAdd(lanes.Load(v_f + c), cell, lanes.Load(gates + H + c));
      auto r = hn::MulAdd(lanes.Load(v_r + c), cell, lanes.Load(gates + 2 * H + c));
      if (has_bias) {
        f = hn::Add(f, lanes.Load(run.bias.data + c));
        r = hn::Add(r, lanes.Load(run.bias.data + H + c));
      }
      const auto one = lanes.Set(T{1});
      f = hn::Div(one, hn::Add(one, WeightOfMinus(d, f)));
      r = hn::Div(one, hn::Add(one, WeightOfMinus(d, r)));
      const auto u = lanes.Load(gates + c), x = lanes.Load(highway + c);
      const auto next = hn::MulAdd(f, hn::Sub(cell, u), u);
      lanes.Store(next, cells + c);
      lanes.Store(hn::MulAdd(r, hn::Sub(next, x), x), hidden + c);
      lanes.Store(f, gates + H + c);
      lanes.Store(r, gates + 2 * H + c);
    });
  }
}

// From the last step back; the forward's lines in reverse.
template <class T>
void ScanBack(const detail::SruPull<T>& p) {
  const SruRun<T>& run = p.part.run;
  const index H = run.hidden.columns, begin = p.part.begin, width = p.part.end - begin;
  const T *const v_f = run.vectors[0], *const v_r = run.vectors[1];
  const Rows<T> dx = p.gradient.dhighway;
  const bool add_dx = p.gradient.store_dhighway == Store::kAdd;
  std::fill_n(p.carry + begin, width, T{0});
  for (index k = p.part.length() - 1; k >= 0; --k) {
    const index n = p.part.n(k);
    T* const gates = run.gates[n];
    const T *const before = p.part.cell_before(k), *const highway = p.part.highway(n);
    const T *const cells = run.cells[n], *const dy = p.gradient.dy[n];
    T* const dhighway = run.highway.columns == 0 ? gates + 3 * H
                        : dx.data == nullptr     ? nullptr
                                                 : dx[n];
    const bool adds = add_dx && run.highway.columns != 0;
    ForEachLane<T>(width, [&](auto lanes, index i) {
      const index c = begin + i;
      const auto d = lanes.d;
      const auto u = lanes.Load(gates + c), f = lanes.Load(gates + H + c),
                 r = lanes.Load(gates + 2 * H + c), x = lanes.Load(highway + c);
      const auto cell = before == nullptr ? hn::Zero(d) : lanes.Load(before + c);
      const auto dh = lanes.Load(dy + c);
      const auto dhr = hn::Mul(dh, r);
      const auto dr =
          hn::Mul(hn::Mul(dh, hn::Sub(lanes.Load(cells + c), x)), hn::NegMulAdd(r, r, r));
      const auto dc = hn::Add(dhr, lanes.Load(p.carry + c));
      const auto dcf = hn::Mul(dc, f);
      const auto df = hn::Mul(hn::Mul(dc, hn::Sub(cell, u)), hn::NegMulAdd(f, f, f));
      auto carry = hn::MulAdd(lanes.Load(v_f + c), df, dcf);
      carry = hn::MulAdd(lanes.Load(v_r + c), dr, carry);
      lanes.Store(carry, p.carry + c);
      lanes.Store(hn::MulAdd(df, cell, lanes.Load(p.dv_f + c)), p.dv_f + c);
      lanes.Store(hn::MulAdd(dr, cell, lanes.Load(p.dv_r + c)), p.dv_r + c);
      lanes.Store(hn::Sub(dc, dcf), gates + c);
      lanes.Store(df, gates + H + c);
      lanes.Store(dr, gates + 2 * H + c);
      if (dhighway == nullptr) return;
      const auto dx_here = hn::Sub(dh, dhr);
      lanes.Store(adds ? hn::Add(dx_here, lanes.Load(dhighway + c)) : dx_here, dhighway + c);
    });
  }
}

auto ScanKernel() { return PerPrecision{Scan<float>, Scan<double>}; }
auto ScanBackKernel() { return PerPrecision{ScanBack<float>, ScanBack<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {
namespace {

HWY_EXPORT(ScanKernel);
HWY_EXPORT(ScanBackKernel);

// Vectors of one part hide each other's latency; parts of one sequence keep threads busy.
constexpr index kColumns = 64;
constexpr index kMostChunks = 32;
constexpr double kCost = 30;  // operations for one element

template <class T>
void check_run(const char* name, const SruRun<T>& run) {
  const index N = run.hidden.rows, H = run.hidden.columns;
  check(run.offsets.size >= 1 && run.offsets[0] == 0 && run.offsets[run.offsets.size - 1] == N,
        "{}: offsets must run from 0 to the {} rows", name, N);
  check_rows(name, "vectors", run.vectors, 2, H);
  check_optional(name, "bias", run.bias, "2 H", 2 * H);
  check_rows(name, "gates", run.gates, N, (run.highway.columns == 0 ? 4 : 3) * H);
  check_rows(name, "cells", run.cells, N, H);
  if (run.highway.columns != 0) check_rows(name, "highway", run.highway, N, H);
  if (run.first_cell.data != nullptr) {
    check_rows(name, "first_cell", run.first_cell, run.offsets.size - 1, H);
  }
}

/// Calls f(chunk, first sequence, last, first column, last) for parts that cover all sequences and
/// columns. Chunks of sequences depend on their number alone.
template <class T, class F>
void for_parts(const Context& ctx, const SruRun<T>& run, index chunks, F&& f) {
  const index S = run.offsets.size - 1, N = run.hidden.rows, H = run.hidden.columns;
  const index columns = (H + kColumns - 1) / kColumns;
  if (chunks == 0 || N == 0) return;
  const double cost = kCost * static_cast<double>(N * kColumns) / static_cast<double>(chunks);
  ctx.for_ranges(chunks * columns, cost, [&](index begin, index end) {
    for (index item = begin; item < end; ++item) {
      const index chunk = item / columns, column = item % columns * kColumns;
      f(chunk, chunk * S / chunks, (chunk + 1) * S / chunks, column,
        std::min(H, column + kColumns));
    }
  });
}

}  // namespace

template <class T>
void sru_forward(const Context& ctx, const SruRun<T>& run) {
  check_run("sru", run);
  const auto scan = FOVEA_DISPATCH(ScanKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("sru", run.hidden.rows, run.hidden.columns, 6));
  for_parts(ctx, run, run.offsets.size - 1,
            [&](index, index first, index last, index begin, index end) {
              for (index s = first; s < last; ++s) scan(detail::SruPart<T>{run, s, begin, end});
            });
}

template <class T>
void sru_backward(const Context& ctx, const SruGradient<T>& gradient) {
  const SruRun<T>& run = gradient.run;
  const index N = run.hidden.rows, H = run.hidden.columns;
  check_run("sru backward", run);
  check_rows("sru backward", "dy", gradient.dy, N, H);
  check_rows("sru backward", "dvectors", gradient.dvectors, 2, H);
  if (gradient.dhighway.data != nullptr) {
    check_rows("sru backward", "dhighway", gradient.dhighway, N, H);
  }
  const auto scan_back = FOVEA_DISPATCH(ScanBackKernel)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("sru backward", N, H, 9));
  const index chunks = std::min<index>(run.offsets.size - 1, kMostChunks);
  Scratch scratch;
  // Three rows for each chunk: the carry, dv_f and dv_r.
  const Rows<T> sums(scratch.allocate<T>(3 * chunks * H), 3 * chunks, H);
  ctx.run_here([&] { std::fill_n(sums.data, 3 * chunks * H, T{0}); });
  for_parts(ctx, run, chunks, [&](index chunk, index first, index last, index begin, index end) {
    for (index s = first; s < last; ++s) {
      scan_back(detail::SruPull<T>{{run, s, begin, end},
                                   gradient,
                                   sums[3 * chunk],
                                   sums[3 * chunk + 1],
                                   sums[3 * chunk + 2]});
    }
  });
  ctx.run_here([&] {
    for (index v = 0; v < 2; ++v) {
      T* const to = gradient.dvectors[v];
      std::fill_n(to, H, T{0});
      for (index chunk = 0; chunk < chunks; ++chunk) {
        const T* const from = sums[3 * chunk + 1 + v];
        for (index c = 0; c < H; ++c) to[c] += from[c];
      }
    }
  });
}

template void sru_forward(const Context&, const SruRun<float>&);
template void sru_forward(const Context&, const SruRun<double>&);
template void sru_backward(const Context&, const SruGradient<float>&);
template void sru_backward(const Context&, const SruGradient<double>&);

}  // namespace fovea
#endif  // HWY_ONCE

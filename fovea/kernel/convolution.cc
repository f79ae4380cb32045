// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/convolution.h"

#include <algorithm>
#include <memory>

#include "fovea/base/memory.h"
#include "fovea/base/profile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/convolution.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/kernel/activation-inl.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// An item is some pairs: their differences, four products, and their results never leave the
// second cache in between. Only the differences are written, for the gradient of the weights.

template <class T>
void Differences(const std::array<const T*, 4>& d, index C, const std::array<T*, 4>& v) {
  ForEachLane<T>(C, [=](auto lanes, index c) {
    const auto d0 = lanes.Load(d[0] + c), d1 = lanes.Load(d[1] + c);
    const auto d2 = lanes.Load(d[2] + c), d3 = lanes.Load(d[3] + c);
    lanes.Store(hn::Sub(d0, d2), v[0] + c);
    lanes.Store(hn::Add(d1, d2), v[1] + c);
    lanes.Store(hn::Sub(d2, d1), v[2] + c);
    lanes.Store(hn::Sub(d1, d3), v[3] + c);
  });
}

// Gradients of the products. The last of the four is negated; GradientOfTaps takes that back.
template <class T>
void ResultGradients(const T* dy0, const T* dy1, index C, const std::array<T*, 4>& m) {
  ForEachLane<T>(C, [=](auto lanes, index c) {
    const auto e0 = lanes.Load(dy0 + c), e1 = lanes.Load(dy1 + c);
    lanes.Store(e0, m[0] + c);
    lanes.Store(hn::Add(e0, e1), m[1] + c);
    lanes.Store(hn::Sub(e0, e1), m[2] + c);
    lanes.Store(e1, m[3] + c);
  });
}

template <class T>
void Weights(const T* taps, index C, T* u1, T* u2) {
  ForEachLane<T>(C, [=](auto lanes, index c) {
    const auto half = lanes.Set(T{1} / 2);
    const auto ends = hn::Add(lanes.Load(taps + c), lanes.Load(taps + 2 * C + c));
    const auto middle = lanes.Load(taps + C + c);
    lanes.Store(hn::Mul(half, hn::Add(ends, middle)), u1 + c);
    lanes.Store(hn::Mul(half, hn::Sub(ends, middle)), u2 + c);
  });
}

template <class T>
void GradientOfTaps(const std::array<T*, 4>& du, index C, Store store, T* dw) {
  ForEachLane<T>(C, [=](auto lanes, index c) {
    const auto half = lanes.Set(T{1} / 2);
    const auto du1 = lanes.Load(du[1] + c), du2 = lanes.Load(du[2] + c);
    const auto ends = hn::Mul(half, hn::Add(du1, du2));
    const auto put = [=](auto value, T* to) {
      lanes.Store(store == Store::kAdd ? hn::Add(lanes.Load(to), value) : value, to);
    };
    put(hn::Add(lanes.Load(du[0] + c), ends), dw + c);
    put(hn::Mul(half, hn::Sub(du1, du2)), dw + C + c);
    put(hn::Sub(ends, lanes.Load(du[3] + c)), dw + 2 * C + c);
  });
}

template <Activation kF, class T>
HWY_INLINE void FinishPair(const WinogradPair<T> p) {
  ForEachLane<T>(p.columns, [=](auto lanes, index c) {
    const auto m0 = lanes.Load(p.m[0] + c), m1 = lanes.Load(p.m[1] + c);
    const auto m2 = lanes.Load(p.m[2] + c), m3 = lanes.Load(p.m[3] + c);
    const auto finish = [=](auto s, T* y, T* slope) {
      if (p.bias != nullptr) s = hn::Add(s, lanes.Load(p.bias + c));
      if (p.store == Store::kAdd) s = hn::Add(s, lanes.Load(y + c));
      if (slope != nullptr) lanes.Store(ActivateGradient<kF>(lanes.d, s), slope + c);
      lanes.Store(Activate<kF>(lanes.d, s), y + c);
    };
    finish(hn::Add(m0, hn::Add(m1, m2)), p.y0, p.slope0);
    if (p.y1 != nullptr) finish(hn::Sub(hn::Sub(m1, m2), m3), p.y1, p.slope1);
  });
}

template <class T>
void Finish(Activation f, const WinogradPair<T>& p) {
  WithActivation(f, [&](auto constant) { FinishPair<constant()>(p); });
}

template <class T>
WinogradKernels<T> KernelsFor() {
  return {Differences<T>, ResultGradients<T>, Weights<T>, GradientOfTaps<T>, Finish<T>};
}
auto Kernels() { return PerPrecision{KernelsFor<float>(), KernelsFor<double>()}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {

namespace {

// Rows of panels: the terms [begin, end) of each sum. For packed pairs `begin` must be even.
template <class T>
Panels<T> terms(const Panels<T>& b, index begin, index end) {
  Panels<T> part = b;
  part.rows = end - begin;
  if (b.operands == Operands::kPaired && !b.pack) begin /= 2;
  const bool as_columns = b.pack == Form::kTransposed;
  part.data += as_columns ? begin : begin * b.row_stride;
  return part;
}

// The products of some taps with the windows of every sequence; threads wait only at the end.
template <class T>
class RunProducts {
 public:
  RunProducts(const Context& ctx, const WindowProduct<T>& p, index first_tap, index taps,
              const MatmulOptions<T>& options)
      : runs_(p.layout->runs.size),
        products_(scratch_.allocate<MatmulItems<T>>(runs_)),
        ends_(scratch_.allocate<index>(runs_)) {
    const index C = p.spread.columns, N = p.y.rows;
    const Panels<T> b = terms(p.taps, first_tap * C, (first_tap + taps) * C);
    work_ = product_work<T>("convolution", N, p.y.columns, taps * C);
    index items = 0;
    for (index i = 0; i < runs_; ++i) {
      const auto& run = p.layout->runs[i];
      const index first = run.spread - p.before + first_tap * p.dilation;
      const Rows<const T> a(p.spread[first], run.rows, taps * C, p.spread.stride);
      MatmulOptions<T> o = options;
      if (o.slope.data != nullptr) o.slope = o.slope.slice(run.packed, run.packed + run.rows);
      const auto* product = std::construct_at(products_ + i, ctx, a, b,
                                              p.y.slice(run.packed, run.packed + run.rows), o);
      items += product->size();
      ends_[i] = items;
    }
  }

  void compute(const Context& ctx) const {
    if (runs_ == 0) return;
    const ProfileScope scope(ctx, work_);
    ctx.for_each(ends_[runs_ - 1], [&](index item) {
      const index i = std::upper_bound(ends_, ends_ + runs_, item) - ends_;
      products_[i].run(i == 0 ? item : item - ends_[i - 1]);
    });
  }

 private:
  Scratch scratch_;
  index runs_;
  MatmulItems<T>* products_;
  index* ends_;  // of the items of each sequence
  Work work_;
};

}  // namespace

SpreadLayout SpreadLayout::of(Vec<const std::int32_t> offsets, index gap, Vec<Run> runs) {
  SpreadLayout layout{.runs = {}, .gap = gap, .rows = gap};
  index count = 0;
  for (index s = 0; s + 1 < offsets.size; ++s) {
    const index rows = offsets[s + 1] - offsets[s];
    if (rows == 0) continue;
    runs[count++] = {offsets[s], layout.rows, rows};
    layout.rows += rows + gap;
  }
  layout.runs = {runs.data, count};
  return layout;
}

template <class T>
void spread_rows(const Context& ctx, InRows<T> from, const SpreadLayout& layout, Rows<T> to) {
  const index C = from.columns;
  check_rows("spread_rows", "to", to, layout.rows, C);
  const ProfileScope scope(ctx, pass_over<T>("spread rows", layout.rows, C, 2));
  const auto* const runs = layout.runs.begin();
  const auto ends_before = [](const SpreadLayout::Run& run, index row) {
    return run.spread + run.rows <= row;
  };
  ctx.for_ranges(layout.rows, static_cast<double>(C), [&](index begin, index end) {
    const auto* run = std::lower_bound(runs, layout.runs.end(), begin, ends_before);
    for (index row = begin; row < end;) {
      const index next = run == layout.runs.end() ? end : std::min(end, run->spread);
      for (; row < next; ++row) std::fill_n(to[row], C, T{0});
      if (row == end) break;
      const index last = std::min(end, run->spread + run->rows);
      for (; row < last; ++row) std::copy_n(from[run->packed + row - run->spread], C, to[row]);
      ++run;
    }
  });
}

template <class T>
void window_product(const Context& ctx, const WindowProduct<T>& p) {
  check(p.taps.rows == p.width * p.spread.columns,
        "convolution: {} taps of {} columns need as many rows of weights; got {}", p.width,
        p.spread.columns, p.taps.rows);
  if (p.dilation == 1 || p.width == 1) {
    return RunProducts<T>(ctx, p, 0, p.width, p.options).compute(ctx);
  }
  // Rows of a window are not side by side: a product for each tap adds to those before it. The
  // first starts at the bias, the last applies the activation.
  for (index tap = 0; tap < p.width; ++tap) {
    MatmulOptions<T> o;
    if (tap == 0) o = {.bias = p.options.bias, .store = p.options.store};
    if (tap > 0) o.store = Store::kAdd;
    if (tap + 1 == p.width) {
      o.activation = p.options.activation;
      o.slope = p.options.slope;
    }
    RunProducts<T>(ctx, p, tap, 1, o).compute(ctx);
  }
}

template <class T>
void taps_gradient(const Context& ctx, const TapsGradient<T>& g) {
  const index in = g.x.columns, width = g.window.width;
  check_rows("convolution", "dw", g.dw, g.dy.columns, width * in);
  const index rows = std::max<index>(0, g.dy.rows - 2 * g.gap), first = g.gap - g.window.before();
  const Rows<const T> dy = g.dy.slice(g.gap, g.gap + rows);
  if (g.window.dilation == 1 || width == 1) {
    const Rows<const T> windows(g.x[first], rows, width * in, g.x.stride);
    return matmul_at_b<T>(ctx, dy, windows, g.dw, g.store);
  }
  for (index tap = 0; tap < width; ++tap) {
    const index begin = first + tap * g.window.dilation;
    matmul_at_b<T>(ctx, dy, g.x.slice(begin, begin + rows),
                   g.dw.columns_slice(tap * in, (tap + 1) * in), g.store);
  }
}

template <class T>
void reverse_taps(const Context& ctx, InRows<T> weight, index width, Rows<T> reversed) {
  const index out = weight.rows, in = reversed.columns;
  check(weight.columns == width * in && reversed.rows == width * out,
        "reverse_taps: [{}, {}] is not [{} x {}, {}] turned", reversed.rows, in, width, out, in);
  const ProfileScope scope(ctx, pass_over<T>("reverse taps", reversed.rows, in, 2));
  ctx.for_ranges(reversed.rows, static_cast<double>(in), [&](index begin, index end) {
    for (index row = begin; row < end; ++row) {
      const index tap = width - 1 - row / out;
      std::copy_n(weight[row % out] + tap * in, in, reversed[row]);
    }
  });
}

#define FOVEA_INSTANTIATE(T)                                                              \
  template void spread_rows(const Context&, Rows<const T>, const SpreadLayout&, Rows<T>); \
  template void window_product(const Context&, const WindowProduct<T>&);                  \
  template void taps_gradient(const Context&, const TapsGradient<T>&);                    \
  template void reverse_taps(const Context&, Rows<const T>, index, Rows<T>);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

namespace {

HWY_EXPORT(Kernels);

// The pairs of an item: fewer if threads would end at different times. No value depends on it.
index pairs_of_item(index pairs, int threads) {
  constexpr index kMost = 48, kLeast = 24, kItemsOfThread = 6;
  const bool enough = threads == 1 || pairs >= kItemsOfThread * kMost * threads;
  return enough ? kMost : kLeast;
}

// Calls f(pair, run of its sequence) for the pairs [begin, end).
template <class F>
void for_each_pair(const PairLayout& layout, index begin, index end, F&& f) {
  const auto* run = std::upper_bound(layout.runs.begin(), layout.runs.end(), begin,
                                     [](index pair, const auto& r) { return pair < r.pair; }) -
                    1;
  for (index pair = begin; pair < end; ++pair) {
    if (pair == run->pair + (run->rows + 1) / 2) ++run;
    f(pair, *run);
  }
}

template <class T>
Four<T> planes(T* memory, index rows, index columns) {
  Four<T> four;
  for (Rows<T>& plane : four) {
    plane = {memory, rows, columns};
    memory += rows * columns;
  }
  return four;
}

template <class T>
Four<T> slice(const Four<T>& four, index begin, index end) {
  return {four[0].slice(begin, end), four[1].slice(begin, end), four[2].slice(begin, end),
          four[3].slice(begin, end)};
}

template <class T>
std::array<T*, 4> row_of(const Four<T>& four, index row) {
  return {four[0][row], four[1][row], four[2][row], four[3][row]};
}

Work winograd_work(std::string_view what, index pairs, index out, index in, double bytes) {
  const double products = static_cast<double>(pairs) * static_cast<double>(out);
  return {what, {2 * pairs, out, 3 * in}, 8 * products * static_cast<double>(in), bytes};
}

// One item of the forward.
template <class T>
class PairsItem {
 public:
  PairsItem(const WinogradForward<T>& p, const WinogradKernels<T>& kernels, index begin, index end)
      : p_(p), kernels_(kernels), begin_(begin), end_(end) {
    const index C = p.x.columns, pairs = end - begin;
    const bool keeps = p.differences[0].data != nullptr;
    v_ = keeps ? slice(p.differences, begin, end)
               : planes(scratch_.allocate<T>(4 * pairs * C), pairs, C);
    m_ = planes(scratch_.allocate<T>(4 * pairs * p.y.columns), pairs, p.y.columns);
  }

  /// `alone` is a context of this thread.
  void compute(const Context& alone) {
    T* const zeros = scratch_.allocate<T>(p_.x.columns);
    alone.run_here([&] { make_differences(zeros); });
    for (std::size_t k = 0; k < 4; ++k) matmul<T>(alone, v_[k], p_.u[k], m_[k]);
    alone.run_here([&] { finish(); });
  }

 private:
  void make_differences(T* zeros) {
    const index C = p_.x.columns;
    std::fill_n(zeros, C, T{0});
    for_each_pair(*p_.layout, begin_, end_, [&](index pair, const PairLayout::Run& run) {
      const index first = 2 * (pair - run.pair) - p_.before;
      std::array<const T*, 4> d;
      for (index k = 0; k < 4; ++k) {
        const index row = first + k;
        d[static_cast<std::size_t>(k)] =
            row >= 0 && row < run.rows ? p_.x[run.packed + row] : zeros;
      }
      kernels_.differences(d, C, row_of(v_, pair - begin_));
    });
  }

  void finish() {
    const MatmulOptions<T>& o = p_.options;
    for_each_pair(*p_.layout, begin_, end_, [&](index pair, const PairLayout::Run& run) {
      const index row = 2 * (pair - run.pair), n = run.packed + row;
      const bool two = row + 1 < run.rows, slope = o.slope.data != nullptr;
      kernels_.finish(o.activation, {.m = row_of(m_, pair - begin_),
                                     .bias = o.bias.data,
                                     .columns = p_.y.columns,
                                     .store = o.store,
                                     .y0 = p_.y[n],
                                     .y1 = two ? p_.y[n + 1] : nullptr,
                                     .slope0 = slope ? o.slope[n] : nullptr,
                                     .slope1 = slope && two ? o.slope[n + 1] : nullptr});
    });
  }

  const WinogradForward<T>& p_;
  const WinogradKernels<T>& kernels_;
  index begin_, end_;
  Scratch scratch_;
  Four<T> v_, m_;
};

}  // namespace

PairLayout PairLayout::of(Vec<const std::int32_t> offsets, Vec<Run> runs) {
  index count = 0, pairs = 0;
  for (index s = 0; s + 1 < offsets.size; ++s) {
    const index rows = offsets[s + 1] - offsets[s];
    if (rows == 0) continue;
    runs[count++] = {offsets[s], pairs, rows};
    pairs += (rows + 1) / 2;
  }
  return {{runs.data, count}, pairs};
}

template <class T>
void winograd_weights(const Context& ctx, InRows<T> taps, Rows<T> u1, Rows<T> u2) {
  const index in = u1.columns;
  check_rows("winograd_weights", "taps", taps, u1.rows, 3 * in);
  check_rows("winograd_weights", "u2", u2, u1.rows, in);
  const auto kernels = FOVEA_DISPATCH(Kernels)().of<T>();
  const ProfileScope scope(ctx, pass_over<T>("winograd weights", u1.rows, in, 5));
  ctx.for_ranges(u1.rows, 4.0 * static_cast<double>(in), [&](index begin, index end) {
    for (index o = begin; o < end; ++o) kernels.weights(taps[o], in, u1[o], u2[o]);
  });
}

template <class T>
void winograd_forward(const Context& ctx, const WinogradForward<T>& p) {
  const index pairs = p.layout->pairs, out = p.y.columns;
  check_rows("winograd_forward", "y", p.y, p.x.rows, p.u[0].columns);
  const auto kernels = FOVEA_DISPATCH(Kernels)().of<T>();
  const double bytes = static_cast<double>(p.x.rows * (p.x.columns + out)) * sizeof(T);
  const ProfileScope scope(ctx, winograd_work("convolution", pairs, out, p.x.columns, bytes));
  const index size = pairs_of_item(pairs, ctx.threads());
  const auto compute = [&](const Context& alone, index item) {
    const index begin = item * size;
    PairsItem<T>(p, kernels, begin, std::min(pairs, begin + size)).compute(alone);
  };
  plan_item(ctx, [&](const Context& alone) { compute(alone, 0); });
  ctx.for_each((pairs + size - 1) / size, [&](index item) { compute(Context(1), item); });
}

template <class T>
void winograd_weight_gradient(const Context& ctx, const WinogradWeightGradient<T>& g) {
  const index pairs = g.layout->pairs, out = g.dy.columns, in = g.differences[0].columns;
  check_rows("winograd_weight_gradient", "dw", g.dw, out, 3 * in);
  const auto kernels = FOVEA_DISPATCH(Kernels)().of<T>();
  Scratch scratch;
  const auto dm = planes(scratch.allocate<T>(4 * pairs * out), pairs, out);
  const auto du = planes(scratch.allocate<T>(4 * out * in), out, in);
  {
    const ProfileScope scope(ctx, pass_over<T>("winograd gradients", 2 * pairs, out, 3));
    T* const zeros = scratch.allocate<T>(out);
    std::fill_n(zeros, out, T{0});
    ctx.for_ranges(pairs, 4.0 * static_cast<double>(out), [&](index begin, index end) {
      for_each_pair(*g.layout, begin, end, [&](index pair, const PairLayout::Run& run) {
        const index row = 2 * (pair - run.pair), n = run.packed + row;
        kernels.result_gradients(g.dy[n], row + 1 < run.rows ? g.dy[n + 1] : zeros, out,
                                 row_of(dm, pair));
      });
    });
  }
  {
    const Four<T>& v = g.differences;
    const std::array products = {
        MatmulAtBItems<T>(ctx, dm[0], v[0], du[0]), MatmulAtBItems<T>(ctx, dm[1], v[1], du[1]),
        MatmulAtBItems<T>(ctx, dm[2], v[2], du[2]), MatmulAtBItems<T>(ctx, dm[3], v[3], du[3])};
    const index items = products[0].size();
    const double bytes = 4 * static_cast<double>(pairs * (in + out) + in * out) * sizeof(T);
    const ProfileScope scope(ctx, winograd_work("convolution dW", pairs, out, in, bytes));
    ctx.for_each(4 * items, [&](index item) {
      products[static_cast<std::size_t>(item / items)].run(item % items);
    });
  }
  const ProfileScope scope(ctx, pass_over<T>("winograd dW", out, in, 7));
  ctx.for_ranges(out, 4.0 * static_cast<double>(in), [&](index begin, index end) {
    for (index o = begin; o < end; ++o) {
      kernels.gradient_of_taps(row_of(du, o), in, g.store, g.dw[o]);
    }
  });
}

#define FOVEA_INSTANTIATE(T)                                                       \
  template void winograd_weights(const Context&, Rows<const T>, Rows<T>, Rows<T>); \
  template void winograd_forward(const Context&, const WinogradForward<T>&);       \
  template void winograd_weight_gradient(const Context&, const WinogradWeightGradient<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea
#endif  // HWY_ONCE

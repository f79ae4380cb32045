// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/convolution.h"

#include <memory>

#include "fovea/base/memory.h"

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

}  // namespace fovea

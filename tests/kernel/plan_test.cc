// SPDX-License-Identifier: Apache-2.0
// A run of a loop takes the scratch memory that its kernel tells a plan.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "fovea/base/profile.h"
#include "fovea/kernel/convolution.h"
#include "fovea/kernel/gemm.h"
#include "tests/isa.h"

namespace fovea {
namespace {

// Bytes that f takes on a thread that has taken none before.
template <class F>
double taken(F&& f) {
  double bytes = 0;
  std::thread([&] {
    f();
    bytes = static_cast<double>(scratch_peak_of_thread());
  }).join();
  return bytes;
}

// `compute(context)` takes scratch memory in a loop alone.
template <class F>
void expect_planned(const Context& context, F&& compute) {
  Plan plan;
  compute(context.planned(plan));
  EXPECT_EQ(plan.thread_bytes(), taken([&] { compute(context); }));
}

struct Product {
  index M, N, K;
  index gap = 0;  // between the rows of the operands
};
// Widths that are whole panels, whole vectors or neither; rows that are pages apart or not; sums of
// one part and of several.
constexpr Product kProducts[] = {{390, 70, 390}, {100, 1030, 40}, {8, 2048, 400},  {7, 17, 33},
                                 {130, 64, 384}, {1, 1, 1},       {64, 96, 80, 16}};

template <class T>
struct Operands3 {
  std::vector<T> memory;
  Rows<T> a, b, c;

  Operands3(index a_rows, index a_columns, index b_rows, index b_columns, Product p)
      : memory(static_cast<std::size_t>(a_rows * (a_columns + p.gap) +
                                        b_rows * (b_columns + p.gap) + p.M * p.N)),
        a(memory.data(), a_rows, a_columns, a_columns + p.gap),
        b(a.data + a_rows * a.stride, b_rows, b_columns, b_columns + p.gap),
        c(b.data + b_rows * b.stride, p.M, p.N) {}
};

template <class T, class F>
void for_each_product(F&& f) {
  for_each_isa([&] {
    for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
      for (const Product& p : kProducts) {
        SCOPED_TRACE(testing::Message()
                     << isa_name(current_isa()) << " " << precision_name(precision) << " " << p.M
                     << " " << p.N << " " << p.K << " " << p.gap);
        f(Context(1).with(precision), p);
      }
    }
  });
}

template <class T>
void expect_products_planned() {
  for_each_product<T>([](const Context& context, const Product& p) {
    const Operands3<T> x(p.M, p.K, p.N, p.K, p);
    for (const Store store : {Store::kWrite, Store::kAdd}) {
      expect_planned(context, [&](const Context& ctx) {
        matmul<T>(ctx, x.a, panels_in_place<T>(x.b, Form::kTransposed, operands_of<T>(ctx)), x.c,
                  {.store = store});
      });
    }
    PackedMatrix<T> packed;
    packed.pack(context, x.b, Form::kTransposed);
    expect_planned(context, [&](const Context& ctx) { matmul<T>(ctx, x.a, packed, x.c); });
  });
}

TEST(KernelPlan, OfProductsIsTheirRun) {
  expect_products_planned<float>();
  expect_products_planned<double>();
}

template <class T>
void expect_at_b_planned() {
  for_each_product<T>([](const Context& context, const Product& p) {
    const Operands3<T> x(p.K, p.M, p.K, p.N, p);
    expect_planned(context, [&](const Context& ctx) { matmul_at_b<T>(ctx, x.a, x.b, x.c); });
  });
}

TEST(KernelPlan, OfProductsAtBIsTheirRun) {
  expect_at_b_planned<float>();
  expect_at_b_planned<double>();
}

TEST(KernelPlan, OfRoundedRowsIsTheirRun) {
  for_each_product<float>([](const Context& context, const Product& p) {
    if (operands_of<float>(context) != Operands::kPaired) return;
    const Operands3<float> x(p.M, p.K, p.N, p.K, p);
    std::vector<BFloat16> rounded(static_cast<std::size_t>(p.M * p.N));
    const Rows<BFloat16> c(rounded.data(), p.M, p.N);
    PackedMatrix<float> packed;
    packed.pack(context, x.b, Form::kTransposed);
    for (const Activation f : {Activation::kNone, Activation::kGelu}) {
      expect_planned(context, [&](const Context& ctx) {
        matmul<float>(ctx, x.a, packed, c, {.activation = f});
      });
    }
  });
}

TEST(KernelPlan, OfAWinogradConvolutionIsItsRun) {
  constexpr index kRows = 301, kIn = 72, kOut = 130;
  for_each_isa([] {
    const std::vector<std::int32_t> offsets{0, 100, kRows};
    std::vector<PairLayout::Run> runs(2);
    const PairLayout layout = PairLayout::of(offsets, {runs.data(), 2});
    std::vector<float> memory(kRows * (kIn + kOut) + 4 * kOut * kIn + 4 * layout.pairs * kIn);
    const Rows<float> x(memory.data(), kRows, kIn), y(x.data + kRows * kIn, kRows, kOut);
    float* const u = y.data + kRows * kOut;
    float* const v = u + 4 * kOut * kIn;
    WinogradForward<float> p{.x = x, .layout = &layout, .u = {}, .y = y, .options = {}};
    for (std::size_t k = 0; k < 4; ++k) {
      const Rows<const float> taps(u + static_cast<index>(k) * kOut * kIn, kOut, kIn);
      p.u[k] = panels_in_place<float>(taps, Form::kTransposed);
    }
    expect_planned(Context(1), [&](const Context& ctx) { winograd_forward<float>(ctx, p); });
    for (std::size_t k = 0; k < 4; ++k) {
      p.differences[k] = {v + static_cast<index>(k) * layout.pairs * kIn, layout.pairs, kIn};
    }
    expect_planned(Context(1), [&](const Context& ctx) { winograd_forward<float>(ctx, p); });
  });
}

}  // namespace
}  // namespace fovea

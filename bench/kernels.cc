// SPDX-License-Identifier: Apache-2.0
// How fast the kernels that are not products move memory, beside memcpy on the same threads in the
// same run:  fovea_bench_kernels [THREADS [MILLISECONDS]]
//
// Two sizes: what fits a core's second cache, and what fits none. GB/s counts what a kernel must
// read and write once; a share above 1 is faster than memcpy, which also reads and writes.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include "fovea/base/clock.h"
#include "fovea/base/memory.h"
#include "fovea/base/random.h"
#include "fovea/kernel/adamw.h"
#include "fovea/kernel/cross_entropy.h"
#include "fovea/kernel/dropout.h"
#include "fovea/kernel/elementwise.h"
#include "fovea/kernel/embedding.h"
#include "fovea/kernel/norm.h"
#include "fovea/kernel/softmax.h"
#include "fovea/simd/isa.h"

namespace fovea {
namespace {

struct Case {
  std::string_view name;
  double arrays;  // read or written, of N x C floats each
  std::function<void()> run;
};

// The arrays that all cases share.
struct Data {
  Data(index rows, index columns) : N(rows), C(columns) {
    Random random(1, RandomUse::kTest);
    for (Rows<float>& x : all) {
      x = Rows<float>(arena.allocate<float>(N * C), N, C);
      for (index i = 0; i < N * C; ++i) x.data[i] = static_cast<float>(random.uniform(-3, 3));
    }
    for (index i = 0; i < N * C; ++i) all[5].data[i] = std::abs(all[5].data[i]);
    for (index n = 0; n < N; ++n) ids.push_back(static_cast<std::int32_t>(random.below(C)));
    gain.assign(static_cast<std::size_t>(C), 1.0f);
    dgain.assign(static_cast<std::size_t>(C), 0.0f);
    rows_of_table.assign(static_cast<std::size_t>(C * C), 0.5f);
  }
  index N, C;
  Arena arena;
  std::array<Rows<float>, 6> all;
  std::vector<std::int32_t> ids;
  std::vector<float> gain, dgain, rows_of_table;

  Vec<const std::int32_t> targets() const { return {ids.data(), N}; }
  Vec<float> gains() { return {gain.data(), C}; }
  Vec<float> gain_gradients() { return {dgain.data(), C}; }
  Rows<float> table() { return {rows_of_table.data(), C, C}; }
};

void parallel_memcpy(const Context& ctx, Rows<const float> x, Rows<float> y) {
  const index bytes = x.rows * x.columns * static_cast<index>(sizeof(float));
  ctx.for_ranges(bytes, 1, [&](index begin, index end) {
    std::memcpy(reinterpret_cast<char*>(y.data) + begin,
                reinterpret_cast<const char*>(x.data) + begin,
                static_cast<std::size_t>(end - begin));
  });
}

std::vector<Case> elementwise_cases(const Context& ctx, Data& data) {
  const Rows<float> x = data.all[0], y = data.all[1], z = data.all[2];
  std::vector<Case> cases = {
      {"memcpy", 2, [=] { parallel_memcpy(ctx, x, y); }},
      {"add", 3, [=] { add_forward(ctx, x, z, y); }},
      {"accumulate", 3, [=] { accumulate(ctx, x, y); }},
      {"scale", 2, [=] { scale(ctx, 1.0001, x, y); }},
      {"dropout", 2, [=] { dropout_forward(ctx, {.p = 0.1}, x, y); }},
      {"dropout_add", 3, [=] { dropout_add_forward(ctx, {.p = 0.1}, x, z, y); }},
  };
  using enum Activation;
  constexpr std::array kNames = {std::pair(kRelu, "relu"), std::pair(kGelu, "gelu"),
                                 std::pair(kGeluTanh, "gelu-tanh"), std::pair(kSilu, "silu"),
                                 std::pair(kTanh, "tanh")};
  for (const auto& [f, name] : kNames) {
    cases.push_back({name, 2, [=, f = f] { activation_forward(ctx, f, x, y); }});
    cases.push_back({"  backward", 3, [=, f = f] { activation_backward(ctx, f, x, z, y); }});
  }
  return cases;
}

std::vector<Case> row_cases(const Context& ctx, Data& data) {
  const Rows<float> x = data.all[0], y = data.all[1], z = data.all[2], w = data.all[3];
  Data* const d = &data;
  const Rows<float> saved(w.data, data.N, 2);
  const LayerNormBackward<float> backward{.x = x,
                                          .gain = d->gains(),
                                          .saved = saved,
                                          .dy = z,
                                          .dx = y,
                                          .dgain = d->gain_gradients(),
                                          .dbias = d->gain_gradients()};
  return {
      {"softmax", 2, [=] { softmax_forward(ctx, x, y); }},
      {"  backward", 3, [=] { softmax_backward(ctx, x, z, y); }},
      {"layer_norm", 2,
       [=] {
         layer_norm_forward(ctx, x, {d->gains(), d->gains()}, {}, y, saved);
       }},
      {"  backward", 3, [=] { layer_norm_backward(ctx, backward); }},
      {"cross_entropy", 2,
       [=] {
         cross_entropy(ctx, x, {d->targets(), -1}, 1, Vec<float>{w.data, d->N}, y);
       }},
      {"embedding", 1,
       [=] {
         embedding_forward<float>(ctx, {d->table(), d->targets()}, {}, y);
       }},
      {"  backward", 1, [=] { embedding_backward(ctx, d->targets(), 1, x, d->table()); }},
  };
}

std::vector<Case> optimizer_cases(const Context& ctx, Data& data) {
  const Rows<float> x = data.all[0], y = data.all[1], u = data.all[4], v = data.all[5];
  const index n = data.N * data.C;
  const AdamWSlot<float> slot{{y.data, n}, {x.data, n}, {u.data, n}, {v.data, n}};
  return {{"global_norm", 1,
           [=] {
             if (global_norm<float>(ctx, {&slot, 1}) < 0) std::abort();
           }},
          {"adamw", 7, [=] {
             adamw<float>(ctx, {&slot, 1}, {.options = {.lr = 1e-9}});
           }}};
}

// Seconds a call, the fastest of rounds that together last `seconds`.
double fastest(double seconds, const std::function<void()>& run) {
  double best = 1e30;
  run();
  const double begin = monotonic_seconds();
  while (monotonic_seconds() - begin < seconds) {
    const double start = monotonic_seconds();
    for (int i = 0; i < 4; ++i) run();
    best = std::min(best, (monotonic_seconds() - start) / 4);
  }
  return best;
}

void run_size(const Context& ctx, index N, index C, double seconds) {
  Data data(N, C);
  const double array = static_cast<double>(N * C) * sizeof(float);
  fmt::print("\n[{}, {}], {:.1f} MB an array\n{:<16}{:>10}{:>12}\n", N, C, array / 1e6, "", "GB/s",
             "of memcpy");
  std::vector<Case> cases = elementwise_cases(ctx, data);
  for (const auto& more : {row_cases(ctx, data), optimizer_cases(ctx, data)})
    cases.insert(cases.end(), more.begin(), more.end());
  const std::function<void()> copy = cases.front().run;
  for (const Case& c : cases) {
    const double before = fastest(seconds / 3, copy);
    const double rate = c.arrays * array / fastest(seconds, c.run);
    const double copy_rate = 2 * array / std::min(before, fastest(seconds / 3, copy));
    fmt::print("{:<16}{:>10.1f}{:>12.2f}\n", c.name, rate / 1e9, rate / copy_rate);
  }
}

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) {
  using namespace fovea;
  const Context ctx(argc > 1 ? std::atoi(argv[1]) : 0);
  const double seconds = (argc > 2 ? std::atof(argv[2]) : 60) / 1000;
  fmt::print("{} threads, {}\n", ctx.threads(), isa_name(current_isa()));
  run_size(ctx, 128, 256, seconds);
  run_size(ctx, 16384, 512, seconds);
  return 0;
}

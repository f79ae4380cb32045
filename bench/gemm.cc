// SPDX-License-Identifier: Apache-2.0
// Our matrix products against oneDNN's (weights packed beforehand for both) and against a loop of
// multiply-adds in registers, at the shapes of Transformers:
//
//   fovea_bench_gemm [THREADS [MILLISECONDS [float32|bf16]]]
//
// In bf16 ours reads float32 and rounds it in each product; oneDNN is given bfloat16 that was
// rounded beforehand. The loop is that of bfloat16, if the machine has it.
//
// Samples are interleaved (loop, ours, loop, oneDNN, loop); what is printed are medians of ratios
// within a round, so that what others do on the machine meanwhile cancels out.
#include "fovea/kernel/gemm.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "fovea/base/clock.h"
#include "fovea/base/precision.h"
#include "fovea/simd/peak.h"

#ifdef FOVEA_HAVE_DNNL
#include <omp.h>

#include <dnnl.hpp>
#include <unordered_map>
#endif

namespace fovea {
namespace {

// C [M,N], a sum of K terms; which of the three products of a linear layer it is.
enum class Product { kForward, kInputGradient, kWeightGradient };

struct Problem {
  Product product;
  index M, N, K;
  double flops() const { return 2.0 * static_cast<double>(M * N * K); }
};

struct Operands {
  explicit Operands(const Problem& p) : a(p.M * p.K), b(p.K * p.N), c(p.M * p.N) {
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = 0.01f * static_cast<float>((i * 7) % 13) - 0.06f;
    for (std::size_t i = 0; i < b.size(); ++i)
      b[i] = 0.01f * static_cast<float>((i * 5) % 11) - 0.05f;
  }
  std::vector<float> a, b, c;
};

// B lies as W does: [N,K] (PyTorch's order) forward, [K,N] for the gradient of the input. For the
// gradient of the weights A lies as [K,M] and neither is packed beforehand.
std::function<void()> our_product(const Context& ctx, const Problem& p, Operands& x) {
  const Rows<float> c(x.c.data(), p.M, p.N);
  if (p.product == Product::kWeightGradient) {
    const Rows<const float> a(x.a.data(), p.K, p.M), b(x.b.data(), p.K, p.N);
    return [=] { matmul_at_b(ctx, a, b, c); };
  }
  const Rows<const float> a(x.a.data(), p.M, p.K);
  auto packed = std::make_shared<PackedMatrix<float>>();
  if (p.product == Product::kForward) {
    packed->pack(ctx, Rows<const float>(x.b.data(), p.N, p.K), Form::kTransposed);
  } else {
    packed->pack(ctx, Rows<const float>(x.b.data(), p.K, p.N));
  }
  return [=] { matmul(ctx, a, *packed, c); };
}

#ifdef FOVEA_HAVE_DNNL
// The values, or their bfloat16s in the same memory, whose address stays.
std::vector<float> in_precision(const std::vector<float>& values, Precision precision) {
  if (precision == Precision::kFloat32) return values;
  std::vector<float> memory(values.size());
  auto* const halves = reinterpret_cast<BFloat16*>(memory.data());
  for (std::size_t i = 0; i < values.size(); ++i) halves[i] = to_bfloat16(values[i]);
  return memory;
}

std::function<void()> onednn_product(const Context& ctx, const Problem& p, Operands& x) {
  using dnnl::memory;
  using tag = memory::format_tag;
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static dnnl::stream stream(engine);
  const bool rounds = ctx.precision() == Precision::kBFloat16;
  const auto f32 = memory::data_type::f32, in = rounds ? memory::data_type::bf16 : f32;
  static std::vector<float> a_values, b_values;
  a_values = in_precision(x.a, ctx.precision());
  b_values = in_precision(x.b, ctx.precision());
  const bool packs = p.product != Product::kWeightGradient;
  const memory::desc a({p.M, p.K}, in, packs ? tag::ab : tag::ba);
  const memory::desc plain({p.K, p.N}, in, p.product == Product::kForward ? tag::ba : tag::ab);
  const memory::desc b = packs ? memory::desc({p.K, p.N}, in, tag::any) : plain;
  const memory::desc c({p.M, p.N}, f32, tag::ab);
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), engine);
  memory weights(plain, engine, b_values.data());
  if (description.weights_desc() != plain) {
    memory packed(description.weights_desc(), engine);
    dnnl::reorder(weights, packed).execute(stream, weights, packed);
    stream.wait();
    weights = packed;
  }
  const std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, {a, engine, a_values.data()}},
                                                  {DNNL_ARG_WEIGHTS, weights},
                                                  {DNNL_ARG_DST, {c, engine, x.c.data()}}};
  return [matmul = dnnl::matmul(description), arguments] {
    matmul.execute(stream, arguments);
    stream.wait();
  };
}
constexpr bool kHaveOneDnn = true;
void set_onednn_threads(int threads) { omp_set_num_threads(threads); }
#else
std::function<void()> onednn_product(const Context&, const Problem&, Operands&) { return {}; }
constexpr bool kHaveOneDnn = false;
void set_onednn_threads(int) {}
#endif

double gflops(const std::function<void()>& f, double flops, int repeats) {
  const double begin = monotonic_seconds();
  for (int i = 0; i < repeats; ++i) f();
  return flops * repeats / (monotonic_seconds() - begin) / 1e9;
}

// OpenMP's threads spin for a while after their work, and would take a core from ours.
void let_threads_sleep() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

void compare(const Context& ctx, const Problem& p, double seconds) {
  constexpr std::array kNames = {"forward", "dx", "dW"};
  Operands x(p);
  const auto ours = our_product(ctx, p, x), theirs = onednn_product(ctx, p, x);
  for (int i = 0; i < 3; ++i) {
    ours();
    if (theirs) theirs();
  }
  const int repeats = std::max(1, static_cast<int>(seconds * 1e11 * ctx.threads() / p.flops()));
  std::vector<double> our_speed, our_share, their_share, ratio;
  for (int round = 0; round < 11; ++round) {
    let_threads_sleep();
    const double before = peak_gflops(ctx, seconds);
    ours();
    const double our = gflops(ours, p.flops(), repeats);
    const double between = peak_gflops(ctx, seconds);
    our_speed.push_back(our);
    our_share.push_back(2 * our / (before + between));
    if (!theirs) continue;
    theirs();
    const double their = gflops(theirs, p.flops(), repeats);
    let_threads_sleep();
    const double after = peak_gflops(ctx, seconds);
    their_share.push_back(2 * their / (between + after));
    ratio.push_back(our / their);
  }
  fmt::print(
      "{:8} M {:5} N {:5} K {:5}  {:6.1f} GF/s  of peak {:.3f}  oneDNN {:.3f}  ratio {:.3f}\n",
      kNames[static_cast<std::size_t>(p.product)], p.M, p.N, p.K, median(our_speed),
      median(our_share), median(their_share), median(ratio));
  std::fflush(stdout);
}

void run(int threads, double seconds, Precision precision) {
  const Context ctx = Context(threads).with(precision);
  set_onednn_threads(ctx.threads());
  fmt::print("{} threads, {}, {}{}\n", ctx.threads(), isa_name(current_isa()),
             precision_name(precision), kHaveOneDnn ? "" : "; oneDNN is not installed");
  constexpr std::array<std::array<index, 2>, 8> kWeights = {{{128, 128},
                                                             {128, 512},
                                                             {512, 128},
                                                             {384, 1536},
                                                             {1536, 384},
                                                             {768, 768},
                                                             {768, 3072},
                                                             {3072, 768}}};
  for (const auto& [in, out] : kWeights) {
    for (const index rows : {64, 640, 768, 2048, 4096}) {
      compare(ctx, {Product::kForward, rows, out, in}, seconds);
      compare(ctx, {Product::kInputGradient, rows, in, out}, seconds);
      compare(ctx, {Product::kWeightGradient, out, in, rows}, seconds);
    }
  }
}

}  // namespace
}  // namespace fovea

int main(int argc, char** argv) {
  using fovea::Precision;
  const std::string_view precision = argc > 3 ? argv[3] : "float32";
  const bool rounds = precision == "bf16";
  if (!rounds && precision != "float32") {
    fmt::print(stderr, "fovea_bench_gemm [THREADS [MILLISECONDS [float32|bf16]]]\n");
    return 2;
  }
  fovea::run(argc > 1 ? std::atoi(argv[1]) : 0, (argc > 2 ? std::atof(argv[2]) : 1.0) / 1000,
             rounds ? Precision::kBFloat16 : Precision::kFloat32);
}

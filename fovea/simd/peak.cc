// SPDX-License-Identifier: Apache-2.0
#include "fovea/simd/peak.h"

#include <algorithm>
#include <atomic>

#include "fovea/base/clock.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/simd/peak.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/amx-inl.h"
#include "fovea/simd/pairs-inl.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// Twelve sums are more than latency times throughput of every machine known (10), and fit the 16
// registers of SSE and AVX2. Returns what was summed, so that nothing is optimised away.
HWY_NOINLINE float FmaLoop(index rounds, float x) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, x);
  // The sums start with different values; otherwise the compiler would merge them.
  auto s0 = hn::Iota(d, 0), s1 = hn::Iota(d, 1), s2 = hn::Iota(d, 2), s3 = hn::Iota(d, 3);
  auto s4 = hn::Iota(d, 4), s5 = hn::Iota(d, 5), s6 = hn::Iota(d, 6), s7 = hn::Iota(d, 7);
  auto s8 = hn::Iota(d, 8), s9 = hn::Iota(d, 9), s10 = hn::Iota(d, 10), s11 = hn::Iota(d, 11);
  const auto b = hn::Set(d, 0.5f);
  for (index i = 0; i < rounds; ++i) {
    s0 = hn::MulAdd(s0, b, a), s1 = hn::MulAdd(s1, b, a), s2 = hn::MulAdd(s2, b, a);
    s3 = hn::MulAdd(s3, b, a), s4 = hn::MulAdd(s4, b, a), s5 = hn::MulAdd(s5, b, a);
    s6 = hn::MulAdd(s6, b, a), s7 = hn::MulAdd(s7, b, a), s8 = hn::MulAdd(s8, b, a);
    s9 = hn::MulAdd(s9, b, a), s10 = hn::MulAdd(s10, b, a), s11 = hn::MulAdd(s11, b, a);
  }
  const auto t0 = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(s4, s5));
  const auto t1 = hn::Add(hn::Add(hn::Add(s6, s7), hn::Add(s8, s9)), hn::Add(s10, s11));
  return hn::GetLane(hn::Add(t0, t1));
}

// The loop with two multiplications and additions in each lane, and twice the sums: the latency of
// vdpbf16ps is six cycles on Zen 5, where twelve sums reach .92 of its speed.
HWY_NOINLINE float PairLoop([[maybe_unused]] index rounds, [[maybe_unused]] float x) {
#if FOVEA_PAIRS
  constexpr int kSums = 24;
  const auto a = hn::Set(PairTag(), static_cast<BFloat16Pair>(x));
  const auto b = hn::Set(PairTag(), BFloat16Pair{0x3f003f00});
  Vector<float> sum[kSums];
  for (auto& s : sum) s = hn::Zero(Tag<float>());
  for (index i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
    for (auto& s : sum) s = AddProduct(a, b, s);
  }
  for (int s = 1; s < kSums; ++s) sum[0] = hn::Add(sum[0], sum[s]);
  return hn::GetLane(sum[0]);
#else
  return 0;
#endif
}

// The loop on tile registers: the four products of a step of a block.
HWY_NOINLINE float TileLoop([[maybe_unused]] index rounds, [[maybe_unused]] float x) {
#if FOVEA_PAIRS
  alignas(64) BFloat16Pair pairs[kTileSide * kTileSide];
  alignas(64) float sums[kTileSide * kTileSide];
  std::fill_n(pairs, kTileSide * kTileSide, static_cast<BFloat16Pair>(x));
  PairTiles tiles;
  tiles.configure({{kTileSide, kTileSide}, kTileSide});
  tiles.load<kTileA>(pairs, kTileSide), tiles.load<kTileA + 1>(pairs, kTileSide);
  tiles.load<kTileB>(pairs, kTileSide), tiles.load<kTileB + 1>(pairs, kTileSide);
  for (index i = 0; i < rounds; ++i) {
    tiles.add_product<0, kTileA, kTileB>(), tiles.add_product<1, kTileA, kTileB + 1>();
    tiles.add_product<2, kTileA + 1, kTileB>(), tiles.add_product<3, kTileA + 1, kTileB + 1>();
  }
  tiles.store<0>(sums, kTileSide);
  return sums[0];
#else
  return 0;
#endif
}

index FlopsOfARound() { return 2 * 12 * static_cast<index>(hn::Lanes(hn::ScalableTag<float>())); }

Isa CompiledIsa() {
  switch (HWY_TARGET) {
    case HWY_AVX3:
      return has_tiles() ? Isa::kAmx : Isa::kAvx512;
    case HWY_AVX2:
      return Isa::kAvx2;
    case HWY_SSE4:
      return Isa::kSse4;
    case HWY_SSSE3:
      return Isa::kSsse3;
    default:
      return Isa::kScalar;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {

HWY_EXPORT(FmaLoop);
HWY_EXPORT(PairLoop);
HWY_EXPORT(TileLoop);
HWY_EXPORT(FlopsOfARound);
HWY_EXPORT(CompiledIsa);

namespace {

// The GFLOP/s of a loop whose rounds take `flops` each.
double gflops_of(float (*loop)(index rounds, float x), index flops, const Context& ctx,
                 double seconds) {
  constexpr index kRounds =
      20000;  // some 70 us: reading the clock may cost one on virtual machines
  std::atomic<index> rounds{0};
  std::atomic<float> keep{0};
  const auto run_for = [&](double limit) {
    rounds = 0;
    const double begin = monotonic_seconds();
    ctx.for_each(ctx.threads(), [&](index) {
      while (monotonic_seconds() - begin < limit) {
        keep.store(loop(kRounds, 1.0f), std::memory_order_relaxed);
        rounds.fetch_add(kRounds, std::memory_order_relaxed);
      }
    });
    return monotonic_seconds() - begin;
  };
  run_for(0.0003);  // wakes the threads
  const double taken = run_for(seconds);
  return static_cast<double>(rounds.load() * flops) / taken / 1e9;
}

}  // namespace

double fma_gflops(const Context& ctx, double seconds) {
  return gflops_of(FOVEA_DISPATCH(FmaLoop), FOVEA_DISPATCH(FlopsOfARound)(), ctx, seconds);
}

double bfloat16_gflops(const Context& ctx, double seconds) {
  if (has_tiles()) {
    constexpr index kFlops = 4 * 2 * 16 * 16 * 32;  // of four registers of 16 x 16 sums of 32 terms
    return gflops_of(FOVEA_DISPATCH(TileLoop), kFlops, ctx, seconds);
  }
  return gflops_of(FOVEA_DISPATCH(PairLoop), 4 * FOVEA_DISPATCH(FlopsOfARound)(), ctx, seconds);
}

double peak_gflops(const Context& ctx, double seconds) {
  const bool rounds = ctx.precision() == Precision::kBFloat16;
  return rounds && has_bfloat16_products() ? bfloat16_gflops(ctx, seconds)
                                           : fma_gflops(ctx, seconds);
}

double best_peak_gflops(const Context& ctx) {
  double best = 0;
  for (int n = 0; n < 8; ++n) best = std::max(best, peak_gflops(ctx));
  return best;
}

Isa compiled_isa() { return FOVEA_DISPATCH(CompiledIsa)(); }

}  // namespace fovea
#endif  // HWY_ONCE

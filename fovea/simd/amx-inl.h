// SPDX-License-Identifier: Apache-2.0
// Products of pairs of bfloat16 on the tile registers of AMX: C [rows, lanes] from A [rows, depth]
// and B [depth, lanes], as in product-inl.h, where depth counts pairs. Only call what is here where
// the instruction set is amx, or with EmulatedTiles.
//
// A register of C has 16 x 16 sums. One instruction adds to it the products of 16 rows of 16 pairs
// of A with 16 rows of 16 pairs of B: 16 times what vdpbf16ps does. Four registers of C, two of A
// and two of B make a block of 32 rows and 32 lanes: two loads, of a kilobyte each, for every two
// instructions. Blocks at the end of the rows and of the sum are smaller registers. A sum of 32
// pairs has two registers of C and of A, and four of B that stay for all rows: two loads and two
// stores for four instructions.
//
// Bits: the sum is cut into parts of 16 pairs from its first pair on. In each part the first and
// the second values of the pairs are summed alone, from 0, then both are added, and that is added
// to C. So a value of C depends neither on rows or lanes nor on how a sum is cut into several calls
// whose parts begin at multiples of 16 pairs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "fovea/base/precision.h"
#include "fovea/base/types.h"
#include "fovea/base/view.h"

#if defined(FOVEA_SIMD_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_AMX_INL_H_
#undef FOVEA_SIMD_AMX_INL_H_
#else
#define FOVEA_SIMD_AMX_INL_H_
#endif

#include "fovea/simd/pairs-inl.h"
#include "fovea/simd/simd-inl.h"
#include "fovea/simd/tile_operands-inl.h"
#include "fovea/simd/transpose-inl.h"

#if FOVEA_PAIRS
HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

// The tile registers, and the same in plain C++.

/// The registers: C[r][l] = 2 r + l for two blocks of rows and two of lanes, then A and B
/// (MultiplyTwoSteps has its own, which are all whole).
inline constexpr int kTileA = 4, kTileB = 6;

/// The sizes of all registers. rows[1] is 0 if there are at most 16 rows.
struct TileShape {
  index rows[2];
  index pairs;  ///< of a row of A, and rows of B

  friend bool operator==(const TileShape&, const TileShape&) = default;

  struct Register {
    index rows, columns;
  };
  Register at(int tile) const {
    if (tile >= kTileB) return {pairs, kTileSide};
    if (tile >= kTileA) return {rows[tile - kTileA], pairs};
    return {rows[tile / 2], kTileSide};
  }
};

/// The registers of the processor. They are free for others once it is destroyed.
class AmxTiles {
 public:
  AmxTiles() = default;
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
  ~AmxTiles() { asm volatile("tilerelease" ::: "memory"); }

  /// Clears all registers.
  void configure(const TileShape& shape) {
    alignas(64) Layout layout = {};
    for (int tile = 0; tile < 8; ++tile) {
      const auto [rows, columns] = shape.at(tile);
      if (rows == 0 || columns == 0) continue;
      layout.rows[tile] = static_cast<std::uint8_t>(rows);
      layout.bytes_of_row[tile] = static_cast<std::uint16_t>(columns * 4);
    }
    asm volatile("ldtilecfg %0" ::"m"(layout));
  }
  template <int kTile>
  HWY_INLINE void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  /// Rows of 32-bit values, `stride` values apart.
  template <int kTile>
  HWY_INLINE void load(const void* from, index stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(4 * stride), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  HWY_INLINE void store(float* to, index stride) const {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(4 * stride), "i"(kTile)
                 : "memory");
  }
  template <int kC, int kA, int kB>
  HWY_INLINE void add_product() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
  }

 private:
  struct Layout {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t bytes_of_row[16] = {};
    std::uint8_t rows[16] = {};
  };
  static_assert(sizeof(Layout) == 64);
};

/// The tile registers in plain C++, which round as the processor does but for denormals: for tests
/// where there is no AMX.
class EmulatedTiles {
 public:
  void configure(const TileShape& shape) {
    shape_ = shape;
    std::memset(values_, 0, sizeof(values_));
  }
  template <int kTile>
  void zero() {
    std::memset(values_[kTile], 0, sizeof(values_[kTile]));
  }
  template <int kTile>
  void load(const void* from, index stride) {
    const auto [rows, columns] = shape_.at(kTile);
    for (index r = 0; r < rows; ++r) {
      std::memcpy(values_[kTile][r], static_cast<const char*>(from) + 4 * r * stride,
                  static_cast<std::size_t>(4 * columns));
    }
  }
  template <int kTile>
  void store(float* to, index stride) const {
    const auto [rows, columns] = shape_.at(kTile);
    for (index r = 0; r < rows; ++r) {
      std::memcpy(to + r * stride, values_[kTile][r], static_cast<std::size_t>(4 * columns));
    }
  }
  template <int kC, int kA, int kB>
  void add_product() {
    const auto [rows, columns] = shape_.at(kC);
    for (index r = 0; r < rows; ++r) {
      for (index c = 0; c < columns; ++c) {
        float first = 0, second = 0;
        for (index k = 0; k < shape_.pairs; ++k) {
          const BFloat16Pair a = values_[kA][r][k], b = values_[kB][k][c];
          first = std::fma(half(a), half(b), first);
          second = std::fma(half(a >> 16), half(b >> 16), second);
        }
        float sum;
        std::memcpy(&sum, &values_[kC][r][c], sizeof(sum));
        sum += first + second;
        std::memcpy(&values_[kC][r][c], &sum, sizeof(sum));
      }
    }
  }

 private:
  static float half(BFloat16Pair pair) {
    return to_float(BFloat16{static_cast<std::uint16_t>(pair)});
  }

  TileShape shape_ = {};
  std::uint32_t values_[8][kTileSide][kTileSide] = {};
};

#ifdef FOVEA_EMULATE_AMX
using PairTiles = EmulatedTiles;
#else
using PairTiles = AmxTiles;
#endif

/// Part of the sum of a block of C of up to 32 rows and 32 lanes.
struct TileBlock {
  const BFloat16Pair* a;
  index a_row;
  const BFloat16Pair* b;
  index b_row;
  index steps;  ///< each as many pairs as the registers hold
  float* c;
  index c_row;
  bool from_zero;
  LinesAhead* ahead;  ///< or null
};

template <bool kTwoRows, bool kTwoLanes, class Tiles>
HWY_INLINE void StartTiles(Tiles& tiles, const TileBlock& o) {
  if (o.from_zero) {
    tiles.template zero<0>();
    if constexpr (kTwoLanes) tiles.template zero<1>();
    if constexpr (kTwoRows) tiles.template zero<2>();
    if constexpr (kTwoRows && kTwoLanes) tiles.template zero<3>();
    return;
  }
  float* const below = o.c + kTileSide * o.c_row;
  tiles.template load<0>(o.c, o.c_row);
  if constexpr (kTwoLanes) tiles.template load<1>(o.c + kTileSide, o.c_row);
  if constexpr (kTwoRows) tiles.template load<2>(below, o.c_row);
  if constexpr (kTwoRows && kTwoLanes) tiles.template load<3>(below + kTileSide, o.c_row);
}

template <bool kTwoRows, bool kTwoLanes, class Tiles>
HWY_INLINE void StoreTiles(const Tiles& tiles, const TileBlock& o) {
  float* const below = o.c + kTileSide * o.c_row;
  tiles.template store<0>(o.c, o.c_row);
  if constexpr (kTwoLanes) tiles.template store<1>(o.c + kTileSide, o.c_row);
  if constexpr (kTwoRows) tiles.template store<2>(below, o.c_row);
  if constexpr (kTwoRows && kTwoLanes) tiles.template store<3>(below + kTileSide, o.c_row);
}

template <bool kTwoRows, bool kTwoLanes, class Tiles>
HWY_NOINLINE void MultiplyTiles(Tiles& tiles, const TileBlock& o) {
  constexpr int kLinesOfStep = 4;
  StartTiles<kTwoRows, kTwoLanes>(tiles, o);
  const BFloat16Pair *a = o.a, *b = o.b;
  for (index k = 0; k < o.steps; ++k, a += kTileSide, b += kTileSide * o.b_row) {
    tiles.template load<kTileB>(b, o.b_row);
    tiles.template load<kTileA>(a, o.a_row);
    tiles.template add_product<0, kTileA, kTileB>();
    if constexpr (kTwoLanes) {
      tiles.template load<kTileB + 1>(b + kTileSide, o.b_row);
      tiles.template add_product<1, kTileA, kTileB + 1>();
    }
    if constexpr (kTwoRows) {
      tiles.template load<kTileA + 1>(a + kTileSide * o.a_row, o.a_row);
      tiles.template add_product<2, kTileA + 1, kTileB>();
    }
    if constexpr (kTwoRows && kTwoLanes) tiles.template add_product<3, kTileA + 1, kTileB + 1>();
    if (o.ahead == nullptr) continue;
    LinesAhead::Row next = o.ahead->row();
    for (int line = 0; line < kLinesOfStep; ++line) o.ahead->ask(next);
    o.ahead->continue_at(next);
  }
  StoreTiles<kTwoRows, kTwoLanes>(tiles, o);
}

/// Multiplies 32 lanes, whole registers, two steps and any number of 16 rows; registers of B stay
/// for all of them. A load or store takes longer than a product (experiments.md); here are fewer.
template <bool kFromZero, class Tiles>
HWY_NOINLINE void MultiplyTwoSteps(Tiles& tiles, const TileBlock& o, index rows) {
  const BFloat16Pair* const below = o.b + kTileSide * o.b_row;
  tiles.template load<4>(o.b, o.b_row);
  tiles.template load<5>(o.b + kTileSide, o.b_row);
  tiles.template load<6>(below, o.b_row);
  tiles.template load<7>(below + kTileSide, o.b_row);
  for (index row = 0; row < rows; row += kTileSide) {
    const BFloat16Pair* const a = o.a + row * o.a_row;
    float* const c = o.c + row * o.c_row;
    if constexpr (kFromZero) {
      tiles.template zero<0>();
      tiles.template zero<1>();
    } else {
      tiles.template load<0>(c, o.c_row);
      tiles.template load<1>(c + kTileSide, o.c_row);
    }
    tiles.template load<2>(a, o.a_row);
    tiles.template load<3>(a + kTileSide, o.a_row);
    tiles.template add_product<0, 2, 4>();
    tiles.template add_product<1, 2, 5>();
    tiles.template add_product<0, 3, 6>();
    tiles.template add_product<1, 3, 7>();
    tiles.template store<0>(c, o.c_row);
    tiles.template store<1>(c + kTileSide, o.c_row);
  }
}

/// to[r][k] = m(r, k), where the columns of m are rows in memory: a square of 16 at a time.
inline void TurnRows(const StridedMatrix<BFloat16Pair>& m, index rows, index columns,
                     BFloat16Pair* to, index to_stride) {
  alignas(64) BFloat16Pair square[kTileSide * kTileSide], turned[kTileSide * kTileSide];
  for (index k = 0; k < columns; k += kTileSide) {
    for (index r = 0; r < rows; r += kTileSide) {
      const index width = std::min(kTileSide, rows - r), height = std::min(kTileSide, columns - k);
      const BFloat16Pair* const from = m.data + r + k * m.column;
      if (width == kTileSide && height == kTileSide) {
        TransposeSquare(from, m.column, to + r * to_stride + k, to_stride);
        continue;
      }
      for (index i = 0; i < height; ++i) {
        std::copy_n(from + i * m.column, width, square + i * kTileSide);
      }
      TransposeSquare(square, kTileSide, turned, kTileSide);
      for (index i = 0; i < width; ++i) {
        std::copy_n(turned + i * kTileSide, height, to + (r + i) * to_stride + k);
      }
    }
  }
}

/// The product of `t`, up to 128 rows and 64 lanes of C at a time: such a part is started, then
/// multiplied, then finished.
template <class Tiles, Into kInto, LaneMaximum kMaximum>
class TilesProduct {
 public:
  using Operands = TileOperands<float, BFloat16Pair>;

  /// Whether it computes such a product: A has its pairs side by side, or few of them.
  static bool fits(const Operands& t) {
    return t.b.rows > 0 && (t.a.column == 1 || (t.a.row == 1 && t.b.rows <= kMostTurned));
  }

  explicit TilesProduct(const Operands& t) : t_(t) {}

  void run() {
    for (index row = 0; row < t_.c.rows; row += kMostRows) {
      const index rows = std::min(kMostRows, t_.c.rows - row);
      a_ = {t_.a.data + row * t_.a.row, t_.a.row, t_.a.column};
      if (t_.a.column != 1) {
        TurnRows(a_, rows, t_.b.rows, turned_, kMostTurned);
        a_ = {turned_, kMostTurned, 1};
      }
      for (index lane = 0; lane < t_.c.columns; lane += kPanel) {
        const index end = std::min(lane + kPanel, t_.c.columns);
        RunPart(t_.c.slice(row, row + rows).columns_slice(lane, end), lane);
      }
    }
  }

 private:
  static constexpr Tag<float> d = {};
  static constexpr index kN = kLanes<float>;
  static constexpr index kMostRows = 128, kPanel = 64;
  static constexpr index kMostTurned = 64;  // pairs
  static constexpr bool kHasBuffer = kInto == Into::kAddTimes;
  static constexpr bool kTimes = kInto == Into::kOverwriteTimes || kInto == Into::kAddTimes;
  static constexpr bool kTakes = kMaximum == LaneMaximum::kTake;

  void RunPart(Rows<float> c, index lane) {
    const Rows<float> sums = kHasBuffer ? Rows<float>(buffer_, c.rows, c.columns, kPanel) : c;
    Start(sums, lane);
    index row = IsTwoSteps(c) ? MultiplyTwoSteps(sums, lane) : 0;
    for (; row < c.rows; row += 2 * kTileSide) {
      StepPrefetch(4);
      MultiplyRows(sums, row, std::min(row + 2 * kTileSide, c.rows), lane);
    }
    Finish(sums, c, lane);
  }

  void StepPrefetch(index count) const {
    for (index i = 0; i < count && t_.prefetch != nullptr; ++i) t_.prefetch->step();
  }

  bool IsTwoSteps(Rows<float> c) const {
    return c.rows >= kTileSide && t_.b.rows == 2 * kTileSide && c.columns % (2 * kTileSide) == 0 &&
           !AsksAhead();
  }

  // The sums of all whole registers; returns the first of the other rows.
  index MultiplyTwoSteps(Rows<float> sums, index lane) {
    const index rows = sums.rows / kTileSide * kTileSide;
    Configure({{kTileSide, kTileSide}, kTileSide});
    for (index l = 0; l < sums.columns; l += 2 * kTileSide) {
      StepPrefetch(rows / (2 * kTileSide) * 2);
      const TileBlock block{.a = a_.data,
                            .a_row = a_.row,
                            .b = t_.b.data + lane + l,
                            .b_row = t_.b.stride,
                            .steps = 2,
                            .c = sums.data + l,
                            .c_row = sums.stride,
                            .from_zero = kStartsAtZero<kInto>,
                            .ahead = nullptr};
      HWY_NAMESPACE::MultiplyTwoSteps<kStartsAtZero<kInto>>(tiles_, block, rows);
    }
    return rows;
  }

  void Configure(const TileShape& shape) {
    if (!(shape == shape_)) tiles_.configure(shape_ = shape);
  }

  // All of the sums of up to 32 rows.
  void MultiplyRows(Rows<float> sums, index row, index end, index lane) {
    constexpr bool kFromZero = kStartsAtZero<kInto>;
    const Rows<float> c = sums.slice(row, end);
    const index whole = t_.b.rows / kTileSide, rest = t_.b.rows % kTileSide;
    const BFloat16Pair* const a = a_.data + row * a_.row;
    const BFloat16Pair* const b = t_.b.data + lane;
    if (whole > 0) AddSteps(c, a, b, kTileSide, whole, kFromZero);
    const index done = whole * kTileSide;
    if (rest > 0) AddSteps(c, a + done, b + done * t_.b.stride, rest, 1, kFromZero && whole == 0);
  }

  // Adds the products of `steps` times `pairs` pairs.
  void AddSteps(Rows<float> c, const BFloat16Pair* a, const BFloat16Pair* b, index pairs,
                index steps, bool from_zero) {
    const TileShape shape{{std::min(c.rows, kTileSide), std::max<index>(0, c.rows - kTileSide)},
                          pairs};
    Configure(shape);
    for (index l = 0; l < c.columns; l += 2 * kTileSide) {
      const TileBlock block{.a = a,
                            .a_row = a_.row,
                            .b = b + l,
                            .b_row = t_.b.stride,
                            .steps = steps,
                            .c = c.data + l,
                            .c_row = c.stride,
                            .from_zero = from_zero,
                            .ahead = AsksAhead() ? t_.ahead : nullptr};
      const bool two_rows = c.rows > kTileSide, two_lanes = l + kTileSide < c.columns;
      if (two_rows && two_lanes) {
        MultiplyTiles<true, true>(tiles_, block);
      } else if (two_rows) {
        MultiplyTiles<true, false>(tiles_, block);
      } else if (two_lanes) {
        MultiplyTiles<false, true>(tiles_, block);
      } else {
        MultiplyTiles<false, false>(tiles_, block);
      }
    }
  }

  bool AsksAhead() const { return t_.ahead != nullptr && !t_.ahead->is_empty(); }

  // The starts of sums that do not start at 0.
  void Start(Rows<float> sums, index lane) const {
    if constexpr (kInto == Into::kScaleAndAdd || kInto == Into::kStartAt) {
      for (index l = 0; l < sums.columns; l += kN) {
        const auto by = hn::LoadU(d, t_.per_lane + lane + l);
        if (kInto == Into::kScaleAndAdd && hn::AllTrue(d, hn::Eq(by, hn::Set(d, 1.0f)))) continue;
        for (index r = 0; r < sums.rows; ++r) {
          float* const at = sums[r] + l;
          const bool scales = kInto == Into::kScaleAndAdd;
          hn::StoreU(scales ? hn::Mul(hn::LoadU(d, at), by) : by, d, at);
        }
      }
    }
  }

  // The factor and the maximum, four vectors at a time: a maximum waits for the one before it.
  void Finish(Rows<float> sums, Rows<float> c, index lane) const {
    if constexpr (kTimes || kTakes) {
      index l = 0;
      for (; l + 4 * kN <= sums.columns; l += 4 * kN) FinishVectors<4>(sums, c, lane, l);
      for (; l < sums.columns; l += kN) FinishVectors<1>(sums, c, lane, l);
    }
  }

  template <int kVectors>
  void FinishVectors(Rows<float> sums, Rows<float> c, index lane, index l) const {
    const auto factor = hn::Set(d, t_.factor);
    Vector<float> most[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      most[v] = kTakes ? hn::LoadU(d, t_.maximum + lane + l + v * kN) : hn::Zero(d);
    }
    for (index r = 0; r < sums.rows; ++r) {
      const float* const from = sums[r] + l;
      float* const to = c[r] + l;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        auto value = hn::LoadU(d, from + v * kN);
        if constexpr (kInto == Into::kOverwriteTimes) value = hn::Mul(factor, value);
        if constexpr (kInto == Into::kAddTimes) {
          value = hn::MulAdd(factor, value, hn::LoadU(d, to + v * kN));
        }
        if constexpr (kTimes) hn::StoreU(value, d, to + v * kN);
        if constexpr (kTakes) most[v] = hn::Max(most[v], value);
      }
    }
    if constexpr (!kTakes) return;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hn::StoreU(most[v], d, t_.maximum + lane + l + v * kN);
  }

  const Operands& t_;
  Tiles tiles_;
  TileShape shape_ = {};
  StridedMatrix<BFloat16Pair> a_;  // of the rows at hand, its pairs side by side
  alignas(64) BFloat16Pair turned_[kMostRows * kMostTurned];
  alignas(64) float buffer_[kHasBuffer ? kMostRows * kPanel : 1];
};

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();
#endif  // FOVEA_PAIRS

#endif  // FOVEA_SIMD_AMX_INL_H_

// SPDX-License-Identifier: Apache-2.0
// The tile registers of AMX for products of pairs of bfloat16 (amx-inl.h), and the same in plain
// C++.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "fovea/base/bfloat16.h"
#include "fovea/base/types.h"

#if defined(FOVEA_SIMD_AMX_REGISTERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_SIMD_AMX_REGISTERS_INL_H_
#undef FOVEA_SIMD_AMX_REGISTERS_INL_H_
#else
#define FOVEA_SIMD_AMX_REGISTERS_INL_H_
#endif

#include "fovea/simd/pairs-inl.h"
#include "fovea/simd/simd-inl.h"

#if FOVEA_PAIRS
HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {

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

}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();
#endif  // FOVEA_PAIRS

#endif  // FOVEA_SIMD_AMX_REGISTERS_INL_H_

// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/block_matrix.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/memory.h"
#include "fovea/base/profile.h"
#include "fovea/kernel/gemm.h"
#include "fovea/kernel/shapes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/block_matrix.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

#ifndef FOVEA_KERNEL_BLOCK_MATRIX_ONCE_
#define FOVEA_KERNEL_BLOCK_MATRIX_ONCE_
namespace fovea {
namespace {

constexpr index kBlock = 32;   // values of a small block
constexpr index kSummed = 16;  // values of x whose sum is known

constexpr BlockLayout layout(BlockType type) {
  switch (type) {
    case BlockType::kQ4_0:
      return {kBlock, 18};
    case BlockType::kQ4_1:
      return {kBlock, 20};
    case BlockType::kQ8_0:
      return {kBlock, 34};
    case BlockType::kQ4_K:
      return {256, 144};
    case BlockType::kQ5_K:
      return {256, 176};
    case BlockType::kQ6_K:
      return {256, 210};
    case BlockType::kFloat16:
    case BlockType::kBFloat16:
      break;
  }
  return {1, 2};
}

/// One row of the weight, by its type.
struct BlockKernels {
  /// The row times x; sums[b] is the sum of values [16 b, 16 (b + 1)) of x.
  float (*dot)(const std::uint8_t* row, const float* x, const float* sums, index columns);
  void (*widen)(const std::uint8_t* row, index columns, float* to);
};

}  // namespace
}  // namespace fovea
#endif

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

using Floats = Tag<float>;
constexpr index kWide = static_cast<index>(hn::MaxLanes(Floats()));
// Values of half a block that are widened at once.
using Half = hn::CappedTag<float, 16>;
constexpr index kStep = static_cast<index>(hn::MaxLanes(Half()));

// value = d q + m
struct Scales {
  float d, m;
};
HWY_INLINE float FloatAt(const std::uint8_t* half) {
  const hn::CappedTag<float, 1> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> halves;
  return hn::GetLane(
      hn::PromoteTo(d, hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(half))));
}

// The bytes at q as whole numbers.
template <class Byte>
HWY_INLINE auto WholeAt(const Byte* q) {
  return hn::PromoteTo(hn::Rebind<std::int32_t, Half>(), hn::LoadU(hn::Rebind<Byte, Half>(), q));
}
using Whole = decltype(WholeAt(static_cast<const std::uint8_t*>(nullptr)));

// `bits` bits of each number, from bit `from` on.
HWY_INLINE Whole BitsOf(Whole x, int from, int bits) {
  return hn::And(hn::ShiftRightSame(x, from),
                 hn::Set(hn::Rebind<std::int32_t, Half>(), (1 << bits) - 1));
}

// The low (kFrom = 0) or high (4) halves of the bytes at q.
template <int kFrom>
HWY_INLINE Whole HalvesAt(const std::uint8_t* q) {
  const hn::Rebind<std::uint8_t, Half> d;
  const auto bytes = hn::LoadU(d, q);
  const auto halves = kFrom == 0 ? hn::And(bytes, hn::Set(d, 15)) : hn::ShiftRight<4>(bytes);
  return hn::PromoteTo(hn::Rebind<std::int32_t, Half>(), halves);
}

// Each type: the layout of a block, and ForParts(block, f), which calls
// f(first, count, scales, at) for the parts of values that share d and m; at(i) are the numbers q
// of the values from first + i on.

// Values 0 to 15 are the low halves of 16 bytes, the others the high ones.
template <class F>
HWY_INLINE void ForHalves(const std::uint8_t* q, Scales scales, F&& f) {
  f(0, kBlock, scales, [=](index i) HWY_ATTR {
    return i < kBlock / 2 ? HalvesAt<0>(q + i) : HalvesAt<4>(q + i - kBlock / 2);
  });
}

struct Q4_0 {
  static constexpr BlockLayout kLayout = layout(BlockType::kQ4_0);
  template <class F>
  static HWY_INLINE void ForParts(const std::uint8_t* block, F&& f) {
    const float d = FloatAt(block);
    ForHalves(block + 2, {d, -8 * d}, f);
  }
};

struct Q4_1 {
  static constexpr BlockLayout kLayout = layout(BlockType::kQ4_1);
  template <class F>
  static HWY_INLINE void ForParts(const std::uint8_t* block, F&& f) {
    ForHalves(block + 4, {FloatAt(block), FloatAt(block + 2)}, f);
  }
};

struct Q8_0 {
  static constexpr BlockLayout kLayout = layout(BlockType::kQ8_0);
  template <class F>
  static HWY_INLINE void ForParts(const std::uint8_t* block, F&& f) {
    const auto* const q = reinterpret_cast<const std::int8_t*>(block + 2);
    f(0, kBlock, Scales{FloatAt(block), 0}, [=](index i) HWY_ATTR { return WholeAt(q + i); });
  }
};

// Part k of a block of Q4_K or Q5_K: 6 bits for its scale, and 6 for what is subtracted.
HWY_INLINE Scales LargeScales(const std::uint8_t* block, index k) {
  const std::uint8_t* const s = block + 4;
  const int scale = k < 4 ? s[k] & 63 : (s[k + 4] & 15) | (s[k - 4] >> 2 & 48);
  const int least = k < 4 ? s[k + 4] & 63 : s[k + 4] >> 4 | (s[k] >> 2 & 48);
  return {FloatAt(block) * static_cast<float>(scale),
          -(FloatAt(block + 2) * static_cast<float>(least))};
}

// Each 32 bytes hold 64 values, the low halves first.
struct Q4_K {
  static constexpr BlockLayout kLayout = layout(BlockType::kQ4_K);
  template <class F>
  static HWY_INLINE void ForParts(const std::uint8_t* block, F&& f) {
    for (index k = 0; k < 8; k += 2) {
      const std::uint8_t* const q = block + 16 + k / 2 * kBlock;
      f(k * kBlock, kBlock, LargeScales(block, k),
        [=](index i) HWY_ATTR { return HalvesAt<0>(q + i); });
      f((k + 1) * kBlock, kBlock, LargeScales(block, k + 1),
        [=](index i) HWY_ATTR { return HalvesAt<4>(q + i); });
    }
  }
};

// The same, and a fifth bit of each value: bit k of 32 bytes.
struct Q5_K {
  static constexpr BlockLayout kLayout = layout(BlockType::kQ5_K);
  template <class F>
  static HWY_INLINE void ForParts(const std::uint8_t* block, F&& f) {
    for (index k = 0; k < 8; k += 2) {
      Part<0>(block, k, f);
      Part<4>(block, k + 1, f);
    }
  }
  template <int kFrom, class F>
  static HWY_INLINE void Part(const std::uint8_t* block, index k, F&& f) {
    const std::uint8_t *const fifth = block + 16, *const q = block + 48 + k / 2 * kBlock;
    f(k * kBlock, kBlock, LargeScales(block, k), [=](index i) HWY_ATTR {
      const auto high = BitsOf(WholeAt(fifth + i), static_cast<int>(k), 1);
      return hn::Or(HalvesAt<kFrom>(q + i), hn::ShiftLeft<4>(high));
    });
  }
};

// Halves of 128 values: 64 bytes hold four of their six bits, the low halves first, 32 bytes the
// other two. A scale of 8 bits for each 16 values.
struct Q6_K {
  static constexpr BlockLayout kLayout = layout(BlockType::kQ6_K);
  template <class F>
  static HWY_INLINE void ForParts(const std::uint8_t* block, F&& f) {
    const float d = FloatAt(block + 208);
    for (index part = 0; part < 16; ++part) {
      part % 8 < 4 ? Part<0>(block, d, part, f) : Part<4>(block, d, part, f);
    }
  }
  template <int kFrom, class F>
  static HWY_INLINE void Part(const std::uint8_t* block, float d, index part, F&& f) {
    const index first = part % 2 * 16, group = part / 2 % 4;
    const std::uint8_t* const low = block + part / 8 * 64 + group % 2 * kBlock + first;
    const std::uint8_t* const high = block + 128 + part / 8 * kBlock + first;
    const auto scale = static_cast<std::int8_t>(block[192 + part]);
    f(part * 16, index{16}, Scales{d * static_cast<float>(scale), 0}, [=](index i) HWY_ATTR {
      const auto two = BitsOf(WholeAt(high + i), static_cast<int>(2 * group), 2);
      const auto six = hn::Or(HalvesAt<kFrom>(low + i), hn::ShiftLeft<4>(two));
      return hn::Sub(six, hn::Set(hn::Rebind<std::int32_t, Half>(), 32));
    });
  }
};

// The sum over parts of d (q . x) + m (sum of x). sums[b] is that of values [16 b, 16 (b + 1)).
template <class Type>
float DotBlocks(const std::uint8_t* row, const float* x, const float* sums, index columns) {
  const Half d;
  auto total = hn::Zero(d);
  float least = 0;
  for (index b = 0; b < columns / Type::kLayout.values; ++b) {
    const float* const at = x + b * Type::kLayout.values;
    const float* const parts = sums + b * (Type::kLayout.values / kSummed);
    Type::ForParts(row + b * Type::kLayout.bytes, [&](index first, index count, Scales scales,
                                                      auto numbers) HWY_ATTR {
      auto sum = hn::Zero(d);
      float of_part = 0;
      for (index i = 0; i < count; i += kStep) {
        sum = hn::MulAdd(hn::ConvertTo(d, numbers(i)), hn::LoadU(d, at + first + i), sum);
      }
      for (index i = 0; i < count; i += kSummed) of_part += parts[(first + i) / kSummed];
      total = hn::MulAdd(hn::Set(d, scales.d), sum, total);
      least += scales.m * of_part;
    });
  }
  return hn::GetLane(hn::SumOfLanes(d, total)) + least;
}

// As the files' own readers round: the product, then the sum.
template <class Type>
void WidenBlocks(const std::uint8_t* row, index columns, float* to) {
  const Half d;
  for (index b = 0; b < columns / Type::kLayout.values; ++b) {
    float* const at = to + b * Type::kLayout.values;
    Type::ForParts(row + b * Type::kLayout.bytes, [&](index first, index count, Scales scales,
                                                      auto numbers) HWY_ATTR {
      for (index i = 0; i < count; i += kStep) {
        const auto product = hn::Mul(hn::Set(d, scales.d), hn::ConvertTo(d, numbers(i)));
        hn::StoreU(hn::Add(product, hn::Set(d, scales.m)), d, at + first + i);
      }
    });
  }
}

// ----------------------------------------------------------------------------------------- halves

template <class Type>
using SameLanes = hn::Rebind<Type, Floats>;

template <class Type>
float DotHalves(const std::uint8_t* row, const float* x, const float*, index columns) {
  const Floats d;
  const auto* const values = reinterpret_cast<const Type*>(row);
  auto even = hn::Zero(d), odd = hn::Zero(d);
  const auto add = [&](index c, auto& total) HWY_ATTR {
    const auto w = hn::PromoteTo(d, hn::LoadU(SameLanes<Type>(), values + c));
    total = hn::MulAdd(w, hn::LoadU(d, x + c), total);
  };
  index c = 0;
  for (; c + 2 * kWide <= columns; c += 2 * kWide) {
    add(c, even);
    add(c + kWide, odd);
  }
  for (; c + kWide <= columns; c += kWide) add(c, even);
  float rest = 0;
  const hn::CappedTag<float, 1> one;
  for (; c < columns; ++c) {
    const auto w = hn::PromoteTo(one, hn::LoadU(hn::Rebind<Type, decltype(one)>(), values + c));
    rest += hn::GetLane(w) * x[c];
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd))) + rest;
}

template <class Type>
void WidenHalves(const std::uint8_t* row, index columns, float* to) {
  const auto* const values = reinterpret_cast<const Type*>(row);
  const auto widen = [&](auto d, index c) HWY_ATTR {
    const auto half = hn::LoadU(hn::Rebind<Type, decltype(d)>(), values + c);
    hn::StoreU(hn::PromoteTo(d, half), d, to + c);
  };
  index c = 0;
  for (; c + kWide <= columns; c += kWide) widen(Floats(), c);
  for (; c < columns; ++c) widen(hn::CappedTag<float, 1>(), c);
}

BlockKernels KernelsOf(BlockType type) {
  switch (type) {
    case BlockType::kQ4_0:
      return {DotBlocks<Q4_0>, WidenBlocks<Q4_0>};
    case BlockType::kQ4_1:
      return {DotBlocks<Q4_1>, WidenBlocks<Q4_1>};
    case BlockType::kQ8_0:
      return {DotBlocks<Q8_0>, WidenBlocks<Q8_0>};
    case BlockType::kQ4_K:
      return {DotBlocks<Q4_K>, WidenBlocks<Q4_K>};
    case BlockType::kQ5_K:
      return {DotBlocks<Q5_K>, WidenBlocks<Q5_K>};
    case BlockType::kQ6_K:
      return {DotBlocks<Q6_K>, WidenBlocks<Q6_K>};
    case BlockType::kFloat16:
      return {DotHalves<hwy::float16_t>, WidenHalves<hwy::float16_t>};
    case BlockType::kBFloat16:
      break;
  }
  return {DotHalves<hwy::bfloat16_t>, WidenHalves<hwy::bfloat16_t>};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {
namespace {

HWY_EXPORT(KernelsOf);

BlockKernels kernels_of(BlockType type) { return FOVEA_DISPATCH(KernelsOf)(type); }

index row_bytes(BlockType type, index columns) {
  const BlockLayout layout = layout_of(type);
  return columns / layout.values * layout.bytes;
}

// Calls f(part, first row, last row) for the parts of rows [first, last).
template <class F>
void for_parts(const BlockMatrix& w, index first, index last, F&& f) {
  for (const BlockMatrix::Part& part : w.parts()) {
    const index begin = std::max(first, part.first);
    const index end = std::min(last, part.first + part.rows);
    if (begin < end) f(part, begin, end);
  }
}

void widen(const BlockMatrix& w, index first, index last, float* to) {
  for_parts(w, first, last, [&](const BlockMatrix::Part& part, index begin, index end) {
    const auto kernel = kernels_of(part.type).widen;
    const index bytes = row_bytes(part.type, w.columns());
    for (index n = begin; n < end; ++n) {
      kernel(part.blocks.data() + (n - part.first) * bytes, w.columns(),
             to + (n - first) * w.columns());
    }
  });
}

// One row of x.
void multiply_row(const Context& ctx, const float* x, const BlockMatrix& w, float* y,
                  const MatmulOptions<float>& options) {
  Scratch scratch;
  const index columns = w.columns();
  auto* const sums = scratch.allocate<float>(columns / kSummed);
  ctx.run_here([&] {
    for (index b = 0; b < columns / kSummed; ++b) {
      sums[b] = std::accumulate(x + b * kSummed, x + (b + 1) * kSummed, 0.F);
    }
  });
  const bool adds = options.store == Store::kAdd;
  ctx.for_ranges(w.rows(), 2 * static_cast<double>(columns), [&](index first, index last) {
    for_parts(w, first, last, [&](const BlockMatrix::Part& part, index begin, index end) {
      const auto kernel = kernels_of(part.type).dot;
      const index bytes = row_bytes(part.type, columns);
      for (index n = begin; n < end; ++n) {
        float product = kernel(part.blocks.data() + (n - part.first) * bytes, x, sums, columns);
        if (!options.bias.empty()) product += options.bias[n];
        y[n] = adds ? y[n] + product : product;
      }
    });
  });
}

// Calls f(rows, first) for parts of the rows of W, from row `first` on, widened one after another.
// As many are widened at once as stay in the cache.
template <class F>
void for_widened(const Context& ctx, const BlockMatrix& w, F&& f) {
  constexpr index kValues = index{1} << 18;
  const index columns = w.columns();
  const index at_once = std::min(std::max<index>(kValues / columns, 64), w.rows());
  Scratch scratch;
  auto* const memory = scratch.allocate<float>(at_once * columns);
  for (index first = 0; first < w.rows(); first += at_once) {
    const index last = std::min(first + at_once, w.rows());
    ctx.for_ranges(last - first, static_cast<double>(columns), [&](index begin, index end) {
      widen(w, first + begin, first + end, memory + begin * columns);
    });
    f(Rows<const float>(memory, last - first, columns), first);
  }
}

void multiply_transposed(const Context& ctx, ProductRows<const float> x, const BlockMatrix& w,
                         ProductRows<float> y, const MatmulOptions<float>& options) {
  PackedMatrix<float> packed;
  for_widened(ctx, w, [&](Rows<const float> some, index first) {
    const index last = first + some.rows;
    MatmulOptions<float> own = options;
    if (!options.bias.empty()) own.bias = {options.bias.data + first, some.rows};
    if (options.slope.data != nullptr) own.slope = options.slope.columns_slice(first, last);
    if (options.times.data != nullptr) own.times = options.times.columns_slice(first, last);
    packed.pack(ctx, some, Form::kTransposed);
    matmul<float>(ctx, x, packed, y.columns_slice(first, last), own);
  });
}

// Each part of W adds to all of y, so what the options do with the sums comes behind the last one.
void multiply_plain(const Context& ctx, ProductRows<const float> x, const BlockMatrix& w,
                    ProductRows<float> y, const MatmulOptions<float>& options) {
  check(options.bias.empty() && options.activation == Activation::kNone,
        "product by blocks: x W takes neither bias nor activation");
  Scratch scratch;
  Rows<float> sums = y.values();
  if (y.is_rounded())
    sums = {scratch.allocate<float>(y.rows() * y.columns()), y.rows(), y.columns()};
  PackedMatrix<float> packed;
  for_widened(ctx, w, [&](Rows<const float> some, index first) {
    packed.pack(ctx, some, Form::kPlain);
    matmul<float>(ctx, x.columns_slice(first, first + some.rows), packed, sums,
                  {.store = first == 0 ? options.store : Store::kAdd});
  });
  if (options.times.data != nullptr) multiply<float>(ctx, sums, options.times, sums);
  if (y.is_rounded()) round_rows(ctx, sums, y.rounded());
}

// y = x W^T by blocks as they lie, if x has few rows.
void multiply_rows(const Context& ctx, ProductRows<const float> x, const BlockMatrix& w,
                   ProductRows<float> y, const MatmulOptions<float>& options) {
  const bool is_few = x.rows() <= kRowsByBlocks && !x.is_rounded() && !y.is_rounded();
  if (!is_few || options.slope.data != nullptr || options.times.data != nullptr) {
    return multiply_transposed(ctx, x, w, y, options);
  }
  for (index n = 0; n < x.rows(); ++n) multiply_row(ctx, x.values()[n], w, y.values()[n], options);
  if (options.activation == Activation::kNone) return;
  activation_forward<float>(ctx, options.activation, y.values(), y.values());
}

}  // namespace

BlockLayout layout_of(BlockType type) { return layout(type); }

void BlockMatrix::append(BlockType type, index rows, SharedBytes blocks) {
  append_planned(type, rows);
  if (const index bytes = rows * row_bytes(type, columns_);
      bytes != static_cast<index>(blocks.size())) {
    rows_ -= rows;
    parts_.pop_back();
    fail(ErrorCode::kShape, "block matrix: {} rows take {} bytes; got {}", rows, bytes,
         blocks.size());
  }
  parts_.back().blocks = std::move(blocks);
}

void BlockMatrix::append_planned(BlockType type, index rows) {
  const index values = layout_of(type).values;
  check(columns_ > 0 && columns_ % values == 0, "block matrix: {} columns are no blocks of {}",
        columns_, values);
  check(rows > 0, "block matrix: {} rows", rows);
  parts_.push_back({type, rows_, rows, {}});
  rows_ += rows;
}

std::size_t BlockMatrix::byte_size() const {
  std::size_t bytes = 0;
  for (const Part& part : parts_) {
    bytes += static_cast<std::size_t>(part.rows * row_bytes(part.type, columns_));
  }
  return bytes;
}

void BlockMatrix::require_unchanged() const {
  for (const Part& part : parts_) part.blocks.require_unchanged();
}

void widen_rows(const Context& ctx, const BlockMatrix& w, Vec<const std::int32_t> ids,
                Rows<float> y) {
  check_rows("widen_rows", "y", y, ids.size, w.columns());
  for (const std::int32_t id : ids) {
    check(id >= 0 && id < w.rows(), "widen_rows: row {} of {}", id, w.rows());
  }
  ctx.for_ranges(ids.size, static_cast<double>(w.columns()), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) widen(w, ids[n], ids[n] + 1, y[n]);
  });
  w.require_unchanged();
}

void matmul(const Context& ctx, ProductRows<const float> x, const BlockMatrix& w, Form form,
            ProductRows<float> y, const MatmulOptions<float>& options) {
  const bool plain = form == Form::kPlain;
  const index in = plain ? w.rows() : w.columns(), out = plain ? w.columns() : w.rows();
  check(x.columns() == in && y.rows() == x.rows() && y.columns() == out,
        "product by blocks: x [N, {}], y [N, {}]; they are [{}, {}] and [{}, {}]", in, out,
        x.rows(), x.columns(), y.rows(), y.columns());
  check(options.bias.empty() || options.bias.size == out,
        "product by blocks: bias must have {} values; it has {}", out, options.bias.size);
  const ProfileScope scope(ctx, product_work<float>("product by blocks", x.rows(), out, in));
  plain ? multiply_plain(ctx, x, w, y, options) : multiply_rows(ctx, x, w, y, options);
  w.require_unchanged();
}

}  // namespace fovea
#endif  // HWY_ONCE

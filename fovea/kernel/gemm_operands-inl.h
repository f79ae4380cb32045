// SPDX-License-Identifier: Apache-2.0
// The operands of a product as its tiles read them: whole, rounded to bfloat16, or in pairs of
// bfloat16. Include it from gemm_tiles.cc and gemm_at_b.cc alone.
#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "fovea/base/memory.h"
#include "fovea/kernel/gemm_tiles.h"

#if defined(FOVEA_KERNEL_GEMM_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNEL_GEMM_OPERANDS_INL_H_
#undef FOVEA_KERNEL_GEMM_OPERANDS_INL_H_
#else
#define FOVEA_KERNEL_GEMM_OPERANDS_INL_H_
#endif

#include "fovea/simd/pairs-inl.h"
#include "fovea/simd/product-inl.h"
#include "fovea/simd/round-inl.h"
#include "fovea/simd/simd-inl.h"
#include "fovea/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

/// The operand of one step of a sum: a value of T, or a pair.
template <class T, Operands kOperands>
using OperandOf = std::conditional_t<kOperands == Operands::kPaired, BFloat16Pair, T>;
template <Operands kOperands>
inline constexpr index kTermsOfStep = kOperands == Operands::kPaired ? 2 : 1;

/// The steps of a sum that are computed at a time.
template <class T>
inline constexpr index kDepth = 1536 / static_cast<index>(sizeof(T));

/// Whether a panel of B or C is at most one cache line of each row.
inline constexpr bool kIsNarrow = kBlockVectors == 2;

/// Panels of B that are copied, and of C that are finished, together: then the lines of a row
/// follow one another.
inline constexpr index kPanelsAtOnce = kIsNarrow ? 4 : 1;

/// f(constant) with `operands` as a constant of the type.
template <class T, class F>
HWY_INLINE void WithOperands([[maybe_unused]] Operands operands, F&& f) {
  if constexpr (std::is_same_v<T, float>) {
    if (operands == Operands::kRounded) {
      return f(std::integral_constant<Operands, Operands::kRounded>());
    }
#if FOVEA_PAIRS
    if (operands == Operands::kPaired) {
      return f(std::integral_constant<Operands, Operands::kPaired>());
    }
#endif
  }
  f(std::integral_constant<Operands, Operands::kWhole>());
}

/// Cuts the n steps of a sum into equal parts of at most `most`, at least one; calls f(begin, end).
/// Parts begin at multiples of 16, as sums of pairs on AMX must (amx-inl.h).
template <class F>
HWY_INLINE void ForEachPart(index n, index most, F&& f) {
  const detail::AxisCut cut(n, most, 16);
  index i = 0;
  do {
    const auto [begin, end] = cut.part(i);
    f(begin, end);
  } while (++i < cut.parts());
}

/// The terms [begin, end) of a sum, from its steps.
template <Operands kOperands>
struct Terms {
  Terms(index begin_step, index end_step, index terms)
      : begin(begin_step * kTermsOfStep<kOperands>),
        end(std::min(terms, end_step * kTermsOfStep<kOperands>)) {}
  index begin, end;
};

template <Operands kOperands, class T>
HWY_INLINE Vector<T> Rounded(Vector<T> x) {
  if constexpr (kOperands == Operands::kRounded) return RoundToBFloat16(x);
  return x;
}

/// The bytes of scratch memory of buffers of so many values. (A pair is as large as a float.)
template <class T>
index BytesOfBuffers(std::initializer_list<index> values) {
  constexpr index kOfLine = kAlignment / sizeof(T);
  index lines = 0;
  for (const index n : values) lines += (n + kOfLine - 1) / kOfLine;
  return lines * static_cast<index>(kAlignment);
}

/// Scratch memory for n values, or null if none is needed.
template <class In>
In* AllocateSome(Scratch& scratch, index n) {
  return n > 0 ? scratch.template allocate<In>(n) : nullptr;
}

/// Copies rows of `from` to rows of `to` that are `to_stride` apart, and fills the rest of each
/// with zeros.
template <Operands kOperands, class T>
HWY_INLINE void CopyColumns(Rows<const T> from, T* to, index to_stride) {
  for (index k = 0; k < from.rows; ++k) {
    const T* const source = from[k];
    T* const target = to + k * to_stride;
    ForEachLane<T>(from.columns, [=](auto lanes, index i) {
      lanes.Store(Rounded<kOperands, T>(lanes.Load(source + i)), target + i);
    });
    for (index i = from.columns; i < to_stride; ++i) target[i] = T{0};
  }
}

/// Asks for the line at `column` of the row `ahead` rows after this one, or of the last. Rows that
/// are copied lie on pages of their own, and the processor does not see which comes next: on Zen 3
/// copying rows of 768 to 1536 columns takes .4 to .6 of the time this way.
template <class T>
HWY_INLINE void AskForRow(Rows<const T> rows, index row, index ahead, index column) {
  detail::prefetch_line(rows[std::min(row + ahead, rows.rows - 1)] + column);
}

/// The panels of some columns, `panel_stride` apart.
template <Operands kOperands, class T>
void CopyPanels(Rows<const T> from, T* to, index panel_stride) {
  constexpr index kWidth = kPanelLanes<T>;
  for (index k = 0; k < from.rows; ++k) {
    for (index first = 0; first < from.columns; first += kWidth) {
      constexpr index kRowsAhead = 8;
      AskForRow(from, k, kRowsAhead, first);
      const T* const source = from[k] + first;
      T* const target = to + first / kWidth * panel_stride + k * kWidth;
      const index width = std::min(kWidth, from.columns - first);
      ForEachLane<T>(width, [=](auto lanes, index i) {
        lanes.Store(Rounded<kOperands, T>(lanes.Load(source + i)), target + i);
      });
      std::fill(target + width, target + kWidth, T{0});
    }
  }
}

#if FOVEA_PAIRS

/// The pairs of rows 2 j and 2 j + 1, one after another, in the same way; to_stride is in whole
/// vectors.
inline void PairColumns(Rows<const float> from, BFloat16Pair* to, index to_stride) {
  constexpr PairTag d;
  for (index k = 0; k < from.rows; k += 2, to += to_stride) {
    const float* const first = from[k];
    const bool single = k + 1 == from.rows;
    const float* const second = single ? first : from[k + 1];
    index end = 0;
    ForEachLane<float>(from.columns, [&](auto lanes, index i) {
      const auto above = single ? hn::Zero(Tag<float>()) : lanes.Load(second + i);
      hn::StoreU(RoundToPairs(lanes.Load(first + i), above), d, to + i);
      end = i + kLanes<float>;
    });
    for (; end < to_stride; end += kLanes<float>) hn::StoreU(hn::Zero(d), d, to + end);
  }
}

/// row[begin] and those after it, as far as there are `columns`, and zeros.
HWY_INLINE Vector<float> LoadUpTo(const BFloat16* row, index begin, index columns) {
  const index count = columns - begin;
  if (count >= kLanes<float>) return FirstOf(LoadHalves(row + begin));
  if (count <= 0) return hn::Zero(Tag<float>());
  return FirstOf(LoadHalves(row + begin, count));
}
HWY_INLINE Vector<float> LoadUpTo(const float* row, index begin, index columns) {
  const index count = columns - begin;
  if (count >= kLanes<float>) return hn::LoadU(Tag<float>(), row + begin);
  if (count <= 0) return hn::Zero(Tag<float>());
  return TailLanes<float>{{}, count}.Load(row + begin);
}

/// 16 pairs along a row.
HWY_INLINE Pairs PairsOfRow(const float* row, index begin, index columns) {
  return RoundInOrder(LoadUpTo(row, begin, columns), LoadUpTo(row, begin + kLanes<float>, columns));
}

/// The pairs along rows: [rows, to_stride], in whole vectors.
inline void PairAlongRows(Rows<const float> from, BFloat16Pair* to, index to_stride) {
  constexpr index kTwo = 2 * kLanes<float>;
  for (index r = 0; r < from.rows; ++r, to += to_stride) {
    for (index c = 0; c < from.columns; c += kTwo) {
      hn::StoreU(PairsOfRow(from[r], c, from.columns), PairTag(), to + c / 2);
    }
  }
}

/// The pairs along rows, rows in lanes: [columns / 2, stride].
inline void PairRowsToLanes(Rows<const float> from, BFloat16Pair* to, index stride) {
  constexpr index kN = kLanes<float>;
  HWY_ALIGN BFloat16Pair square[kN * kN], turned[kN * kN];
  for (index r0 = 0; r0 < stride; r0 += kN) {
    const index here = std::clamp<index>(from.rows - r0, 0, kN);
    std::fill(square + here * kN, square + kN * kN, 0);
    for (index c = 0; c < from.columns; c += 2 * kN) {
      for (index i = 0; i < here; ++i) {
        hn::Store(PairsOfRow(from[r0 + i], c, from.columns), PairTag(), square + i * kN);
      }
      const index steps = std::min(kN, (from.columns - c + 1) / 2);
      BFloat16Pair* const first = to + c / 2 * stride + r0;
      if (steps == kN) {
        TransposeSquare(square, kN, first, stride);
        continue;
      }
      TransposeSquare(square, kN, turned, kN);
      for (index i = 0; i < steps; ++i) std::copy_n(turned + i * kN, kN, first + i * stride);
    }
  }
}

/// The pairs of rows 2 j and 2 j + 1, columns as rows: [columns in whole vectors, to_stride].
template <class Value>
void PairColumnsToRows(Rows<const Value> from, BFloat16Pair* to, index to_stride) {
  constexpr index kN = kLanes<float>;
  HWY_ALIGN BFloat16Pair square[kN * kN];
  const auto load = [&](index row, index c) {
    return row < from.rows ? LoadUpTo(from[row], c, from.columns) : hn::Zero(Tag<float>());
  };
  for (index k = 0; 2 * k < from.rows; k += kN) {
    for (index c = 0; c < from.columns; c += kN) {
      for (index i = 0; i < kN; ++i) {
        const index row = 2 * (k + i);
        hn::Store(RoundToPairs(load(row, c), load(row + 1, c)), PairTag(), square + i * kN);
      }
      TransposeSquare(square, kN, to + c * to_stride + k, to_stride);
    }
  }
}

#endif  // FOVEA_PAIRS

/// Columns of `from`, whose rows are the terms of a sum: [steps, to_stride].
template <Operands kOperands, class T>
HWY_INLINE void PackColumns(const ProductRows<const T>& from, OperandOf<T, kOperands>* to,
                            index to_stride) {
  if constexpr (kOperands == Operands::kPaired) {
    if (from.is_rounded()) {
      return PairRows(from.rounded(), {to, (from.rows() + 1) / 2, to_stride});
    }
    PairColumns(from.values(), to, to_stride);
  } else {
    CopyColumns<kOperands>(from.values(), to, to_stride);
  }
}

/// One panel, as [steps, lanes]: `kPanelLanes` columns (or, transposed, rows) of m from `first` on.
template <Operands kOperands, class T>
void PackPanel(Rows<const T> m, Form form, index first, OperandOf<T, kOperands>* panel) {
  constexpr index kWidth = kPanelLanes<T>;
  if (form == Form::kPlain) {
    const index end = std::min(m.columns, first + kWidth);
    const Rows<const T> columns = m.columns_slice(first, end);
    return PackColumns<kOperands, T>(columns, panel, kWidth);
  }
  const auto rows = m.slice(first, first + std::min(kWidth, m.rows - first));
  if constexpr (kOperands == Operands::kPaired) {
    PairRowsToLanes(rows, panel, kWidth);
  } else {
    RowsToLanes<T>(rows, rows.rows, panel, kWidth);
    if constexpr (kOperands == Operands::kRounded) {
      CopyColumns<kOperands>(Rows<const T>(panel, m.columns, kWidth), panel, kWidth);
    }
  }
}

/// The panels [begin, end) of `p`.
template <Operands kOperands, class T>
void PackPanels(const PanelsToPack<T>& p) {
  constexpr index kWidth = kPanelLanes<T>;
  const auto panel = [&](index i) { return p.panels + i * p.panel_stride; };
  if constexpr (kIsNarrow) {
    if (p.form == Form::kPlain) {
      for (index i = p.begin; i < p.end; i += kPanelsAtOnce) {
        const index end = std::min(p.m.columns, std::min(p.end, i + kPanelsAtOnce) * kWidth);
        CopyPanels<kOperands>(p.m.columns_slice(i * kWidth, end), panel(i), p.panel_stride);
      }
      return;
    }
  }
  for (index i = p.begin; i < p.end; ++i) {
    PackPanel<kOperands>(p.m, p.form, i * kWidth,
                         reinterpret_cast<OperandOf<T, kOperands>*>(panel(i)));
  }
}

/// A as the left side of C = A B: in place, or a rounded copy of a part of its columns.
template <class T, Operands kOperands>
class LeftSide {
 public:
  using In = OperandOf<T, kOperands>;

  LeftSide(const ProductRows<const T>& a, Scratch& scratch)
      : a_(a), copy_(AllocateSome<In>(scratch, copy_size(a))) {}

  /// How many operands the copy holds.
  static index copy_size(const ProductRows<const T>& a) {
    if (kOperands == Operands::kWhole) return 0;
    return a.rows() * stride_of(std::min(kDepth<In>, steps_of(a.columns(), kOperands)));
  }

  /// The part of A for the steps [begin, end); valid until the next call.
  StridedMatrix<In> part(index begin, index end) {
    const Terms<kOperands> terms(begin, end, a_.columns());
    const ProductRows<const T> a = a_.columns_slice(terms.begin, terms.end);
    if constexpr (kOperands == Operands::kWhole) {
      return a.values();
    } else {
      const index stride = stride_of(end - begin);
      Copy(a, stride);
      return {copy_, stride, 1};
    }
  }

 private:
  // An odd number of cache lines, so that rows fall into different sets.
  static index stride_of(index steps) {
    constexpr index kLine = kAlignment / sizeof(In);
    return ((steps + kLine - 1) / kLine | 1) * kLine;
  }

  void Copy(const ProductRows<const T>& a, index stride) {
    if constexpr (kOperands == Operands::kPaired) {
      if (a.is_rounded()) return CopyAsPairs(a.rounded(), {copy_, a.rows(), stride});
      PairAlongRows(a.values(), copy_, stride);
    } else {
      CopyColumns<kOperands>(a.values(), copy_, stride);
    }
  }

  ProductRows<const T> a_;
  In* copy_;
};

/// The lines of rows of either type.
template <class T>
LinesAhead LinesOf(const ProductRows<const T>& rows) {
  return rows.visit([](auto x) { return LinesAhead(x); });
}

/// f(constant) with what the blocks of the product ask for: the lines ahead, if there are any.
template <class T, class In, class F>
HWY_INLINE void WithAskOf(const TileOperands<T, In>& o, F&& f) {
  if (o.ahead->is_empty()) return f(std::integral_constant<Ask, Ask::kQueue>());
  f(std::integral_constant<Ask, Ask::kAhead>());
}

template <Into kInto, class T, class In>
HWY_INLINE void ProductAhead(const TileOperands<T, In>& o) {
  WithAskOf(o, [&](auto ask) { TileProduct<kInto, LaneMaximum::kNone, ask()>(o); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#endif  // FOVEA_KERNEL_GEMM_OPERANDS_INL_H_

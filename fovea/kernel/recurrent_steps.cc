// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/recurrent_steps.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/recurrent_steps.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/product-inl.h"
#include "fovea/simd/simd-inl.h"
#include "fovea/simd/steps-inl.h"
#include "fovea/simd/transpose-inl.h"

// A step is a product of few rows, those of the sequences that are not over, with all of W_hh. It
// has too little work for a general product and a pass for the cell after it. So a step goes
// through blocks of hidden columns: the product of a block for all of its gates, 6 rows x 4 vectors
// of sums in registers, then the cell on these sums while they are in L1. The forward has W_hh^T
// packed so that the columns of all gates of a block lie side by side: 4 gates of an LSTM are the 4
// vectors of a block. The backward makes dh of step t - 1 from the gates' gradients of step t (W_hh
// as products pack it), and at once the gates' gradients of step t - 1.
//
// Rows of a step are wherever their sequences lie: a product takes a pointer to each.

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

inline constexpr int kLinesAtOnce = 2;

/// The rows of a block of registers with kVectors vectors each.
template <int kVectors>
inline constexpr int kStepRows = kManyRegisters ? 24 / kVectors
                                                : (HWY_TARGET <= HWY_AVX2 ? 12 : 8) / kVectors;

/// sums[r][v] = sum over k of left[r][k] b[k][v], k ascending. The columns [split, depth) of `left`
/// lie `gap` further.
template <class T>
struct StepProduct {
  const T* const* left;
  const T* b;
  index depth, split, gap;
  T* sums = nullptr;
  const T* const* ahead = nullptr;  ///< lines to ask for meanwhile, up to a null
};

template <int kRows, int kVectors, class T>
HWY_INLINE void MultiplyRows(const StepProduct<T>& p) {
  constexpr Tag<T> d;
  constexpr index kN = kLanes<T>, kWidth = kVectors * kN;
  Vector<T> sum[kRows][kVectors];
#pragma GCC unroll 24
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  const T* HWY_RESTRICT b = p.b;
  const T* const* ahead = p.ahead;
  // All lambdas are inlined: those that are not keep the sums in memory, and steps of an LSTM take
  // twice the time.
  const auto add_part = [&](index gap, index depth) __attribute__((always_inline)) {
    const T* a[kRows];
#pragma GCC unroll 24
    for (int r = 0; r < kRows; ++r) a[r] = p.left[r] + gap;
    // The shorter side of the block stays in registers for a step, so that 12 sums and it fit 16.
    const auto step = [&](index k) __attribute__((always_inline)) {
      if constexpr (kRows < kVectors) {
        Vector<T> value[kRows];
#pragma GCC unroll 24
        for (int r = 0; r < kRows; ++r) value[r] = InRegister(hn::Set(d, a[r][k]));
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          const auto of_b = hn::LoadU(d, b + v * kN);
#pragma GCC unroll 24
          for (int r = 0; r < kRows; ++r) sum[r][v] = hn::MulAdd(value[r], of_b, sum[r][v]);
        }
      } else {
        Vector<T> row_of_b[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) row_of_b[v] = InRegister(hn::LoadU(d, b + v * kN));
#pragma GCC unroll 24
        for (int r = 0; r < kRows; ++r) {
          const auto value = hn::Set(d, a[r][k]);
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(value, row_of_b[v], sum[r][v]);
        }
      }
      b += kWidth;
    };
    const auto ask = [&]() __attribute__((always_inline)) {
      for (int i = 0; i < kLinesAtOnce && *ahead != nullptr; ++i) {
        constexpr int kToWrite = 1, kSecondCache = 2;
        __builtin_prefetch(*ahead++, kToWrite, kSecondCache);
      }
    };
    ForEachStep(depth, ask, step);
  };
  add_part(0, p.split);
  if (p.split < p.depth) add_part(p.split + p.gap, p.depth - p.split);
#pragma GCC unroll 24
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, p.sums + r * kWidth + v * kN);
  }
}

/// As many rows as fit into registers; returns how many of `rows`.
template <int kVectors, int kRows, class T>
HWY_NOINLINE index MultiplySomeRows(const StepProduct<T>& p, index rows) {
  if (rows >= kRows) {
    MultiplyRows<kRows, kVectors>(p);
    return kRows;
  }
  if constexpr (kRows > 1) {
    return MultiplySomeRows<kVectors, (kRows > 4 ? 4 : kRows > 2 ? 2 : 1)>(p, rows);
  } else {
    return rows;
  }
}

/// The lines that a group of rows reads and writes beside its product.
template <class T>
struct LinesOfGroup {
  static constexpr index kMost = 24 * 8;
  const T* lines[kMost + 1];
  index count = 0;

  /// kVectors vectors from p on. Asking reads nothing, so it may go beyond the end of a row.
  template <int kVectors>
  HWY_INLINE void add(const T* p) {
    constexpr index kLine = 64 / sizeof(T);
    if (p == nullptr) return;
    for (index i = 0; i < kVectors * kLanes<T> && count < kMost; i += kLine) lines[count++] = p + i;
  }
};

/// Calls finish(first, end, sums) for groups of rows that cover [0, count), each after its product;
/// without `left` the sums are 0. list(row, lines) lists what finish will read for a row.
template <int kVectors, class T, class List, class Finish>
HWY_INLINE void ForEachGroup(StepProduct<T> p, index count, List&& list, Finish&& finish) {
  constexpr int kRows = kStepRows<kVectors>;
  HWY_ALIGN T sums[kRows * kVectors * kLanes<T>] = {};
  LinesOfGroup<T> lines;
  p.sums = sums;
  p.ahead = lines.lines;
  for (index row = 0; row < count;) {
    index rows = std::min<index>(kRows, count - row);
    if (p.left != nullptr) {
      lines.count = 0;
      for (index r = row; r < row + rows; ++r) list(r, lines);
      lines.lines[lines.count] = nullptr;
      rows = MultiplySomeRows<kVectors, kRows>(p, rows);
      p.left += rows;
    }
    finish(row, row + rows, sums);
    row += rows;
  }
}

/// Calls f(lanes, c, v) for the vectors v of a block of `vectors`, as far as they are columns:
/// vector v begins at column c = first + v kLanes < end.
template <class T, class F>
HWY_INLINE void ForEachVector(index first, index end, index vectors, F&& f) {
  for (index v = 0; v < vectors; ++v) {
    const index c = first + v * kLanes<T>;
    if (c + kLanes<T> <= end) {
      f(FullLanes<T>{}, c, v);
    } else if (c < end) {
      f(TailLanes<T>{{}, end - c}, c, v);
    }
  }
}

// ----------------------------------------------------------------------------------- the cells

/// The sigmoid; where that is below 2^-60, some number below.
template <class D>
HWY_INLINE hn::Vec<D> Gate(D d, hn::Vec<D> x) {
  const auto one = Constant(d, 1);
  const auto e = WeightOfMinus(d, x);
  return hn::Div(one, hn::Add(one, e));
}

template <class Lanes, class T>
HWY_INLINE Vector<T> LoadOrZero(const Lanes& lanes, const T* p, index c) {
  return p == nullptr ? hn::Zero(lanes.d) : lanes.Load(p + c);
}

/// y (1 - y) g
template <class V>
HWY_INLINE V PullGate(V y, V g) {
  return hn::Mul(hn::NegMulAdd(y, y, y), g);
}
/// (1 - y^2) g
template <class D>
HWY_INLINE hn::Vec<D> PullTanh(D d, hn::Vec<D> y, hn::Vec<D> g) {
  return hn::Mul(hn::NegMulAdd(y, y, Constant(d, 1)), g);
}

// Each cell has kGates, and kUnits vectors of hidden columns in a block. Finish makes a vector of
// column c of a row from sums(g) = (W_hh h)_g. Pull makes the gates' gradients from dh, the sum of
// dy and of what comes from the step after by the product; has_next: by `carry`, too.

struct RnnCell {
  static constexpr int kGates = 1, kUnits = kBlockVectors, kBlocks = 1;

  template <class T>
  static HWY_INLINE void ListForward(const ForwardRow<T>& row, index c, LinesOfGroup<T>& lines) {
    lines.template add<kUnits>(row.hidden + c);
  }
  template <class T>
  static HWY_INLINE void ListBackward(const BackwardRow<T>& row, index c, LinesOfGroup<T>& lines) {
    lines.template add<kUnits>(row.hidden + c);
  }

  template <class Lanes, class T, class Sums>
  static HWY_INLINE void Finish(const Lanes& lanes, const ForwardStep<T>&, const ForwardRow<T>& row,
                                index c, Sums&& sums) {
    lanes.Store(Tanh(lanes.d, hn::Add(lanes.Load(row.gates + c), sums(0))), row.hidden + c);
  }
  template <class Lanes, class T>
  static HWY_INLINE void Pull(const Lanes& lanes, const BackwardRow<T>& row, index c, index,
                              bool /*has_next*/, Vector<T> dh) {
    lanes.Store(PullTanh(lanes.d, lanes.Load(row.hidden + c), dh), row.gates + c);
  }
};

struct GruCell {
  static constexpr int kGates = 3, kUnits = 1, kBlocks = 4;

  template <class T>
  static HWY_INLINE void ListForward(const ForwardRow<T>& row, index c, LinesOfGroup<T>& lines) {
    lines.template add<kUnits>(row.hidden + c);
  }
  template <class T>
  static HWY_INLINE void ListBackward(const BackwardRow<T>& row, index c, LinesOfGroup<T>& lines) {
    lines.template add<kBlockVectors>(row.previous_hidden + c);
  }

  template <class Lanes, class T, class Sums>
  static HWY_INLINE void Finish(const Lanes& lanes, const ForwardStep<T>& s,
                                const ForwardRow<T>& row, index c, Sums&& sums) {
    const auto d = lanes.d;
    T* const at = row.gates + c;
    const index H = s.hidden;
    const auto r = Gate(d, hn::Add(lanes.Load(at), sums(0)));
    const auto z = Gate(d, hn::Add(lanes.Load(at + H), sums(1)));
    const auto hn_sum =
        s.bias_hn == nullptr ? sums(2) : hn::Add(sums(2), lanes.Load(s.bias_hn + c));
    const auto n = Tanh(d, hn::MulAdd(r, hn_sum, lanes.Load(at + 2 * H)));
    const auto before = LoadOrZero(lanes, row.previous_hidden, c);
    lanes.Store(hn::MulAdd(z, hn::Sub(before, n), n), row.hidden + c);
    lanes.Store(r, at);
    lanes.Store(z, at + H);
    lanes.Store(n, at + 2 * H);
    lanes.Store(hn_sum, at + 3 * H);
  }
  template <class Lanes, class T>
  static HWY_INLINE void Pull(const Lanes& lanes, const BackwardRow<T>& row, index c, index H,
                              bool has_next, Vector<T> dh) {
    const auto d = lanes.d;
    T* const at = row.gates + c;
    const auto r = lanes.Load(at), z = lanes.Load(at + H), n = lanes.Load(at + 2 * H);
    if (has_next) dh = hn::Add(dh, lanes.Load(row.carry + c));
    const auto before = LoadOrZero(lanes, row.previous_hidden, c);
    const auto dn = PullTanh(d, n, hn::NegMulAdd(dh, z, dh));
    lanes.Store(PullGate(r, hn::Mul(dn, lanes.Load(at + 3 * H))), at);
    lanes.Store(PullGate(z, hn::Mul(dh, hn::Sub(before, n))), at + H);
    lanes.Store(dn, at + 2 * H);
    lanes.Store(hn::Mul(dn, r), at + 3 * H);
    lanes.Store(hn::Mul(dh, z), row.carry + c);
  }
};

struct LstmCell {
  static constexpr int kGates = 4, kUnits = 1, kBlocks = 4;

  template <class T>
  static HWY_INLINE void ListForward(const ForwardRow<T>& row, index c, LinesOfGroup<T>& lines) {
    lines.template add<kUnits>(row.hidden + c);
    lines.template add<kUnits>(row.cell + c);
    lines.template add<kUnits>(row.cell_tanh + c);
  }
  template <class T>
  static HWY_INLINE void ListBackward(const BackwardRow<T>& row, index c, LinesOfGroup<T>& lines) {
    lines.template add<kBlockVectors>(row.cell_tanh + c);
    lines.template add<kBlockVectors>(row.previous_cell + c);
  }

  template <class Lanes, class T, class Sums>
  static HWY_INLINE void Finish(const Lanes& lanes, const ForwardStep<T>& s,
                                const ForwardRow<T>& row, index c, Sums&& sums) {
    const auto d = lanes.d;
    const index H = s.hidden;
    T* const at = row.gates + c;
    const auto i = Gate(d, hn::Add(lanes.Load(at), sums(0)));
    const auto f = Gate(d, hn::Add(lanes.Load(at + H), sums(1)));
    const auto g = Tanh(d, hn::Add(lanes.Load(at + 2 * H), sums(2)));
    const auto o = Gate(d, hn::Add(lanes.Load(at + 3 * H), sums(3)));
    const auto before = LoadOrZero(lanes, row.previous_cell, c);
    const auto cell = hn::MulAdd(f, before, hn::Mul(i, g));
    const auto tanh = Tanh(d, cell);
    lanes.Store(cell, row.cell + c);
    lanes.Store(tanh, row.cell_tanh + c);
    lanes.Store(hn::Mul(o, tanh), row.hidden + c);
    lanes.Store(i, at);
    lanes.Store(f, at + H);
    lanes.Store(g, at + 2 * H);
    lanes.Store(o, at + 3 * H);
  }
  template <class Lanes, class T>
  static HWY_INLINE void Pull(const Lanes& lanes, const BackwardRow<T>& row, index c, index H,
                              bool has_next, Vector<T> dh) {
    const auto d = lanes.d;
    T* const at = row.gates + c;
    const auto i = lanes.Load(at), f = lanes.Load(at + H), g = lanes.Load(at + 2 * H),
               o = lanes.Load(at + 3 * H);
    const auto tanh = lanes.Load(row.cell_tanh + c);
    auto dcell = PullTanh(d, tanh, hn::Mul(dh, o));
    if (has_next) dcell = hn::Add(dcell, lanes.Load(row.carry + c));
    const auto before = LoadOrZero(lanes, row.previous_cell, c);
    lanes.Store(PullGate(i, hn::Mul(dcell, g)), at);
    lanes.Store(PullGate(f, hn::Mul(dcell, before)), at + H);
    lanes.Store(PullTanh(d, g, hn::Mul(dcell, i)), at + 2 * H);
    lanes.Store(PullGate(o, hn::Mul(dh, tanh)), at + 3 * H);
    lanes.Store(hn::Mul(dcell, f), row.carry + c);
  }
};

// ----------------------------------------------------------------------------------- the steps

template <class Cell, class T>
void Forward(const ForwardStep<T>& s) {
  constexpr index kN = kLanes<T>;
  constexpr int kVectors = Cell::kGates * Cell::kUnits;
  const index H = s.hidden;
  for (index block = s.first_block; block < s.last_block; ++block) {
    const StepProduct<T> product{s.previous, s.weight + block * H * kVectors * kN, H, H, 0};
    const index column = block * Cell::kUnits * kN;
    const auto list = [&](index r, LinesOfGroup<T>& lines) {
      const ForwardRow<T>& row = s.rows[r];
      for (index gate = 0; gate < Cell::kGates; ++gate) {
        lines.template add<Cell::kUnits>(row.gates + gate * H + column);
      }
      Cell::ListForward(row, column, lines);
    };
    ForEachGroup<kVectors>(product, s.count, list, [&](index first, index end, const T* sums) {
      for (index r = first; r < end; ++r, sums += kVectors * kN) {
        ForEachVector<T>(block * Cell::kUnits * kN, H, Cell::kUnits,
                         [&](auto lanes, index c, index v) {
                           Cell::Finish(lanes, s, s.rows[r], c, [&](int gate) {
                             return hn::Load(Tag<T>(), sums + (gate * Cell::kUnits + v) * kN);
                           });
                         });
      }
    });
  }
}

template <class Cell, class T>
void Backward(const BackwardStep<T>& s) {
  constexpr index kN = kLanes<T>;
  constexpr int kVectors = kBlockVectors;
  const index H = s.hidden, depth = Cell::kGates * H;
  // W_hn's gradient is in the fourth block.
  const bool is_gru = Cell::kGates == 3;
  for (index block = s.first_block; block < s.last_block; ++block) {
    const StepProduct<T> product{s.next, s.weight + block * s.panel_stride, depth,
                                 is_gru ? 2 * H : depth, H};
    const index column = block * kVectors * kN;
    const auto list = [&](index r, LinesOfGroup<T>& lines) {
      const BackwardRow<T>& row = s.rows[r];
      for (index b = 0; b < Cell::kBlocks; ++b) {
        lines.template add<kVectors>(row.gates + b * H + column);
      }
      lines.template add<kVectors>(row.dy + column);
      Cell::ListBackward(row, column, lines);
    };
    ForEachGroup<kVectors>(product, s.count, list, [&](index first, index end, const T* sums) {
      for (index r = first; r < end; ++r, sums += kVectors * kN) {
        const BackwardRow<T>& row = s.rows[r];
        ForEachVector<T>(block * kVectors * kN, H, kVectors, [&](auto lanes, index c, index v) {
          const auto dh = hn::Add(lanes.Load(row.dy + c), hn::Load(Tag<T>(), sums + v * kN));
          Cell::Pull(lanes, row, c, H, s.next != nullptr, dh);
        });
      }
    });
  }
}

/// to[k][gate][u] = W_hh[gate H + block kWidth + u][k], 0 where there is no such row.
template <class Cell, class T>
void Pack(Rows<const T> weight, index gates, index block, T* to) {
  constexpr index kN = kLanes<T>, kWidth = Cell::kUnits * kN;
  const index H = weight.columns, stride = gates * kWidth;
  const index whole = H / kN * kN;
  for (index part = 0; part < stride; part += kN) {
    const index c = block * kWidth + part % kWidth;
    const index rows = std::clamp<index>(H - c, 0, kN);
    const T* const from = weight[part / kWidth * H + (rows > 0 ? c : 0)];
    for (index k = 0; rows == kN && k < whole; k += kN) {
      TransposeSquare(from + k, weight.stride, to + k * stride + part, stride);
    }
    for (index k = rows == kN ? whole : 0; k < H; ++k) {
      T* const at = to + k * stride + part;
      for (index r = 0; r < kN; ++r) at[r] = r < rows ? from[r * weight.stride + k] : T{0};
    }
  }
}

template <class Cell, class T>
RecurrentSteps<T> StepsOf() {
  return {Cell::kUnits * kLanes<T>, kPanelLanes<T>, Forward<Cell, T>, Backward<Cell, T>,
          Pack<Cell, T>};
}

template <class T>
RecurrentSteps<T> Steps(RecurrentKind kind) {
  if (kind == RecurrentKind::kLstm) return StepsOf<LstmCell, T>();
  if (kind == RecurrentKind::kGru) return StepsOf<GruCell, T>();
  return StepsOf<RnnCell, T>();
}
auto StepsTable() { return PerPrecision{Steps<float>, Steps<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea {

HWY_EXPORT(StepsTable);

template <class T>
RecurrentSteps<T> recurrent_steps(RecurrentKind kind) {
  return FOVEA_DISPATCH(StepsTable)().of<T>()(kind);
}

template RecurrentSteps<float> recurrent_steps(RecurrentKind);
template RecurrentSteps<double> recurrent_steps(RecurrentKind);

}  // namespace fovea
#endif  // HWY_ONCE

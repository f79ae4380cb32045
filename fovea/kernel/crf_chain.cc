// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/crf_chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/crf_chain.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/kernel/crf_sums-inl.h"
#include "fovea/simd/simd-inl.h"

// A step of the recursion is a product of a row and the matrix exp(transitions), K^2 multiply-adds.
// It runs on plain numbers: the row divided by its largest power of two, the matrix by its own.
// A sum loses only terms below 2^-118 (float), so a sum of at least 2^-66 has lost nothing that
// counts. A smaller one (tags that are forbidden, or unlikely by many orders of magnitude) is
// computed again, in pairs m 2^e, relative to its own largest term, for these columns alone. So no
// path is dropped, whatever the scores are. The same is true of the expected transitions of a step,
// all K^2 of which are scaled by one number: their sum.
HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {
namespace {

/// Columns of a block of the product.
constexpr index kBlock = 4;
/// Steps whose expected transitions are added in one pass over the matrix.
constexpr index kPending = 4;
static_assert(kCrfBuffers == 8 + 2 * kPending, "the rows of Backward");

template <class T>
void Split(const T* x, index n, Scaled<T> to) {
  ForEachLane<T>(n, [&](auto lanes, index i) {
    const ScaledVector<T> y = ExpInParts<T>(lanes.Load(x + i));
    lanes.Store(y.m, to.m + i);
    lanes.Store(y.e, to.e + i);
  });
}

template <class T>
void JoinAll(Scaled<const T> from, index n, T* plain) {
  for (index i = 0; i < n; i += kLanes<T>) {
    hn::StoreU(Join(LoadScaled<T>(from, i)), Tag<T>(), plain + i);
  }
}

/// Numbers beyond n become 0, up to a whole vector.
template <class T>
HWY_INLINE void ClearBeyond(index n, index stride, Scaled<T> x) {
  std::fill(x.m + n, x.m + stride, T{0});
  std::fill(x.e + n, x.e + stride, kNoExponent<T>);
}

/// to = a b, divided by 2^top so that the largest exponent is 0; returns top.
template <class T>
T MultiplyAndShift(Scaled<const T> a, Scaled<const T> b, index stride, Scaled<T> to) {
  const Tag<T> d;
  auto most = hn::Set(d, std::numeric_limits<T>::lowest());
  for (index i = 0; i < stride; i += kLanes<T>) {
    const auto y = Times(LoadScaled<T>(a, i), LoadScaled<T>(b, i));
    most = hn::Max(most, y.e);
    StoreScaled(y, to, i);
  }
  const T top = hn::GetLane(hn::MaxOfLanes(d, most));
  for (index i = 0; i < stride; i += kLanes<T>) {
    hn::StoreU(hn::Sub(hn::LoadU(d, to.e + i), hn::Set(d, top)), d, to.e + i);
  }
  return top;
}

/// A row to multiply, and the same joined.
template <class T>
struct Incoming {
  Scaled<const T> parts;
  const T* plain;
};

/// One vector of columns of the product, without loss.
template <class T>
ScaledVector<T> ExactColumns(const CrfTable<T>& t, const CrfMatrix<T>& matrix,
                             const Incoming<T>& in, index column) {
  const Tag<T> d;
  return ExactSum<T>(t.tags, [&](index k) {
    const ScaledVector<T> x{hn::Set(d, in.parts.m[k]), hn::Set(d, in.parts.e[k])};
    return Times(x, LoadScaled<T>(In(matrix.parts.row(k, t.stride)), column));
  });
}

template <class T, int kVectors>
HWY_INLINE void MultiplyColumns(const CrfTable<T>& t, const CrfMatrix<T>& matrix,
                                const Incoming<T>& in, index column, Scaled<T> to) {
  constexpr index kN = kLanes<T>;
  const Tag<T> d;
  // Two chains hide the latency of a multiply-add where there are few columns.
  Vector<T> even[kVectors], odd[kVectors];
  for (int v = 0; v < kVectors; ++v) even[v] = odd[v] = hn::Zero(d);
  const T* row = matrix.plain + column;
  index k = 0;
  for (; k + 2 <= t.tags; k += 2, row += 2 * t.stride) {
    const auto x = hn::Set(d, in.plain[k]), y = hn::Set(d, in.plain[k + 1]);
    for (int v = 0; v < kVectors; ++v) {
      even[v] = hn::MulAdd(x, hn::LoadU(d, row + v * kN), even[v]);
      odd[v] = hn::MulAdd(y, hn::LoadU(d, row + t.stride + v * kN), odd[v]);
    }
  }
  for (int v = 0; v < kVectors && k < t.tags; ++v) {
    even[v] = hn::MulAdd(hn::Set(d, in.plain[k]), hn::LoadU(d, row + v * kN), even[v]);
  }
  for (int v = 0; v < kVectors; ++v) {
    const index c = column + v * kN;
    const auto sum = hn::Add(even[v], odd[v]);
    const auto counts = hn::FirstN(d, static_cast<std::size_t>(std::min(kN, t.tags - c)));
    const auto is_safe = hn::Or(hn::Ge(sum, hn::Set(d, kSafeSum<T>)), hn::Not(counts));
    const bool all_safe = hn::AllTrue(d, is_safe);
    StoreScaled(all_safe ? Part<T>(sum) : ExactColumns(t, matrix, in, c), to, c);
  }
}

/// to[c] = sum_k in[k] matrix[k][c].
template <class T>
void Multiply(const CrfTable<T>& t, const CrfMatrix<T>& matrix, const Incoming<T>& in,
              Scaled<T> to) {
  constexpr index kN = kLanes<T>;
  index c = 0;
  for (; c + kBlock * kN <= t.stride; c += kBlock * kN) {
    MultiplyColumns<T, kBlock>(t, matrix, in, c, to);
  }
  if (c + 2 * kN <= t.stride) {
    MultiplyColumns<T, 2>(t, matrix, in, c, to);
    c += 2 * kN;
  }
  if (c < t.stride) MultiplyColumns<T, 1>(t, matrix, in, c, to);
}

template <class T>
double Forward(const CrfChain<T>& c) {
  const CrfTable<T>& t = *c.table;
  const index P = t.stride;
  T* const plain = c.buffer;
  const Scaled<T> x{plain + P, plain + 2 * P};
  ClearBeyond(t.tags, P, x);
  double top = 0;
  for (index n = 0; n < c.x.rows; ++n) {
    const Scaled<T> to = c.alpha.row(n, P);
    Split(c.x[n], t.tags, x);
    if (n > 0) {
      const Scaled<T> before = c.alpha.row(n - 1, P);
      JoinAll(In(before), P, plain);
      Multiply(t, t.forward, Incoming<T>{In(before), plain}, to);
      top += t.top;
    }
    top += double{MultiplyAndShift(In(n > 0 ? to : t.start), In(x), P, to)};
  }
  return top * kLn2 + LogOfDot(In(c.alpha.row(c.x.rows - 1, P)), In(t.end), t.tags);
}

/// marginals = alpha beta / their sum.
template <class T>
void Marginals(const CrfTable<T>& t, Scaled<const T> alpha, Scaled<const T> beta, T* plain,
               T* marginals) {
  const Tag<T> d;
  auto most = hn::Set(d, std::numeric_limits<T>::lowest());
  for (index i = 0; i < t.stride; i += kLanes<T>) {
    most = hn::Max(most, Times(LoadScaled<T>(alpha, i), LoadScaled<T>(beta, i)).e);
  }
  most = hn::MaxOfLanes(d, most);
  auto sum = hn::Zero(d);
  for (index i = 0; i < t.stride; i += kLanes<T>) {
    auto y = Times(LoadScaled<T>(alpha, i), LoadScaled<T>(beta, i));
    y.e = hn::Sub(y.e, most);
    const auto p = Join<T>(y);
    hn::StoreU(p, d, plain + i);
    sum = hn::Add(sum, p);
  }
  sum = hn::SumOfLanes(d, sum);
  ForEachLane<T>(t.tags, [&](auto lanes, index i) {
    lanes.Store(hn::Div(hn::LoadU(d, plain + i), sum), marginals + i);
  });
}

/// Calls f(where in the matrix, alpha_a matrix_ab gamma_b) for vectors of b, and each a.
template <class T, class F>
HWY_INLINE void ForEachPair(const CrfTable<T>& t, Scaled<const T> alpha, Scaled<const T> gamma,
                            F&& f) {
  const Tag<T> d;
  for (index a = 0; a < t.tags; ++a) {
    const ScaledVector<T> x{hn::Set(d, alpha.m[a]), hn::Set(d, alpha.e[a])};
    for (index i = 0; i < t.stride; i += kLanes<T>) {
      const auto row = Times(x, LoadScaled<T>(In(t.forward.parts.row(a, t.stride)), i));
      f(a * t.stride + i, Times(row, LoadScaled<T>(gamma, i)));
    }
  }
}

/// pairs[a][b] += alpha_a matrix_ab gamma_b / their sum, without loss.
template <class T>
void AddExactPairs(const CrfTable<T>& t, Scaled<const T> alpha, Scaled<const T> gamma, T* pairs) {
  const Tag<T> d;
  auto most = hn::Set(d, std::numeric_limits<T>::lowest());
  ForEachPair<T>(t, alpha, gamma, [&](index, const auto& y) { most = hn::Max(most, y.e); });
  most = hn::MaxOfLanes(d, most);
  const auto joined = [&](ScaledVector<T> y) {
    y.e = hn::Sub(y.e, most);
    return Join<T>(y);
  };
  auto sum = hn::Zero(d);
  ForEachPair<T>(t, alpha, gamma, [&](index, const auto& y) { sum = hn::Add(sum, joined(y)); });
  sum = hn::SumOfLanes(d, sum);
  ForEachPair<T>(t, alpha, gamma, [&](index at, const auto& y) {
    const auto p = hn::Div(joined(y), sum);
    hn::StoreU(hn::Add(hn::LoadU(d, pairs + at), p), d, pairs + at);
  });
}

/// Steps whose expected transitions are still to be added: rows of alpha / their sum, and of gamma.
template <class T>
struct PendingPairs {
  T *left, *right;  // [kPending stride]
  index count = 0;

  void Add(const CrfTable<T>& t, const T* alpha, T norm, const T* gamma) {
    T *const l = left + count * t.stride, *const r = right + count * t.stride;
    const Tag<T> d;
    const auto factor = hn::Div(hn::Set(d, T{1}), hn::Set(d, norm));
    for (index i = 0; i < t.stride; i += kLanes<T>) {
      hn::StoreU(hn::Mul(hn::LoadU(d, alpha + i), factor), d, l + i);
      hn::StoreU(hn::LoadU(d, gamma + i), d, r + i);
    }
    ++count;
  }
  void Flush(const CrfTable<T>& t, T* pairs) {
    const Tag<T> d;
    const index P = t.stride;
    std::fill(left + count * P, left + kPending * P, T{0});
    std::fill(right + count * P, right + kPending * P, T{0});
    if (count == 0) return;
    for (index a = 0; a < t.tags; ++a) {
      Vector<T> factor[kPending];
      for (index p = 0; p < kPending; ++p) factor[p] = hn::Set(d, left[p * P + a]);
      for (index i = 0; i < P; i += kLanes<T>) {
        auto sum = hn::Mul(factor[0], hn::LoadU(d, right + i));
        for (index p = 1; p < kPending; ++p) {
          sum = hn::MulAdd(factor[p], hn::LoadU(d, right + p * P + i), sum);
        }
        T* const to = pairs + a * P + i;
        const auto matrix = hn::LoadU(d, t.forward.plain + a * P + i);
        hn::StoreU(hn::MulAdd(matrix, sum, hn::LoadU(d, to)), d, to);
      }
    }
    count = 0;
  }
};

template <class T>
void Backward(const CrfChain<T>& c, const CrfPull<T>& pull) {
  const CrfTable<T>& t = *c.table;
  const index P = t.stride;
  auto room = [&, next = c.buffer](index rows) mutable {
    T* const here = next;
    next += rows * P;
    return here;
  };
  const Scaled<T> x{room(1), room(1)}, beta{room(1), room(1)}, gamma{room(1), room(1)};
  T *const left = room(1), *const right = room(1);
  PendingPairs<T> pending{room(kPending), room(kPending)};
  ClearBeyond(t.tags, P, x);
  std::copy_n(t.end.m, P, beta.m);
  std::copy_n(t.end.e, P, beta.e);
  for (index n = c.x.rows - 1;; --n) {
    if (pull.marginals.data != nullptr) {
      Marginals<T>(t, In(c.alpha.row(n, P)), In(beta), left, pull.marginals[n]);
    }
    if (n == 0) break;
    Split(c.x[n], t.tags, x);
    MultiplyAndShift(In(beta), In(x), P, gamma);
    JoinAll(In(gamma), P, right);
    Multiply(t, t.backward, Incoming<T>{In(gamma), right}, beta);
    if (pull.pairs == nullptr) continue;
    const Scaled<const T> alpha = In(c.alpha.row(n - 1, P));
    JoinAll(alpha, P, left);
    const T norm = SumOf<T>(P, [&](auto lanes, index i) {
      return hn::Mul(lanes.Load(left + i), Join(LoadScaled<T>(In(beta), i)));
    });
    if (norm >= kSafeSum<T>) {
      pending.Add(t, left, norm, right);
      if (pending.count == kPending) pending.Flush(t, pull.pairs);
    } else {
      AddExactPairs<T>(t, alpha, In(gamma), pull.pairs);
    }
  }
  if (pull.pairs != nullptr) pending.Flush(t, pull.pairs);
}

template <class T>
CrfSteps<T> StepsOf() {
  static_assert(kLanes<T> <= kCrfMostLanes<T>);
  return {kLanes<T>, Split<T>, JoinAll<T>, Forward<T>, Backward<T>};
}
auto StepsTable() { return PerPrecision{StepsOf<float>, StepsOf<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::detail {

HWY_EXPORT(StepsTable);

template <class T>
CrfSteps<T> crf_steps() {
  return FOVEA_DISPATCH(StepsTable)().of<T>()();
}

template CrfSteps<float> crf_steps();
template CrfSteps<double> crf_steps();

}  // namespace fovea::detail
#endif  // HWY_ONCE

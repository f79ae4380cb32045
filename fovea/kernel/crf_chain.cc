// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/crf_chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/crf_chain.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/kernel/scaled-inl.h"
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

inline constexpr double kLn2 = 0.6931471805599453;

/// A sum of products of joined numbers that is at least this has lost nothing that counts.
template <class T>
inline constexpr T kSafeSum = kIsFloat<T> ? T{0x1p-66} : static_cast<T>(0x1p-800);

template <class T>
HWY_INLINE Scaled<const T> In(Scaled<T> x) {
  return {x.m, x.e};
}

/// log of the sum of a b, both [n].
template <class T>
HWY_INLINE double LogOfDot(Scaled<const T> a, Scaled<const T> b, index n) {
  double most = 2.0 * double{kNoExponent<T>}, sum = 0;
  for (index k = 0; k < n; ++k) {
    if (a.m[k] != 0 && b.m[k] != 0) most = std::max(most, double{a.e[k]} + double{b.e[k]});
  }
  for (index k = 0; k < n; ++k) {
    const double e = std::max(double{a.e[k]} + double{b.e[k]} - most, -2000.0);
    sum += std::ldexp(double{a.m[k]} * double{b.m[k]}, static_cast<int>(std::min(e, 0.0)));
  }
  return most * kLn2 + std::log(sum);
}

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

// Several sequences in the lanes. The recursion is that above: products of plain numbers, and a sum
// that is so small that it may have lost something is computed again in pairs. Here a vector holds
// the same tag of several sequences, so a step takes K^2 multiply-adds for all of them, none of
// which is on lanes beyond the tags, and no sum is across lanes.
//
// A lane never sees another: where one sum of a vector is small, that lane alone takes the exact
// one. So a sequence has the same bits in any company. Sequences begin together; a lane whose
// sequence is over keeps its alpha on the way forward, and on the way back it waits: what it
// computes until its last row is never used.

template <class T>
using LaneMask = hn::Mask<Tag<T>>;

/// A row: the number of each tag, in each lane.
template <class T>
struct LaneRow {
  Scaled<T> parts;

  ScaledVector<T> operator[](index k) const { return LoadScaled<T>(In(parts), k * kLanes<T>); }
  void Set(index k, const ScaledVector<T>& y) const { StoreScaled(y, parts, k * kLanes<T>); }
};

/// A number of the table in all lanes.
template <class T>
HWY_INLINE ScaledVector<T> Everywhere(Scaled<const T> from, index i) {
  const Tag<T> d;
  return {hn::Set(d, from.m[i]), hn::Set(d, from.e[i])};
}

/// to = 2^-top times the products y(k); returns top, by which the largest exponent is 0.
template <class T, class Product>
HWY_INLINE Vector<T> FillAndShift(index tags, const LaneRow<T>& to, Product&& y) {
  auto most = hn::Set(Tag<T>(), std::numeric_limits<T>::lowest());
  for (index k = 0; k < tags; ++k) {
    const ScaledVector<T> product = y(k);
    most = hn::Max(most, product.e);
    to.Set(k, product);
  }
  for (index k = 0; k < tags; ++k) {
    ScaledVector<T> shifted = to[k];
    shifted.e = hn::Sub(shifted.e, most);
    to.Set(k, shifted);
  }
  return most;
}

template <class T>
class Walk {
 public:
  Walk(const CrfLanes<T>& c) : c_(c), t_(*c.table), K_(t_.tags), next_(c.buffer) {
    for (index lane = 0; lane < c.count; ++lane) {
      longest_ = std::max(longest_, c.lanes[lane].x.rows);
    }
    x_ = Room(K_), plain_ = Room(K_), flags_ = Room(1), tops_ = Room(1);
  }

  void Forward() {
    double top[kLanes<T>] = {};
    const LaneRow<T> sums = RoomForRow();
    for (index n = 0; n < longest_; ++n) {
      const LaneMask<T> active = LanesWhere([&](index rows) { return n < rows; });
      ReadEmissions(n);
      if (n > 0) Multiply(t_.forward, Alpha(n - 1), active, sums);
      const auto most = FillAndShift(K_, Alpha(n), [&](index k) {
        return Times(n > 0 ? sums[k] : Everywhere(In(t_.start), k), Emission(k));
      });
      if (n > 0) KeepWhereOver(n, active);
      hn::StoreU(most, d, tops_);
      for (index lane = 0; lane < c_.count; ++lane) {
        if (n < c_.lanes[lane].x.rows) top[lane] += double{tops_[lane]} + (n > 0 ? t_.top : 0);
      }
    }
    for (index lane = 0; lane < c_.count; ++lane) {
      if (c_.lanes[lane].x.rows > 0) c_.lanes[lane].log_partition = LogPartition(lane, top[lane]);
    }
  }

  void Backward(T* pairs) {
    const LaneRow<T> beta = RoomForRow(), gamma = RoomForRow();
    T* const right = Room(K_);
    T* const expected = Room(K_ * K_);  // without the matrix
    T* const exact = Room(K_ * K_);
    for (T* const sums : {expected, exact}) std::fill_n(sums, K_ * K_ * kLanes<T>, T{0});
    for (index k = 0; k < K_; ++k) beta.Set(k, Everywhere(In(t_.end), k));
    for (index n = longest_ - 1; n >= 0; --n) {
      const LaneMask<T> active = LanesWhere([&](index rows) { return n < rows; });
      BeginWhere(LanesWhere([&](index rows) { return n == rows - 1; }), beta);
      WriteMarginals(n, beta);
      if (n == 0) break;
      ReadEmissions(n);
      FillAndShift(K_, gamma, [&](index k) { return Times(beta[k], Emission(k)); });
      Multiply(t_.backward, gamma, active, beta);
      if (pairs == nullptr) continue;
      std::copy_n(plain_, K_ * kLanes<T>, right);
      AddPairs({Alpha(n - 1), beta, gamma}, active, right, expected, exact);
    }
    if (pairs != nullptr) AddUp(expected, exact, pairs);
  }

 private:
  /// The factors of the expected transitions of a step.
  struct Around {
    LaneRow<T> alpha, beta, gamma;
  };

  T* Room(index vectors) {
    T* const here = next_;
    next_ += vectors * kLanes<T>;
    return here;
  }
  LaneRow<T> RoomForRow() {
    T* const m = Room(K_);
    return {{m, Room(K_)}};
  }
  LaneRow<T> Alpha(index n) const { return {c_.alpha.row(n, K_ * kLanes<T>)}; }
  ScaledVector<T> Emission(index k) const {
    return ExpInParts<T>(hn::LoadU(d, x_ + k * kLanes<T>));
  }

  template <class Predicate>
  LaneMask<T> LanesWhere(Predicate&& holds) const {
    for (index lane = 0; lane < kLanes<T>; ++lane) {
      flags_[lane] = lane < c_.count && holds(c_.lanes[lane].x.rows) ? T{1} : T{0};
    }
    return hn::Gt(hn::LoadU(d, flags_), hn::Zero(d));
  }

  void ReadEmissions(index n) const {
    for (index lane = 0; lane < kLanes<T>; ++lane) {
      const bool has_row = lane < c_.count && n < c_.lanes[lane].x.rows;
      const T* const from = has_row ? c_.lanes[lane].x[n] : nullptr;
      for (index k = 0; k < K_; ++k) x_[k * kLanes<T> + lane] = has_row ? from[k] : T{0};
    }
  }

  /// Column c of the product, without loss.
  ScaledVector<T> Exact(const CrfMatrix<T>& matrix, const LaneRow<T>& in, index c) const {
    return ExactSum<T>(
        K_, [&](index k) { return Times(in[k], Everywhere(In(matrix.parts), k * t_.stride + c)); });
  }

  /// to[c] = sum_k in[k] matrix[k][c]; leaves the plain numbers of `in` in plain_.
  void Multiply(const CrfMatrix<T>& matrix, const LaneRow<T>& in, LaneMask<T> active,
                const LaneRow<T>& to) const {
    for (index k = 0; k < K_; ++k) hn::StoreU(Join<T>(in[k]), d, plain_ + k * kLanes<T>);
    for (index c = 0; c < K_; ++c) {
      auto sum = hn::Zero(d);
      for (index k = 0; k < K_; ++k) {
        const auto factor = hn::Set(d, matrix.plain[k * t_.stride + c]);
        sum = hn::MulAdd(hn::LoadU(d, plain_ + k * kLanes<T>), factor, sum);
      }
      const auto is_safe = hn::Ge(sum, hn::Set(d, kSafeSum<T>));
      ScaledVector<T> y = Part<T>(sum);
      if (!hn::AllTrue(d, hn::Or(is_safe, hn::Not(active)))) {
        const ScaledVector<T> exact = Exact(matrix, in, c);
        y = {hn::IfThenElse(is_safe, y.m, exact.m), hn::IfThenElse(is_safe, y.e, exact.e)};
      }
      to.Set(c, y);
    }
  }

  void KeepWhereOver(index n, LaneMask<T> active) const {
    if (hn::AllTrue(d, active)) return;
    const LaneRow<T> before = Alpha(n - 1), here = Alpha(n);
    for (index k = 0; k < K_; ++k) {
      const ScaledVector<T> a = here[k], b = before[k];
      here.Set(k, {hn::IfThenElse(active, a.m, b.m), hn::IfThenElse(active, a.e, b.e)});
    }
  }
  void BeginWhere(LaneMask<T> last, const LaneRow<T>& beta) const {
    if (hn::AllFalse(d, last)) return;
    for (index k = 0; k < K_; ++k) {
      const ScaledVector<T> end = Everywhere(In(t_.end), k), b = beta[k];
      beta.Set(k, {hn::IfThenElse(last, end.m, b.m), hn::IfThenElse(last, end.e, b.e)});
    }
  }

  double LogPartition(index lane, double top) const {
    const LaneRow<T> last = Alpha(longest_ - 1);
    for (index k = 0; k < K_; ++k) {  // plain_ and x_ are free
      plain_[k] = last.parts.m[k * kLanes<T> + lane];
      x_[k] = last.parts.e[k * kLanes<T> + lane];
    }
    return top * kLn2 + LogOfDot<T>({plain_, x_}, In(t_.end), K_);
  }

  /// alpha beta / their sum.
  void WriteMarginals(index n, const LaneRow<T>& beta) const {
    const LaneRow<T> alpha = Alpha(n);
    auto most = hn::Set(d, std::numeric_limits<T>::lowest());
    for (index k = 0; k < K_; ++k) most = hn::Max(most, Times(alpha[k], beta[k]).e);
    auto sum = hn::Zero(d);
    for (index k = 0; k < K_; ++k) {
      auto y = Times(alpha[k], beta[k]);
      y.e = hn::Sub(y.e, most);
      const auto p = Join<T>(y);
      hn::StoreU(p, d, plain_ + k * kLanes<T>);
      sum = hn::Add(sum, p);
    }
    for (index k = 0; k < K_; ++k) {
      T* const p = plain_ + k * kLanes<T>;
      hn::StoreU(hn::Div(hn::LoadU(d, p), sum), d, p);
    }
    for (index lane = 0; lane < c_.count; ++lane) {
      if (n >= c_.lanes[lane].x.rows) continue;
      T* const to = c_.lanes[lane].marginals[n];
      for (index k = 0; k < K_; ++k) to[k] = plain_[k * kLanes<T> + lane];
    }
  }

  void AddPairs(const Around& a, LaneMask<T> active, const T* right, T* expected, T* exact) const {
    auto norm = hn::Zero(d);
    for (index k = 0; k < K_; ++k) {
      const auto left = Join<T>(a.alpha[k]);
      hn::StoreU(left, d, plain_ + k * kLanes<T>);
      norm = hn::MulAdd(left, Join<T>(a.beta[k]), norm);
    }
    const auto is_safe = hn::And(active, hn::Ge(norm, hn::Set(d, kSafeSum<T>)));
    const auto factor = hn::IfThenElseZero(is_safe, hn::Div(hn::Set(d, T{1}), norm));
    for (index i = 0; i < K_; ++i) {
      const auto left = hn::Mul(hn::LoadU(d, plain_ + i * kLanes<T>), factor);
      for (index j = 0; j < K_; ++j) {
        T* const to = expected + (i * K_ + j) * kLanes<T>;
        const auto of_j = hn::IfThenElseZero(is_safe, hn::LoadU(d, right + j * kLanes<T>));
        hn::StoreU(hn::MulAdd(left, of_j, hn::LoadU(d, to)), d, to);
      }
    }
    const auto is_small = hn::AndNot(is_safe, active);
    if (!hn::AllFalse(d, is_small)) AddExactPairs(a, is_small, exact);
  }

  /// alpha_i matrix_ij gamma_j / their sum, without loss, in these lanes.
  void AddExactPairs(const Around& a, LaneMask<T> where, T* exact) const {
    const auto term = [&](index i, index j) {
      const auto edge = Everywhere(In(t_.forward.parts), i * t_.stride + j);
      return Times(Times(a.alpha[i], edge), a.gamma[j]);
    };
    auto most = hn::Set(d, std::numeric_limits<T>::lowest());
    for (index i = 0; i < K_; ++i)
      for (index j = 0; j < K_; ++j) most = hn::Max(most, term(i, j).e);
    const auto joined = [&](index i, index j) {
      auto y = term(i, j);
      y.e = hn::Sub(y.e, most);
      return Join<T>(y);
    };
    auto sum = hn::Zero(d);
    for (index i = 0; i < K_; ++i)
      for (index j = 0; j < K_; ++j) sum = hn::Add(sum, joined(i, j));
    for (index i = 0; i < K_; ++i)
      for (index j = 0; j < K_; ++j) {
        T* const to = exact + (i * K_ + j) * kLanes<T>;
        const auto p = hn::IfThenElseZero(where, hn::Div(joined(i, j), sum));
        hn::StoreU(hn::Add(hn::LoadU(d, to), p), d, to);
      }
  }

  void AddUp(const T* expected, const T* exact, T* pairs) const {
    const auto sum = [&](const T* from) {
      return hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, from)));
    };
    for (index i = 0; i < K_; ++i)
      for (index j = 0; j < K_; ++j) {
        const index at = (i * K_ + j) * kLanes<T>, to = i * t_.stride + j;
        pairs[to] += t_.forward.plain[to] * sum(expected + at) + sum(exact + at);
      }
  }

  static constexpr Tag<T> d{};
  const CrfLanes<T>& c_;
  const CrfTable<T>& t_;
  const index K_;
  index longest_ = 0;
  T* next_;
  T *x_, *plain_;     // [K, lanes]
  T *flags_, *tops_;  // [lanes]
};

template <class T>
void ForwardLanes(const CrfLanes<T>& c) {
  Walk<T>(c).Forward();
}
template <class T>
void BackwardLanes(const CrfLanes<T>& c, T* pairs) {
  Walk<T>(c).Backward(pairs);
}

template <class T>
CrfLaneSteps<T> LaneStepsOf() {
  static_assert(kLanes<T> <= kCrfMostLanes<T>);
  return {ForwardLanes<T>, BackwardLanes<T>};
}
auto LaneStepsTable() { return PerPrecision{LaneStepsOf<float>, LaneStepsOf<double>}; }

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

HWY_EXPORT(LaneStepsTable);

template <class T>
CrfLaneSteps<T> crf_lane_steps() {
  return FOVEA_DISPATCH(LaneStepsTable)().of<T>()();
}

template CrfLaneSteps<float> crf_lane_steps();
template CrfLaneSteps<double> crf_lane_steps();

}  // namespace fovea::detail
#endif  // HWY_ONCE

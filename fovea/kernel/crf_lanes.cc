// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/crf_lanes.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/crf_lanes.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/kernel/crf_sums-inl.h"
#include "fovea/simd/simd-inl.h"

// The recursion is that of crf_chain.cc: products of plain numbers, and a sum that is so small that
// it may have lost something is computed again in pairs. Here a vector holds the same tag of
// several sequences, so a step takes K^2 multiply-adds for all of them, none of which is on lanes
// beyond the tags, and no sum is across lanes.
//
// A lane never sees another: where one sum of a vector is small, that lane alone takes the exact
// one. So a sequence has the same bits in any company. Sequences begin together; a lane whose
// sequence is over keeps its alpha on the way forward, and on the way back it waits: what it
// computes until its last row is never used.
HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {
namespace {

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
void Forward(const CrfLanes<T>& c) {
  Walk<T>(c).Forward();
}
template <class T>
void Backward(const CrfLanes<T>& c, T* pairs) {
  Walk<T>(c).Backward(pairs);
}

template <class T>
CrfLaneSteps<T> StepsOf() {
  static_assert(kLanes<T> <= kCrfMostLanes<T>);
  return {Forward<T>, Backward<T>};
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
CrfLaneSteps<T> crf_lane_steps() {
  return FOVEA_DISPATCH(StepsTable)().of<T>()();
}

template CrfLaneSteps<float> crf_lane_steps();
template CrfLaneSteps<double> crf_lane_steps();

}  // namespace fovea::detail
#endif  // HWY_ONCE

// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/score/pair_score.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include "fovea/base/memory.h"

#ifndef FOVEA_ATTENTION_PAIR_TILES_
#define FOVEA_ATTENTION_PAIR_TILES_
namespace fovea::detail {
namespace {

enum class PairKind { kL2, kAdditive };

// rows[r][l] = the score of a[r] and b[l]: r runs along the rows of a tile, l along its lanes.
template <class T>
struct PairScores {
  Rows<const T> a, b;
  const T* v;  // [D], of additive
  T scale;
  Rows<T> to;
};

// Adds the gradients of a tile of scores to those of its rows, and to `sums` [D] if given.
template <class T>
struct PairGradients {
  TileRows<T> rows;
  const T* v;
  ScoreTile<T> dscores;
  Rows<T> dq, dk;
  double* dv;
};

}  // namespace
}  // namespace fovea::detail
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/score/pair_score.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"
#include "fovea/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {
namespace {

// The gradients from one column of a score.
template <class T>
struct ColumnGradients {
  Vector<T> dq, dk, dv;
};

// One column of a score. `factor` is scale ds, and v that column of the weights.
template <class T>
struct L2Column {
  static constexpr bool kLearns = false;
  static HWY_INLINE Vector<T> Add(Vector<T> sum, Vector<T> a, Vector<T> b, Vector<T>) {
    const auto difference = hn::Sub(a, b);
    return hn::NegMulAdd(difference, difference, sum);
  }
  static HWY_INLINE ColumnGradients<T> Pull(Vector<T> factor, Vector<T> q, Vector<T> k, Vector<T>) {
    const auto d = hn::Mul(hn::Add(factor, factor), hn::Sub(q, k));
    return {hn::Neg(d), d, hn::Zero(Tag<T>())};
  }
};

template <class T>
struct AdditiveColumn {
  static constexpr bool kLearns = true;
  static HWY_INLINE Vector<T> Add(Vector<T> sum, Vector<T> a, Vector<T> b, Vector<T> v) {
    return hn::MulAdd(v, Tanh(Tag<T>(), hn::Add(a, b)), sum);
  }
  static HWY_INLINE ColumnGradients<T> Pull(Vector<T> factor, Vector<T> q, Vector<T> k,
                                            Vector<T> v) {
    const auto t = Tanh(Tag<T>(), hn::Add(q, k));
    const auto slope = hn::NegMulAdd(t, t, hn::Set(Tag<T>(), T{1}));
    const auto d = hn::Mul(hn::Mul(factor, v), slope);
    return {d, d, hn::Mul(factor, t)};
  }
};

// Sums columns in ascending order, whichever side is in the lanes, so that forward and backward get
// the same bits.
template <class Column, class T>
void Scores(const PairScores<T>& scores) {
  constexpr Tag<T> d;
  const Rows<const T>& a = scores.a;
  const Rows<const T>& b = scores.b;
  const T* const v = scores.v;
  Scratch scratch;
  const index stride = RoundUpToLanes<T>(b.rows), D = a.columns;
  T* const bt = scratch.allocate<T>(D * stride);
  RowsToLanes<T>(b, b.rows, bt, stride);
  for (index r = 0; r < a.rows; ++r) {
    const T* const row = a[r];
    ForEachLane<T>(b.rows, [&](auto lanes, index l) {
      auto sum = hn::Zero(d);
      for (index c = 0; c < D; ++c) {
        const auto weight = hn::Set(d, Column::kLearns ? v[c] : T{0});
        sum = Column::Add(sum, hn::Set(d, row[c]), hn::Load(d, bt + c * stride + l), weight);
      }
      lanes.Store(hn::Mul(hn::Set(d, scores.scale), sum), scores.to[r] + l);
    });
  }
}

// Processes a few queries at a time for every key, so that a key is read, and its gradient read and
// written, once for all of them. Where the gradient is 0, the score may be masked and its rows may
// hold NaN or infinity.
template <class Column, class T>
void Gradients(const PairGradients<T>& g) {
  constexpr index kQueries = 4;
  constexpr Tag<T> d;
  const Rows<const T> q = g.rows.q, k = g.rows.k;
  const auto for_columns = [&](auto lanes, index c, index first, index count) {
    Vector<T> query[kQueries], dquery[kQueries];
    const index last = first + count - 1;
    for (index r = 0; r < kQueries; ++r) {
      query[r] = lanes.Load(q[std::min(first + r, last)] + c);
      dquery[r] = lanes.Load(g.dq[std::min(first + r, last)] + c);
    }
    const auto weight = Column::kLearns ? lanes.Load(g.v + c) : hn::Zero(d);
    auto dweight = hn::Zero(d);
    for (index j = 0; j < k.rows; ++j) {
      const auto key = lanes.Load(k[j] + c);
      auto dkey = lanes.Load(g.dk[j] + c);
      for (index r = 0; r < count; ++r) {
        const T ds = g.dscores.at(first + r, j);
        if (ds == T{0}) continue;
        const auto added = Column::Pull(hn::Set(d, g.rows.scale * ds), query[r], key, weight);
        dquery[r] = hn::Add(dquery[r], added.dq);
        dkey = hn::Add(dkey, added.dk);
        dweight = hn::Add(dweight, added.dv);
      }
      lanes.Store(dkey, g.dk[j] + c);
    }
    for (index r = 0; r < count; ++r) lanes.Store(dquery[r], g.dq[first + r] + c);
    if (g.dv == nullptr) return;
    HWY_ALIGN T sums[kLanes<T>];
    hn::Store(dweight, d, sums);
    const index columns = std::min(kLanes<T>, q.columns - c);
    for (index n = 0; n < columns; ++n) g.dv[c + n] += static_cast<double>(sums[n]);
  };
  for (index first = 0; first < q.rows; first += kQueries) {
    const index count = std::min(kQueries, q.rows - first);
    ForEachLane<T>(q.columns, [&](auto lanes, index c) { for_columns(lanes, c, first, count); });
  }
}

template <class T>
void AllScores(PairKind kind, const PairScores<T>& scores) {
  if (kind == PairKind::kL2) return Scores<L2Column<T>>(scores);
  Scores<AdditiveColumn<T>>(scores);
}
template <class T>
void AllGradients(PairKind kind, const PairGradients<T>& gradients) {
  if (kind == PairKind::kL2) return Gradients<L2Column<T>>(gradients);
  Gradients<AdditiveColumn<T>>(gradients);
}

auto AllScoresKernel() { return PerPrecision{AllScores<float>, AllScores<double>}; }
auto AllGradientsKernel() { return PerPrecision{AllGradients<float>, AllGradients<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::detail {

HWY_EXPORT(AllScoresKernel);
HWY_EXPORT(AllGradientsKernel);

namespace {

// The common base of both parts.
template <class T>
class PairScore : public BiasPart<T> {
 public:
  bool makes_score() const override { return true; }
  bool needs_scores() const override { return false; }

  void apply(const TileSite& site, const TileRows<T>& rows,
             const ScoreTile<T>& tile) const override {
    const bool queries_in_lanes = tile.lanes == TileLanes::kQueries;
    const auto all_scores = FOVEA_DISPATCH(AllScoresKernel)().of<T>();
    all_scores(kind_, {queries_in_lanes ? rows.k : rows.q, queries_in_lanes ? rows.q : rows.k,
                       weights(site.head), rows.scale, tile.rows(site)});
  }
  void pull(const TileSite& site, const TileRows<T>& rows, const ScoreTile<T>&,
            const ScoreTile<T>& dscores, const TileGradients<T>& gradients) const override {
    const auto all_gradients = FOVEA_DISPATCH(AllGradientsKernel)().of<T>();
    all_gradients(kind_, {rows, weights(site.head), dscores, gradients.dq, gradients.dk,
                          this->gradient_size() > 0 ? gradients.parameters : nullptr});
    const Rows<T> read = dscores.rows(site);
    for (index r = 0; r < read.rows; ++r) std::fill_n(read[r], read.columns, T{0});
  }

 protected:
  explicit PairScore(PairKind kind) : kind_(kind) {}
  virtual const T* weights(index) const { return nullptr; }

 private:
  PairKind kind_;
};

template <class T>
class L2Score final : public PairScore<T> {
 public:
  L2Score() : PairScore<T>(PairKind::kL2) {}
  T apply_one(const ScoreSite&, const ScoreRows<T>& rows, T) const override {
    T sum = 0;
    for (index c = 0; c < rows.q.size; ++c) {
      const T difference = rows.q[c] - rows.k[c];
      sum += difference * difference;
    }
    return -rows.scale * sum;
  }
  T pull_one(const ScoreSite&, const ScoreRows<T>& rows, T, T dscore,
             const ScoreGradients<T>& gradients) const override {
    for (index c = 0; c < rows.q.size; ++c) {
      const T d = 2 * rows.scale * dscore * (rows.q[c] - rows.k[c]);
      gradients.dq[c] -= d;
      gradients.dk[c] += d;
    }
    return T{0};
  }
  std::string name() const override { return "l2"; }
};

template <class T>
class AdditiveScore final : public PairScore<T> {
 public:
  explicit AdditiveScore(const score::Additive<T>& score)
      : PairScore<T>(PairKind::kAdditive), v_(score.v), dv_(score.dv) {}
  T apply_one(const ScoreSite& site, const ScoreRows<T>& rows, T) const override {
    T sum = 0;
    for (index c = 0; c < rows.q.size; ++c) {
      sum += v_[site.head][c] * std::tanh(rows.q[c] + rows.k[c]);
    }
    return rows.scale * sum;
  }
  T pull_one(const ScoreSite& site, const ScoreRows<T>& rows, T, T dscore,
             const ScoreGradients<T>& gradients) const override {
    const T factor = rows.scale * dscore;
    for (index c = 0; c < rows.q.size; ++c) {
      const T t = std::tanh(rows.q[c] + rows.k[c]);
      const T d = factor * v_[site.head][c] * (1 - t * t);
      gradients.dq[c] += d;
      gradients.dk[c] += d;
      if (gradient_size() > 0) gradients.parameters[c] += static_cast<double>(factor * t);
    }
    return T{0};
  }
  index gradient_size() const override { return dv_.data == nullptr ? 0 : v_.columns; }
  void store_gradient(const double* sums, index heads) const override {
    for (index h = 0; h < heads; ++h) {
      std::transform(sums + h * v_.columns, sums + (h + 1) * v_.columns, dv_[h],
                     [](double sum) { return static_cast<T>(sum); });
    }
  }
  std::string name() const override { return "additive"; }

 private:
  const T* weights(index head) const override { return v_[head]; }

  Rows<const T> v_;
  Rows<T> dv_;
};

}  // namespace

template <class T>
Bias<T> pair_score(const Score<T>& score) {
  if (std::holds_alternative<score::L2>(score)) return L2Score<T>();
  if (const auto* additive = std::get_if<score::Additive<T>>(&score)) {
    return AdditiveScore<T>(*additive);
  }
  return {};
}

template Bias<float> pair_score(const Score<float>&);
template Bias<double> pair_score(const Score<double>&);

}  // namespace fovea::detail
#endif  // HWY_ONCE

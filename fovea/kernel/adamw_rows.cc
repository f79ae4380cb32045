// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/adamw_rows.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "fovea/kernel/adamw_factors.h"
#include "fovea/simd/prefetch_row.h"

#ifndef FOVEA_KERNEL_ADAMW_ROWS_TYPES_
#define FOVEA_KERNEL_ADAMW_ROWS_TYPES_
namespace fovea {
namespace {

template <class T>
struct RowToCatchUp {
  T *value, *m, *v;
  index columns, made;
};

}  // namespace
}  // namespace fovea
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/adamw_rows.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/kernel/adamw-inl.h"
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE bool SameBits(Vector<T> a, Vector<T> b) {
  const hn::RebindToUnsigned<Tag<T>> bits;
  return hn::AllTrue(bits, hn::Eq(hn::BitCast(bits, a), hn::BitCast(bits, b)));
}

// Some vectors of a row in registers, from value i on. An update takes a root and a division; two
// things spare most of them, and neither changes a bit:
//
// - Over a block of updates |m| and v only fall, so no update's change of x by Adam exceeds
//   bound = |m| (largest step size) / (sqrt(v at the end) (smallest root) + epsilon): each of these
//   operations, rounded, is monotonic. Where x becomes the same with +bound and with -bound, it
//   does so with the change itself, and the block is left with the decay of m, v and x. About 150
//   updates after its last gradient, a row is there.
// - A moment that one decay does not change stays as it is: 0, or a few units of the smallest
//   number, with which some processors compute slowly.
template <class T, int kVectors, class LanesOf>
class Registers {
 public:
  using History = AdamWHistory<T>;

  Registers(const LanesOf& lanes, const RowToCatchUp<T>& row, index i) : lanes_(lanes) {
    for (int k = 0; k < kVectors; ++k) {
      x_[k] = lanes_.Load(row.value + i + k * kLanes<T>);
      m_[k] = lanes_.Load(row.m + i + k * kLanes<T>);
      v_[k] = lanes_.Load(row.v + i + k * kLanes<T>);
    }
  }
  void Store(const RowToCatchUp<T>& row, index i) const {
    for (int k = 0; k < kVectors; ++k) {
      lanes_.Store(x_[k], row.value + i + k * kLanes<T>);
      lanes_.Store(m_[k], row.m + i + k * kLanes<T>);
      lanes_.Store(v_[k], row.v + i + k * kLanes<T>);
    }
  }

  // Updates [begin, end) of the history.
  HWY_INLINE void Make(const History& history, index begin, index end) {
    const auto* const updates = history.updates().data;
    while (begin < end) {
      const index block = begin / History::kBlock;
      const index next = std::min((block + 1) * History::kBlock, end), n = next - begin;
      if (n < kWorthATry || !MakeSettled(history, updates + begin, n, history.blocks()[block])) {
        MakeAll(history, updates + begin, n);
      }
      begin = next;
    }
  }

 private:
  using Update = typename History::Update;
  static constexpr index kWorthATry = 4;  // updates; a try takes about as long as one

  HWY_INLINE void MakeAll(const History& history, const Update* updates, index n) {
    const auto zero = hn::Zero(Tag<T>());
    const auto rate1 = lanes_.Set(history.rate1()), rate2 = lanes_.Set(history.rate2()),
               epsilon = lanes_.Set(history.epsilon());
    for (index u = 0; u < n; ++u) {
      const AdamWVectors<T> factors{rate1,
                                    rate2,
                                    lanes_.Set(updates[u].root),
                                    epsilon,
                                    lanes_.Set(updates[u].step_size),
                                    lanes_.Set(updates[u].shrink)};
      for (int k = 0; k < kVectors; ++k) AdamWUpdate<T>(zero, factors, x_[k], m_[k], v_[k]);
    }
  }

  // n updates of a block without roots and divisions; false, and nothing is changed, where they
  // need them.
  HWY_INLINE bool MakeSettled(const History& history, const Update* updates, index n,
                              const typename History::Block& block) {
    Vector<T> x[kVectors], m[kVectors], v[kVectors], bound[kVectors];
    for (int k = 0; k < kVectors; ++k) x[k] = x_[k], m[k] = m_[k], v[k] = v_[k];
    Decay(v, lanes_.Set(history.rate2()), n);
    for (int k = 0; k < kVectors; ++k) {
      const auto divisor =
          hn::MulAdd(hn::Sqrt(v[k]), lanes_.Set(block.root), lanes_.Set(history.epsilon()));
      bound[k] = hn::Div(hn::Mul(hn::Abs(m[k]), lanes_.Set(block.step_size)), divisor);
    }
    // Without weight decay x - bound = x + bound is x itself, also in all further updates.
    const index tried = block.decays ? n : 1;
    for (index u = 0; u < tried; ++u) {
      const auto shrink = lanes_.Set(updates[u].shrink);
      bool same = true;
      for (int k = 0; k < kVectors; ++k) {
        const auto low = hn::Sub(x[k], hn::MulAdd(x[k], shrink, bound[k]));
        const auto high = hn::Sub(x[k], hn::MulAdd(x[k], shrink, hn::Neg(bound[k])));
        same &= SameBits<T>(low, high);
        x[k] = low;
      }
      if (!same) return false;
    }
    Decay(m, lanes_.Set(history.rate1()), n);
    for (int k = 0; k < kVectors; ++k) x_[k] = x[k], m_[k] = m[k], v_[k] = v[k];
    return true;
  }

  // Lets moments decay as n updates without a gradient do.
  static HWY_INLINE void Decay(Vector<T>* moments, Vector<T> rate, index n) {
    bool same = true;
    for (int k = 0; k < kVectors; ++k)
      same &= SameBits<T>(AdamWDecay<T>(moments[k], rate), moments[k]);
    if (same) return;
    for (index u = 0; u < n; ++u)
      for (int k = 0; k < kVectors; ++k) moments[k] = AdamWDecay<T>(moments[k], rate);
  }

  const LanesOf lanes_;
  Vector<T> x_[kVectors], m_[kVectors], v_[kVectors];
};

template <class T>
void CatchUpRow(const RowToCatchUp<T>& row, const AdamWHistory<T>& history) {
  constexpr int kVectors = 4;
  const auto part = [&]<int kCount>(std::integral_constant<int, kCount>, auto lanes, index i) {
    Registers<T, kCount, decltype(lanes)> registers(lanes, row, i);
    registers.Make(history, row.made, history.size());
    registers.Store(row, i);
  };
  index i = 0;
  for (; i + kVectors * kLanes<T> <= row.columns; i += kVectors * kLanes<T>)
    part(std::integral_constant<int, kVectors>{}, FullLanes<T>{}, i);
  ForEachLane<T>(row.columns - i, [&](auto lanes, index j) {
    part(std::integral_constant<int, 1>{}, lanes, i + j);
  });
}

auto CatchUpRowKernel() { return PerPrecision{CatchUpRow<float>, CatchUpRow<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fovea/base/profile.h"
namespace fovea {
namespace {

HWY_EXPORT(CatchUpRowKernel);

template <class T>
void prefetch_row(const AdamWTable<T>& table, index row) {
  for (const Rows<T>* part : {&table.value, &table.m, &table.v}) detail::prefetch_row(*part, row);
}

}  // namespace

template <class T>
bool AdamWHistory<T>::takes(const AdamWStep& step) const {
  const auto f = detail::rounded<T>(detail::adamw_factors(step), 1);
  return updates_.empty() || (f.rate1 == rate1_ && f.rate2 == rate2_ && f.epsilon == epsilon_);
}

template <class T>
void AdamWHistory<T>::add(const AdamWStep& step, double decay) {
  if (!takes(step)) {
    fail(ErrorCode::kOptionValue, "adamw: the betas and the epsilon of a history cannot change");
  }
  const auto f = detail::rounded<T>(detail::adamw_factors(step), decay);
  rate1_ = f.rate1;
  rate2_ = f.rate2;
  epsilon_ = f.epsilon;
  updates_.push_back({f.step_size, f.root, f.shrink});
  if (size() % kBlock == 1) blocks_.push_back({0, f.root, false});
  Block& block = blocks_.back();
  block.step_size = std::max(block.step_size, std::abs(f.step_size));
  block.root = std::min(block.root, f.root);
  block.decays |= f.shrink != 0;
}

template <class T>
void adamw_catch_up(const Context& ctx, const AdamWTable<T>& table, const AdamWHistory<T>& history,
                    Vec<const RowBehind> rows) {
  constexpr double kCost = 8;  // operations for one element and update
  constexpr index kAhead = 4;
  const index V = table.value.rows, C = table.value.columns;
  check_rows("adamw_catch_up", "m", table.m, V, C);
  check_rows("adamw_catch_up", "v", table.v, V, C);
  index missed = 0;
  for (const auto& [row, made] : rows) {
    check(row >= 0 && row < V && made >= 0 && made <= history.size(),
          "adamw_catch_up: row {} with {} of {} updates; the table has rows 0 to {}", row, made,
          history.size(), V - 1);
    missed += history.size() - made;
  }
  if (rows.empty()) return;
  const auto catch_up = FOVEA_DISPATCH(CatchUpRowKernel)().of<T>();
  const double of_row = static_cast<double>(missed) / static_cast<double>(rows.size);
  Work work = pass_over<T>("AdamW of missed updates", V, C, 6);  // the same in each update
  work.bytes *= static_cast<double>(rows.size) / static_cast<double>(V);
  const ProfileScope scope(ctx, work);
  const double cost = kCost * static_cast<double>(C) * (1 + of_row);
  ctx.for_ranges(rows.size, cost, [&](index begin, index end) {
    for (index i = begin; i < end; ++i) {
      if (i + kAhead < end) prefetch_row(table, rows[i + kAhead].row);
      const auto [row, made] = rows[i];
      catch_up({table.value[row], table.m[row], table.v[row], C, made}, history);
    }
  });
}

template class AdamWHistory<float>;
template class AdamWHistory<double>;
template void adamw_catch_up(const Context&, const AdamWTable<float>&, const AdamWHistory<float>&,
                             Vec<const RowBehind>);
template void adamw_catch_up(const Context&, const AdamWTable<double>&, const AdamWHistory<double>&,
                             Vec<const RowBehind>);

}  // namespace fovea
#endif  // HWY_ONCE

// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/embedding.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/kernel/embedding.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea {
namespace HWY_NAMESPACE {
namespace {

// y = factor x
template <class T>
void TakeRow(const T* x, T factor, index C, T* y) {
  ForEachLane<T>(C, [=](auto lanes, index c) {
    lanes.Store(hn::Mul(lanes.Load(x + c), lanes.Set(factor)), y + c);
  });
}

// y += factor x
template <class T>
void AddRow(const T* x, T factor, index C, T* y) {
  ForEachLane<T>(C, [=](auto lanes, index c) {
    lanes.Store(hn::MulAdd(lanes.Load(x + c), lanes.Set(factor), lanes.Load(y + c)), y + c);
  });
}

auto TakeRowKernel() { return PerPrecision{TakeRow<float>, TakeRow<double>}; }
auto AddRowKernel() { return PerPrecision{AddRow<float>, AddRow<double>}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fovea/base/profile.h"
namespace fovea {
namespace {

HWY_EXPORT(TakeRowKernel);
HWY_EXPORT(AddRowKernel);

void check_ids(const char* operation, const char* name, Vec<const std::int32_t> ids, index N,
               index V) {
  check_vec(operation, name, ids, "N", N);
  for (index n = 0; n < N; ++n)
    check(ids[n] >= 0 && ids[n] < V, "{}: {}[{}] is {}; the table has rows 0 to {}", operation,
          name, n, ids[n], V - 1);
}

}  // namespace

template <class T>
void embedding_forward(const Context& ctx, const EmbeddingTable<std::type_identity_t<T>>& tokens,
                       const EmbeddingTable<std::type_identity_t<T>>& positions, Rows<T> y) {
  const index N = y.rows, C = y.columns;
  const bool with_positions = positions.table.data != nullptr;
  check(tokens.table.columns == C && (!with_positions || positions.table.columns == C),
        "embedding: the tables must have C={} columns; they have {} and {}", C,
        tokens.table.columns, positions.table.columns);
  check_ids("embedding", "ids", tokens.ids, N, tokens.table.rows);
  if (with_positions) {
    check_ids("embedding", "positions", positions.ids, N, positions.table.rows);
  }
  const auto take = FOVEA_DISPATCH(TakeRowKernel)().of<T>();
  const auto add = FOVEA_DISPATCH(AddRowKernel)().of<T>();
  const auto scale = static_cast<T>(tokens.scale), scale2 = static_cast<T>(positions.scale);
  const ProfileScope scope(ctx, pass_over<T>("embedding", N, C, with_positions ? 3 : 2));
  ctx.for_ranges(N, static_cast<double>(C), [&](index begin, index end) {
    for (index n = begin; n < end; ++n) {
      take(tokens.table[tokens.ids[n]], scale, C, y[n]);
      if (with_positions) add(positions.table[positions.ids[n]], scale2, C, y[n]);
    }
  });
}

// An item of work owns the rows of the table whose number has the same remainder. It walks over all
// tokens in order and adds those of its rows. So no two threads write to one row, and the order of
// additions is that of the tokens. Remainders distribute frequent words, which often have small
// ids, better than ranges do; slices of columns would read dy in short pieces.
template <class T>
void embedding_backward(const Context& ctx, Vec<const std::int32_t> ids, double scale, InRows<T> dy,
                        Rows<T> dtable, std::int32_t frozen) {
  constexpr index kDigits = 16;
  const index N = dy.rows, C = dy.columns;
  check(dtable.columns == C, "embedding_backward: dtable must have C={} columns; it has {}", C,
        dtable.columns);
  check_ids("embedding_backward", "ids", ids, N, dtable.rows);
  const auto add = FOVEA_DISPATCH(AddRowKernel)().of<T>();
  const T factor = static_cast<T>(scale);
  const double cost = static_cast<double>(N) * (2 + static_cast<double>(C) / kDigits);
  const ProfileScope scope(ctx, pass_over<T>("embedding backward", dy.rows, dy.columns, 3));
  ctx.for_ranges(kDigits, cost, [&](index begin, index end) {
    for (index n = 0; n < N; ++n) {
      const std::int32_t id = ids[n];
      const index digit = id % kDigits;
      if (digit < begin || digit >= end || id == frozen) continue;
      add(dy[n], factor, C, dtable[id]);
    }
  });
}

template void embedding_forward(const Context&, const EmbeddingTable<float>&,
                                const EmbeddingTable<float>&, Rows<float>);
template void embedding_forward(const Context&, const EmbeddingTable<double>&,
                                const EmbeddingTable<double>&, Rows<double>);
template void embedding_backward(const Context&, Vec<const std::int32_t>, double, Rows<const float>,
                                 Rows<float>, std::int32_t);
template void embedding_backward(const Context&, Vec<const std::int32_t>, double,
                                 Rows<const double>, Rows<double>, std::int32_t);

}  // namespace fovea
#endif  // HWY_ONCE

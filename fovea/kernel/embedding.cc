// SPDX-License-Identifier: Apache-2.0
#include "fovea/kernel/embedding.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "fovea/base/memory.h"
#include "fovea/simd/prefetch.h"

#ifndef FOVEA_KERNEL_EMBEDDING_TYPES_
#define FOVEA_KERNEL_EMBEDDING_TYPES_
namespace fovea {
namespace {

// A bag and its rows.
template <class T>
struct Bag {
  Rows<const T> table;
  Vec<const std::int32_t> ids;
  std::int32_t padding;
  T factor;
};

}  // namespace
}  // namespace fovea
#endif

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

// y = factor (sum of rows)
template <class T>
void SumBag(const Bag<T>& bag, T* y) {
  constexpr index kAhead = 8;
  ForEachLane<T>(bag.table.columns, [&](auto lanes, index c) {
    auto sum = lanes.Set(T{0});
    for (index n = 0; n < bag.ids.size; ++n) {
      // Rows lie anywhere in memory, where no hardware looks for them.
      const index ahead = std::min(n + kAhead, bag.ids.size - 1);
      fovea::detail::prefetch_line(bag.table[bag.ids[ahead]] + c);
      if (bag.ids[n] != bag.padding) sum = hn::Add(sum, lanes.Load(bag.table[bag.ids[n]] + c));
    }
    lanes.Store(hn::Mul(sum, lanes.Set(bag.factor)), y + c);
  });
}

auto SumBagKernel() { return PerPrecision{SumBag<float>, SumBag<double>}; }
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
HWY_EXPORT(SumBagKernel);

void check_ids(const char* operation, const char* name, Vec<const std::int32_t> ids, index N,
               index V) {
  check_vec(operation, name, ids, "N", N);
  for (index n = 0; n < N; ++n)
    check(ids[n] >= 0 && ids[n] < V, "{}: {}[{}] is {}; the table has rows 0 to {}", operation,
          name, n, ids[n], V - 1);
}

void check_bags(const char* operation, const IdBags& bags, index B, index V) {
  const index N = bags.ids.size;
  check_ids(operation, "ids", bags.ids, N, V);
  check_vec(operation, "offsets", bags.offsets, "B + 1", B + 1);
  check(bags.offsets[0] == 0 && bags.offsets[B] == N,
        "{}: offsets go from {} to {}; expected 0 to {}", operation, bags.offsets[0],
        bags.offsets[B], N);
  for (index b = 0; b < B; ++b)
    check(bags.offsets[b] <= bags.offsets[b + 1], "{}: offsets[{}] is {} and the next {}",
          operation, b, bags.offsets[b], bags.offsets[b + 1]);
}

Vec<const std::int32_t> ids_of(const IdBags& bags, index b) {
  return {bags.ids.data + bags.offsets[b], bags.offsets[b + 1] - bags.offsets[b]};
}

template <class T>
T factor_of(const IdBags& bags, index b) {
  if (bags.mode == BagMode::kSum) return 1;
  index count = 0;
  for (const std::int32_t id : ids_of(bags, b)) count += id != bags.padding ? 1 : 0;
  const T n = static_cast<T>(std::max<index>(count, 1));
  return T{1} / (bags.mode == BagMode::kRootMean ? std::sqrt(n) : n);
}

// An item of work owns the rows of a table whose number has the same remainder. It walks over all
// ids in order and adds those of its rows. So no two threads write to one row, and the order of
// additions is that of the ids. Remainders distribute frequent words, which often have small ids,
// better than ranges do; slices of columns would read dy in short pieces.
constexpr index kDigits = 16;

double cost_of_digit(index ids, index columns) {
  return static_cast<double>(ids) * (2 + static_cast<double>(columns) / kDigits);
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
      if (n + 1 < end) detail::prefetch_row(tokens.table, tokens.ids[n + 1]);
      take(tokens.table[tokens.ids[n]], scale, C, y[n]);
      if (with_positions) add(positions.table[positions.ids[n]], scale2, C, y[n]);
    }
  });
}

template <class T>
void embedding_backward(const Context& ctx, Vec<const std::int32_t> ids, double scale, InRows<T> dy,
                        Rows<T> dtable, std::int32_t frozen) {
  const index N = dy.rows, C = dy.columns;
  check(dtable.columns == C, "embedding_backward: dtable must have C={} columns; it has {}", C,
        dtable.columns);
  check_ids("embedding_backward", "ids", ids, N, dtable.rows);
  const auto add = FOVEA_DISPATCH(AddRowKernel)().of<T>();
  const T factor = static_cast<T>(scale);
  const ProfileScope scope(ctx, pass_over<T>("embedding backward", dy.rows, dy.columns, 3));
  ctx.for_ranges(kDigits, cost_of_digit(N, C), [&](index begin, index end) {
    for (index n = 0; n < N; ++n) {
      const std::int32_t id = ids[n];
      const index digit = id % kDigits;
      if (digit < begin || digit >= end || id == frozen) continue;
      add(dy[n], factor, C, dtable[id]);
    }
  });
}

template <class T>
void embedding_bag_forward(const Context& ctx, InRows<T> table, const IdBags& bags, Rows<T> y) {
  const index B = y.rows, C = y.columns;
  check(table.columns == C, "embedding_bag: the table must have C={} columns; it has {}", C,
        table.columns);
  check_bags("embedding_bag", bags, B, table.rows);
  const auto sum = FOVEA_DISPATCH(SumBagKernel)().of<T>();
  const auto ids = static_cast<double>(bags.ids.size);
  const ProfileScope scope(ctx, pass_over<T>("embedding bag", bags.ids.size, C, 1));
  ctx.for_ranges(B, ids * static_cast<double>(C) / static_cast<double>(std::max<index>(B, 1)),
                 [&](index begin, index end) {
                   for (index b = begin; b < end; ++b) {
                     sum({table, ids_of(bags, b), bags.padding, factor_of<T>(bags, b)}, y[b]);
                   }
                 });
}

template <class T>
void embedding_bag_backward(const Context& ctx, const IdBags& bags, InRows<T> dy, Rows<T> dtable) {
  const index B = dy.rows, C = dy.columns;
  check(dtable.columns == C, "embedding_bag_backward: dtable must have C={} columns; it has {}", C,
        dtable.columns);
  check_bags("embedding_bag_backward", bags, B, dtable.rows);
  const auto add = FOVEA_DISPATCH(AddRowKernel)().of<T>();
  Scratch scratch;
  T* const factors = scratch.allocate<T>(B);
  for (index b = 0; b < B; ++b) factors[b] = factor_of<T>(bags, b);
  const ProfileScope scope(ctx, pass_over<T>("embedding bag backward", bags.ids.size, C, 3));
  ctx.for_ranges(kDigits, cost_of_digit(bags.ids.size, C), [&](index begin, index end) {
    for (index b = 0; b < B; ++b)
      for (const std::int32_t id : ids_of(bags, b)) {
        const index digit = id % kDigits;
        if (digit < begin || digit >= end || id == bags.padding) continue;
        add(dy[b], factors[b], C, dtable[id]);
      }
  });
}

template void embedding_bag_forward(const Context&, Rows<const float>, const IdBags&, Rows<float>);
template void embedding_bag_forward(const Context&, Rows<const double>, const IdBags&,
                                    Rows<double>);
template void embedding_bag_backward(const Context&, const IdBags&, Rows<const float>, Rows<float>);
template void embedding_bag_backward(const Context&, const IdBags&, Rows<const double>,
                                     Rows<double>);
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

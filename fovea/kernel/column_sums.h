// SPDX-License-Identifier: Apache-2.0
// Sums over rows whose bits do not depend on the number of threads: the rows are cut into chunks by
// the size of the problem, each chunk has its own sums, and these are added in ascending order.
#pragma once

#include <algorithm>
#include <type_traits>

#include "fovea/base/context.h"
#include "fovea/base/memory.h"
#include "fovea/base/view.h"

namespace fovea {

/// Cuts N rows into chunks and calls chunk(begin, end, partial) for the rows [begin, end) of each.
/// `partial` [columns] is zeroed memory of the chunk, to which it adds; sums[c] gets the total.
/// `cost` is the work of a row in operations.
template <class T, class F>
void add_chunk_sums(const Context& ctx, index N, double cost, Vec<T> sums, F&& chunk) {
  // Chunks are long enough to be worth handing to a thread, and few enough that adding them is
  // cheap.
  constexpr double kChunkCost = 65536;
  constexpr index kMostChunks = 32;
  const auto enough = static_cast<index>(kChunkCost / std::max(cost, 1.0)) + 1;
  const index length = std::max(enough, (N + kMostChunks - 1) / kMostChunks);
  const index chunks = (N + length - 1) / length;
  Scratch scratch;
  T* const partial = scratch.template allocate<T>(std::max<index>(chunks * sums.size, 1));
  ctx.for_each(chunks, [&](index i) {
    T* const mine = partial + i * sums.size;
    std::fill_n(mine, sums.size, T{0});
    chunk(i * length, std::min(N, (i + 1) * length), mine);
  });
  ctx.run_here([&] {
    for (index i = 0; i < chunks; ++i)
      for (index c = 0; c < sums.size; ++c) sums[c] += partial[i * sums.size + c];
  });
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/columns.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "fovea/attention/fused/query_tiles.h"
#include "fovea/base/interruption.h"

#ifndef FOVEA_ATTENTION_COLUMN_CHUNK_
#define FOVEA_ATTENTION_COLUMN_CHUNK_
namespace fovea::detail {
namespace {
// Keys [begin, end) of one sequence in one head.
struct ColumnChunk {
  const Sequence& sequence;
  index head;
  index begin, end;
};

// The queries that keep any of its keys, from the first of a tile on.
template <class T>
Span tiles_of(const KernelCall<T>& call, const ColumnChunk& chunk) {
  const auto& [sequence, head, begin, end] = chunk;
  const auto [first, last] = call.attention.mask.query_range(sequence, head, begin, end - begin);
  return {first / kLaneTile * kLaneTile, last};
}

// Its keys, without the values.
template <class T>
HeadKeys<T> keys_of_chunk(const KernelCall<T>& call, const ColumnChunk& chunk) {
  HeadKeys<T> keys = keys_of(call, chunk.sequence, chunk.head, {chunk.begin, chunk.end});
  keys.v = {};
  return keys;
}
}  // namespace
}  // namespace fovea::detail
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fovea/attention/fused/columns.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each instruction set
//
#include "fovea/attention/fused/forward_tile-inl.h"

// Computes the scores of the forward again, tile by tile, with queries in the lanes: a product of 2
// D flops per score, one exp, and a sum along the lanes in double. The tile of queries is
// transposed again for each chunk of keys, which costs little.
HWY_BEFORE_NAMESPACE();
namespace fovea::detail {
namespace HWY_NAMESPACE {
namespace {

// Loads what the first pass saved for the rows of a tile: the row max, and the factor that turns
// exp(s - m) into a weight. Without softmax the factor is 1; in lanes without a query, and for rows
// that keep no key, it is 0.
template <class T>
void LoadSums(const RowSums<Wide<T>>& sums, const ForwardTile<T>& tile) {
  using W = Wide<T>;
  const Sequence& sequence = tile.sequence;
  const bool softmax = needs_lse(tile.call.norm());
  for (index r = 0; r < tile.stride; ++r) {
    const bool there = r < tile.queries;
    const index row = sequence.query_row + tile.query + r;
    const W total = there ? sums.total.at(sequence.batch, tile.head, row) : W{0};
    const W factor = total == W{0} ? W{0} : W{1} / total;
    tile.state.m[r] = there ? sums.maximum.at(sequence.batch, tile.head, row) : W{0};
    tile.state.l[r] = there && !softmax ? W{1} : factor;
  }
}

// The weights of a vector of queries; 0 for rows that keep no key, whatever the score.
template <class T, class Norm>
HWY_INLINE Vector<Wide<T>> FinalWeight(const ForwardTile<T>& tile, Norm norm, index j, index lane) {
  using W = Wide<T>;
  constexpr Tag<W> d;
  const auto score = hn::Load(d, tile.s + j * tile.stride + lane);
  const auto factor = hn::Load(d, tile.state.l + lane);
  const auto nothing = hn::Or(hn::Eq(score, hn::Set(d, -std::numeric_limits<W>::infinity())),
                              hn::Eq(factor, hn::Zero(d)));
  auto weight = score;
  if constexpr (Norm::kNeedsLse) {
    const auto above = hn::Sub(score, hn::Load(d, tile.state.m + lane));
    weight = hn::Mul(Exp2OfWeight(d, hn::Mul(above, hn::Set(d, kLog2E<W>))), factor);
  } else {
    weight = WeightOf<W>(norm, score).weight;
  }
  return hn::IfThenZeroElse(nothing, weight);
}

template <class T>
HWY_INLINE double SumAsDouble(const T* values, index n) {
  constexpr Tag<double> d;
  auto sum = hn::Zero(d);
  for (index i = 0; i < n; i += kLanes<double>) {
    if constexpr (std::is_same_v<T, float>) {
      sum = hn::Add(sum, hn::PromoteTo(d, hn::Load(hn::Rebind<float, Tag<double>>(), values + i)));
    } else {
      sum = hn::Add(sum, hn::Load(d, values + i));
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// sums[j] += the weights that the tile's queries give to the j-th key of the block.
template <class T>
void AddBlock(const ForwardTile<T>& tile, index keys, double* sums) {
  using W = Wide<T>;
  HWY_ALIGN W weights[kLaneTile];
  const auto add = [&](auto norm) {
    for (index j = 0; j < keys; ++j) {
      for (index lane = 0; lane < tile.stride; lane += kLanes<W>) {
        hn::Store(FinalWeight(tile, norm, j, lane), Tag<W>(), weights + lane);
      }
      sums[j] += SumAsDouble(weights, tile.stride);
    }
  };
  std::visit(add, tile.call.norm());
}

template <class T>
void SumTile(ForwardTile<T> tile, const RowSums<Wide<T>>& row_sums, double* sums) {
  Scratch scratch;
  tile.AllocateShared(scratch);
  tile.Allocate(scratch);
  LoadSums(row_sums, tile);
  const auto [begin, end] = tile.key_span();
  for (index key = begin; key < end; key += kRowBlock - key % kRowBlock) {
    const index keys = std::min(kRowBlock - key % kRowBlock, end - key);
    if (tile.Scores(key, keys)) AddBlock(tile, keys, sums + key - tile.kv.head().first);
  }
}

template <class T>
void SumChunk(const KernelCall<T>& call, const ColumnChunk& chunk, const RowSums<Wide<T>>& row_sums,
              double* sums) {
  const Sequence& sequence = chunk.sequence;
  const Span tiles = tiles_of(call, chunk);
  if (tiles.begin >= tiles.end) return;
  Scratch scratch;
  const HeadKeys<T> head = keys_of_chunk(call, chunk);
  KvBlocks<T> keys(head, kv_sizes(head, kLaneTile, LanesOf<T>()), scratch);
  const AttentionOutputs<T> nothing;
  Prefetch prefetch;
  for (index query = tiles.begin; query < tiles.end; query += kLaneTile) {
    stop_if_interrupted();
    const index queries = std::min(kLaneTile, sequence.queries - query);
    SumTile(ForwardTile<T>{call, nothing, sequence, keys, prefetch, chunk.head, query, queries},
            row_sums, sums);
  }
}

auto SumChunkKernel() { return PerPrecision{SumChunk<float>, SumChunk<double>}; }

using SumPairs = void (*)(const KernelCall<BFloat16>&, const ColumnChunk&, const RowSums<float>&,
                          double*);
SumPairs SumChunkOfPairs() {
#if FOVEA_PAIRS
  return SumChunk<BFloat16>;
#else
  return nullptr;
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::detail {

HWY_EXPORT(SumChunkKernel);
HWY_EXPORT(SumChunkOfPairs);

namespace {

template <class T>
auto sum_chunk_kernel() {
  if constexpr (kReadsPairs<T>) {
    return FOVEA_DISPATCH(SumChunkOfPairs)();
  } else {
    return FOVEA_DISPATCH(SumChunkKernel)().of<T>();
  }
}

template <class T>
class KeepRowSums final : public Observer<T> {
 public:
  explicit KeepRowSums(const RowSums<T>& sums) : sums_(sums) {}
  void row(const ObservedRow<T>&) const override {}
  void clear() const override {}
  index state_size(const Sequence&) const override { return 0; }
  void start(Rows<T>) const override {}
  bool sees(const ObservedQueries<T>&) const override { return false; }
  void see(const ObservedTile<T>&, Rows<T>) const override {}
  void finish(const ObservedQueries<T>& queries, Rows<const T>) const override {
    const Sequence& sequence = queries.sequence;
    for (index r = 0; r < queries.queries; ++r) {
      const index row = sequence.query_row + queries.query + r;
      sums_.maximum.at(sequence.batch, queries.head, row) = queries.maximum[r];
      sums_.total.at(sequence.batch, queries.head, row) = queries.total(r);
    }
  }
  std::string name() const override { return "row sums"; }

 private:
  RowSums<T> sums_;
};

// The chunks of every sequence and head.
std::vector<ColumnChunk> column_chunks(const std::vector<Sequence>& sequences, index heads) {
  std::vector<ColumnChunk> chunks;
  for (const Sequence& sequence : sequences) {
    const index size = key_chunk(sequence.keys);
    for (index head = 0; head < heads; ++head) {
      for (index key = 0; key < sequence.keys; key += size) {
        chunks.push_back({sequence, head, key, std::min(sequence.keys, key + size)});
      }
    }
  }
  return chunks;
}

}  // namespace

template <class T>
double row_sums_bytes(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in) {
  const auto rows = static_cast<double>(in.q.batch * in.q.heads * in.q.length);
  return sees_columns(attention.observe) ? 2 * rows * sizeof(Wide<T>) : 0;
}

template <class T>
double column_bytes(const KernelCall<T>& call, const std::vector<Sequence>& sequences) {
  if (!sees_columns(call.attention.observe)) return 0;
  const LaneCounts lanes = lane_counts<T>();
  const Widths widths = widths_of(call.in.q.width, call.in.v.width, lanes);
  double most = 0;
  for (const ColumnChunk& chunk : column_chunks(sequences, call.in.q.heads)) {
    const Span tiles = tiles_of(call, chunk);
    const index queries = std::min(kLaneTile, chunk.sequence.queries - tiles.begin);
    const ForwardSizes<T> sizes(widths, round_up(queries, lanes.vector), call.bias_needs_rows());
    HeadKeys<T> keys = planned_keys_of(call, chunk.sequence, chunk.head, {chunk.begin, chunk.end});
    keys.v = {};
    const KvSizes kv = kv_sizes(keys, kLaneTile, lanes);
    const index values = kv.values() + sizes.shared() + sizes.own();
    const auto columns = static_cast<double>(chunk.end - chunk.begin) * sizeof(double);
    const bool any = tiles.begin < tiles.end;
    most = std::max(most, columns + (any ? static_cast<double>(values) * sizeof(Wide<T>) : 0));
  }
  return most;
}

template <class T>
RowSums<Wide<T>> allocate_row_sums(const AttentionInputs<T>& in, Scratch& scratch) {
  using W = Wide<T>;
  const index B = in.q.batch, H = in.q.heads, L = in.q.length;
  return {RowView<W>::contiguous(scratch.allocate<W>(B * H * L), B, H, L),
          RowView<W>::contiguous(scratch.allocate<W>(B * H * L), B, H, L)};
}

template <class T>
Observe<T> keep_row_sums(const RowSums<T>& sums) {
  return KeepRowSums<T>(sums);
}

template <class T>
void observe_columns(const Context& ctx, const KernelCall<T>& call,
                     const std::vector<Sequence>& sequences, const RowSums<Wide<T>>& sums) {
  const auto sum = sum_chunk_kernel<T>();
  const std::vector<ColumnChunk> chunks = column_chunks(sequences, call.in.q.heads);
  ctx.for_each(static_cast<index>(chunks.size()), [&](index item) {
    const ColumnChunk& chunk = chunks[static_cast<std::size_t>(item)];
    const index keys = chunk.end - chunk.begin;
    Scratch scratch;
    double* const columns = scratch.allocate<double>(keys);
    std::fill_n(columns, keys, 0.0);
    sum(call, chunk, sums, columns);
    for (const auto& observer : call.attention.observe.parts()) {
      observer->columns({chunk.sequence, chunk.head, chunk.begin, {columns, keys}});
    }
  });
}

template Observe<float> keep_row_sums(const RowSums<float>&);
template Observe<double> keep_row_sums(const RowSums<double>&);

#define FOVEA_INSTANTIATE(T)                                                            \
  template double row_sums_bytes(const Attention<Wide<T>>&, const AttentionInputs<T>&); \
  template double column_bytes(const KernelCall<T>&, const std::vector<Sequence>&);     \
  template RowSums<Wide<T>> allocate_row_sums(const AttentionInputs<T>&, Scratch&);     \
  template void observe_columns(const Context&, const KernelCall<T>&,                   \
                                const std::vector<Sequence>&, const RowSums<Wide<T>>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
FOVEA_INSTANTIATE(BFloat16)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail
#endif  // HWY_ONCE

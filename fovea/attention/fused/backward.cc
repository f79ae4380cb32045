// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/fused/backward.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "fovea/attention/fused/backward_chunk.h"
#include "fovea/attention/fused/backward_schedule.h"
#include "fovea/attention/fused/forward.h"
#include "fovea/attention/fused/gradient_sums.h"
#include "fovea/attention/fused/prefetch.h"
#include "fovea/attention/fused/query_tiles.h"
#include "fovea/attention/fused/score_tile.h"
#include "fovea/base/memory.h"
#include "fovea/base/profile.h"

namespace fovea::detail {

namespace {

// Whether the rounding error of lse may be more than 6e-5: half an ulp of 1024 in float, and of
// 2^39 in double. An empty row has lse -infinity, which is exact.
template <class T>
bool is_rounded(T lse) {
  constexpr T kLarge = T{1} / (std::numeric_limits<T>::epsilon() * T{1 << 13});
  return std::isfinite(lse) && std::abs(lse) > kLarge;
}

// Calls f(row) for every row of [B, H, T], in this order.
template <class T, class F>
void for_each_row(const RowView<const T>& rows, F&& f) {
  for (index b = 0; b < rows.batch; ++b) {
    for (index h = 0; h < rows.heads; ++h) {
      for (index i = 0; i < rows.length; ++i) f(rows.at(b, h, i));
    }
  }
}

}  // namespace

template <class T>
SavedLse<T>::SavedLse(const Context& ctx, const LoweredCall<T>& call,
                      const AttentionSaved<T>& saved)
    : saved_(saved) {
  if (saved.lse.empty() || !saved.lse_low.empty()) return;
  bool any = false;
  for_each_row(saved.lse, [&](Wide<T> lse) { any = any || is_rounded(lse); });
  if (any) compute(ctx, call);
}

template <class T>
void SavedLse<T>::compute(const Context& ctx, const LoweredCall<T>& call) {
  AttentionInputs<T> in = call.in();
  const index B = in.q.batch, H = in.q.heads, T_ = in.q.length;
  const index rows = B * H * T_;
  rows_ = allocate_aligned(static_cast<std::size_t>(rows) * (2 * sizeof(Wide<T>) + sizeof(T)));
  auto* const lse_data = reinterpret_cast<Wide<T>*>(rows_.get());
  Wide<T>* const low_data = lse_data + rows;
  Attention<Wide<T>> scores = call.attention();
  scores.dropout = {};
  scores.values = {};
  scores.observe = {};
  in.v.width = 1;  // o is not wanted
  const auto lse = RowView<Wide<T>>::contiguous(lse_data, B, H, T_);
  const auto low = RowView<Wide<T>>::contiguous(low_data, B, H, T_);
  auto* const o = reinterpret_cast<T*>(low_data + rows);
  const AttentionOutputs<T> out{View<T>::contiguous(o, B, T_, H, 1), lse, low};
  clear_uncovered(call.sequences(), out);
  fused_forward(ctx, LoweredCall<T>(ctx, scores, in), out);
  // Other rows keep their lse, so that their bits do not depend on the rest of the call.
  index row = 0;
  for_each_row(saved_.lse, [&](Wide<T> given) {
    if (!is_rounded(given)) {
      lse_data[row] = given;
      low_data[row] = 0;
    }
    ++row;
  });
  saved_.lse = lse;
  saved_.lse_low = low;
}

template class SavedLse<float>;
template class SavedLse<double>;
template class SavedLse<BFloat16>;

namespace {

/// 0 for an empty row, and for norms that have no lse.
template <class T>
RowLse<Wide<T>> lse_of_query(const BackwardCall<T>& call, const Sequence& sequence, index head,
                             index query) {
  using W = Wide<T>;
  const auto& lse = call.saved.lse;
  const auto& lse_low = call.saved.lse_low;
  if (lse.empty()) return {W{0}, W{0}};
  const index row = sequence.query_row + query;
  const W value = lse.at(sequence.batch, head, row);
  if (value == -std::numeric_limits<W>::infinity()) return {W{0}, W{0}};
  return {value, lse_low.empty() ? W{0} : lse_low.at(sequence.batch, head, row)};
}

/// `numbers`: of all queries of the head.
template <class T>
void compute_query_numbers(const BackwardCall<T>& call, const Sequence& sequence, index head,
                           Span queries, const QueryNumbers<Wide<T>>& numbers) {
  const auto rows_of = [&](const View<const T>& view) {
    return Rows<const T>(view.row(sequence.batch, sequence.query_row + queries.begin, head),
                         queries.end - queries.begin, view.width, view.length_stride);
  };
  backward_kernels<T>().row_dots(rows_of(call.saved.o), rows_of(call.saved.d_o),
                                 numbers.delta + queries.begin);
  const RowView<const Wide<T>>& d_lse = call.saved.d_lse;
  for (index i = queries.begin; i < queries.end; ++i) {
    if (!d_lse.empty()) numbers.delta[i] -= d_lse.at(sequence.batch, head, sequence.query_row + i);
    numbers.lse[i] = lse_of_query(call, sequence, head, i);
  }
}

using Unit = BackwardUnit;

// Up to this many queries are always packed once for all chunks of keys. With more queries, each
// chunk packs those that it needs, if no chunk needs more than one in kFewQueries. So with a window
// the memory depends on its width, not on the length.
constexpr index kPackedTogether = 16384;
constexpr index kFewQueries = 8;

// A head of a unit has at most this many tables of sums, so that a part with many parameters does
// not need one for each chunk of a long sequence. Chunks that run at once have different ones, and
// those that share one add to it in ascending order.
constexpr index kMostTables = 32;

template <class T>
class Backward {
 public:
  Backward(const Context& ctx, const std::vector<Sequence>& sequences, const BackwardCall<T>& call);
  void run();
  ThreadScratch scratch() const;

 private:
  index whole_units(index count) const;
  using W = Wide<T>;

  index queries_of(const Unit& unit) const { return unit.heads() * unit.sequence->queries; }
  index packed_values(const Unit& unit, index rows) const {
    return unit.heads() * PackedWidths<T>(widths_).values(operands_of<T>(rows) * kOperandValues<T>);
  }
  index chunks_in_flight() const {
    return std::min(2 * static_cast<index>(ctx_.threads()), kMostTables);
  }
  std::vector<index> chunk_values(const Unit& unit) const;
  index unit_values(const Unit& unit, index chunks_at_once) const;
  index tile_values(const Unit& unit) const;
  bool packs_together(const Unit& unit) const;
  QueryNumbers<W> room_for_numbers(const Unit& unit, Scratch& scratch) const;
  void compute_numbers(const Unit& unit, Span queries, const QueryNumbers<W>& numbers) const;
  BackwardChunk<T> chunk_of(const Unit& unit, index number, const QueryNumbers<W>& numbers) const;
  void place(const Unit& unit, const QueryGradient<W>& dq, BackwardChunk<T>& chunk,
             Scratch& scratch) const;
  PackedQueries<T> room_for(const Unit& unit, index begin, index end, Scratch& scratch) const;
  void pack(const Unit& unit, const PackedQueries<T>& packed, index begin, index end) const;
  void compute(const Unit& unit, const BackwardChunk<T>& chunk) const;
  void run_whole(const Unit& unit, const Unit* next) const;
  void run_shared(const Unit& unit) const;
  void sum_sink(const Unit& unit, const W* delta) const;
  void run_wave(const Span& wave) const;

  const Context& ctx_;
  const BackwardCall<T>& call_;
  const BackwardKernels<T> kernels_ = backward_kernels<T>();
  const std::vector<Sequence>& sequences_;
  BackwardUnits units_;
  GradientSums<W> sums_;
  const Widths widths_;
  const DqSums<T> dq_sums_;
};

template <class T>
Backward<T>::Backward(const Context& ctx, const std::vector<Sequence>& sequences,
                      const BackwardCall<T>& call)
    : ctx_(ctx),
      call_(call),
      sequences_(sequences),
      units_(make_units(sequences_, call.in.q.heads, call.in.k.heads,
                        shared_gradient(call.attention.bias))),
      sums_(call.attention, call.in.q.heads),
      widths_(widths_of(call.in.q.width, call.in.v.width, lane_counts<T>())),
      dq_sums_(call, widths_) {
  for (Unit& unit : units_.all) {
    unit.first_sums = sums_.add_tables(unit.first_head, unit.last_head,
                                       std::min(unit.chunks(), kMostTables), unit.sequence->batch);
  }
  for (Unit& unit : units_.all) unit.packed_together = packs_together(unit);
}

template <class T>
bool Backward<T>::packs_together(const Unit& unit) const {
  const index queries = unit.sequence->queries;
  if (queries <= kPackedTogether) return true;
  for (index n = 0; n < unit.chunks(); ++n) {
    const BackwardChunk<T> chunk = chunk_of(unit, n, {});
    if ((chunk.query_end - chunk.query_begin) * kFewQueries > queries) return true;
  }
  return false;
}

template <class T>
void Backward<T>::run() {
  sums_.allocate(ctx_);
  for (const auto& part : call_.attention.bias.parts()) part->start_gradient(ctx_);
  for (const Span& wave : units_.waves) run_wave(wave);
  ctx_.run_here([&] { sums_.store(); });
}

// Threads take whole units while there are enough for all of them; the chunks of the remaining ones
// are distributed. Either way the same chunks are computed, and added in the same order.
template <class T>
void Backward<T>::run_wave(const Span& wave) const {
  const Unit* const units = units_.all.data() + wave.begin;
  const index count = wave.end - wave.begin, whole = whole_units(count);
  const index group =
      std::max<index>(1, static_cast<index>(1e6 / std::max(unit_flops(sequences_, call_.in), 1.0)));
  for_each_with_next(ctx_, (whole + group - 1) / group, [&](index item, index then) {
    for (index n = item * group, end = std::min(whole, n + group); n < end; ++n) {
      const index next = n + 1 < end ? n + 1 : then * group;
      run_whole(units[n], next < 0 ? nullptr : units + next);
    }
  });
  for (index n = whole; n < count; ++n) run_shared(units[n]);
}

// How many units of a wave are computed as a whole by one thread.
template <class T>
index Backward<T>::whole_units(index count) const {
  const index threads = ctx_.threads();
  return count >= 4 * threads ? count : count / threads * threads;
}

// The number of values that each chunk of a unit allocates, if all gradients are asked for.
template <class T>
std::vector<index> Backward<T>::chunk_values(const Unit& unit) const {
  std::vector<index> values;
  for (index n = 0; n < unit.chunks(); ++n) {
    const BackwardChunk<T> chunk = chunk_of(unit, n, {});
    const index rows = chunk.query_end - chunk.query_begin;
    values.push_back((dq_sums_.may_sum_in_place(unit) ? 0 : dq_sums_.values(unit, rows)) +
                     (unit.packed_together ? 0 : packed_values(unit, rows)));
  }
  return values;
}

// The number of values that a unit allocates besides its tiles.
template <class T>
index Backward<T>::unit_values(const Unit& unit, index chunks_at_once) const {
  const std::vector<index> chunks = chunk_values(unit);
  const auto size = static_cast<std::ptrdiff_t>(chunks.size());
  index most = 0;
  for (std::ptrdiff_t i = 0; i < size; i += chunks_at_once) {
    const auto end = chunks.begin() + std::min(size, i + chunks_at_once);
    most = std::max(most, std::accumulate(chunks.begin() + i, end, index{0}));
  }
  const index queries = unit.packed_together ? unit.sequence->queries : 0;
  constexpr index kNumbers = 3;  // delta, and lse in two parts
  return kNumbers * queries_of(unit) + packed_values(unit, queries) + dq_sums_.room(unit) + most;
}

// The number of values that those tiles of a unit allocate which run together.
template <class T>
index Backward<T>::tile_values(const Unit& unit) const {
  const index kept_scores = parts_with_scores(call_.attention.bias);
  index most = 0;
  for (index n = 0; n < unit.chunks(); ++n) {
    const BackwardChunk<T> chunk = chunk_of(unit, n, {});
    const index all = chunk.key_end - chunk.key_begin, keys = std::min(all, kLaneTile);
    const index together =
        std::min((all + kLaneTile - 1) / kLaneTile,
                 key_tiles_together<T>(widths_, chunk.query_end - chunk.query_begin));
    const BackwardSizes<T> sizes(widths_, keys, round_up(keys, lane_counts<T>().vector),
                                 kept_scores, call_.needs_rows_of_parts());
    most = std::max(most, sizes.shared() + together * sizes.own());
  }
  return most;
}

template <class T>
ThreadScratch Backward<T>::scratch() const {
  index caller = 0, worker = 0;
  for (const Span& wave : units_.waves) {
    const index shared_begin = wave.begin + whole_units(wave.end - wave.begin);
    for (index n = wave.begin; n < wave.end; ++n) {
      const bool whole = n < shared_begin;
      const Unit& unit = units_.all[static_cast<std::size_t>(n)];
      const index tiles = tile_values(unit);
      const index values = tiles + unit_values(unit, whole ? 1 : chunks_in_flight());
      caller = std::max(caller, values);
      worker = std::max(worker, whole ? values : tiles);
    }
  }
  return {static_cast<double>(caller) * sizeof(W) + sums_.bytes(),
          static_cast<double>(worker) * sizeof(W)};
}

template <class T>
QueryNumbers<Wide<T>> Backward<T>::room_for_numbers(const Unit& unit, Scratch& scratch) const {
  return {scratch.allocate<W>(queries_of(unit)), scratch.allocate<RowLse<W>>(queries_of(unit))};
}

template <class T>
void Backward<T>::compute_numbers(const Unit& unit, Span queries,
                                  const QueryNumbers<W>& numbers) const {
  for (index h = unit.first_head; h < unit.last_head; ++h) {
    const index first = (h - unit.first_head) * unit.sequence->queries;
    compute_query_numbers(call_, *unit.sequence, h, queries, numbers.from(first));
  }
}

template <class T>
BackwardChunk<T> Backward<T>::chunk_of(const Unit& unit, index number,
                                       const QueryNumbers<W>& numbers) const {
  const Sequence& sequence = *unit.sequence;
  const index size = key_chunk(sequence.keys);
  const index key_begin = number * size, key_end = std::min(sequence.keys, key_begin + size);
  index query_begin = sequence.queries, query_end = 0;
  for (index h = unit.first_head; h < unit.last_head && key_begin < key_end; ++h) {
    const auto [begin, end] =
        call_.attention.mask.query_range(sequence, h, key_begin, key_end - key_begin);
    query_begin = std::min(query_begin, begin);
    query_end = std::max(query_end, end);
  }
  const Span queries =
      whole_operands<T>({std::min(query_begin, query_end), query_end}, sequence.queries);
  const index table = unit.first_sums + number % kMostTables * unit.heads();
  return {sequence,       unit.group,  unit.first_head,
          unit.last_head, key_begin,   key_end,
          queries.begin,  queries.end, {},
          numbers,        {},          sums_.table(table),
          sums_.size()};
}

// Gives a chunk the memory of its own.
template <class T>
void Backward<T>::place(const Unit& unit, const QueryGradient<W>& dq, BackwardChunk<T>& chunk,
                        Scratch& scratch) const {
  dq_sums_.place(unit, dq, chunk, scratch);
  if (!unit.packed_together) {
    chunk.packed = room_for(unit, chunk.query_begin, chunk.query_end, scratch);
  }
}

template <class T>
PackedQueries<T> Backward<T>::room_for(const Unit& unit, index begin, index end,
                                       Scratch& scratch) const {
  const index rows = operands_of<T>(end - begin) * kOperandValues<T>;
  const PackedWidths<T> widths(widths_);
  Operand<T>* const q = scratch.allocate<Operand<T>>(packed_values(unit, rows));
  Operand<T>* const d_o = q + unit.heads() * rows * widths.q;
  if (!kReadsPairs<T>) return {unit.first_head, begin, rows, q, d_o, q, d_o};
  Operand<T>* const q_down = d_o + unit.heads() * rows * widths.d_o;
  Operand<T>* const d_o_down = q_down + unit.heads() * operands_of<T>(rows) * widths.q_down;
  return {unit.first_head, begin, rows, q, d_o, q_down, d_o_down};
}

template <class T>
void Backward<T>::pack(const Unit& unit, const PackedQueries<T>& packed, index begin,
                       index end) const {
  for (index h = unit.first_head; h < unit.last_head; ++h) {
    kernels_.pack_queries(call_, *unit.sequence, packed, {h, begin, end});
  }
}

template <class T>
void Backward<T>::compute(const Unit& unit, const BackwardChunk<T>& chunk) const {
  for (index h = chunk.first_head; h < chunk.last_head; ++h) {
    for (index i = chunk.query_begin; i < chunk.query_end; ++i) {
      std::fill_n(chunk.dq.row(h, i), widths_.Dp, W{0});
    }
  }
  if (!unit.packed_together) pack(unit, chunk.packed, chunk.query_begin, chunk.query_end);
  kernels_.run_chunk(call_, chunk);
}

template <class T>
void Backward<T>::run_whole(const Unit& unit, const Unit* next) const {
  const Sequence& sequence = *unit.sequence;
  Scratch scratch;
  Prefetch prefetch;
  const QueryNumbers<W> numbers = room_for_numbers(unit, scratch);
  const QueryGradient<W> dq = dq_sums_.room_for(unit, scratch);
  compute_numbers(unit, {0, sequence.queries}, numbers);
  sum_sink(unit, numbers.delta);
  const bool together = unit.packed_together;
  const auto packed = room_for(unit, 0, together ? sequence.queries : 0, scratch);
  if (together) pack(unit, packed, 0, sequence.queries);
  for (index n = 0; n < unit.chunks(); ++n) {
    Scratch of_chunk;
    BackwardChunk<T> chunk = chunk_of(unit, n, numbers);
    chunk.packed = packed;
    chunk.prefetch = &prefetch;
    prefetch_gradients(call_, chunk, prefetch);
    const bool last = n + 1 == unit.chunks();
    if (!last) prefetch_inputs(call_, chunk_of(unit, n + 1, {}), prefetch);
    if (last && next != nullptr) prefetch_inputs(call_, chunk_of(*next, 0, {}), prefetch);
    place(unit, dq, chunk, of_chunk);
    compute(unit, chunk);
    dq_sums_.add(dq, chunk, {0, sequence.queries});
  }
  dq_sums_.store(unit, dq, {0, sequence.queries});
}

// Computes a few chunks at a time: the number of threads bounds the sums that wait to be added.
template <class T>
void Backward<T>::run_shared(const Unit& unit) const {
  constexpr index kRows = 128;
  const Sequence& sequence = *unit.sequence;
  const index row_items = (sequence.queries + kRows - 1) / kRows;
  Scratch scratch;
  const QueryNumbers<W> numbers = room_for_numbers(unit, scratch);
  const QueryGradient<W> dq = dq_sums_.room_for(unit, scratch);
  const bool together = unit.packed_together;
  const auto packed = room_for(unit, 0, together ? sequence.queries : 0, scratch);
  ctx_.for_each(row_items, [&](index item) {
    const index begin = item * kRows, end = std::min(sequence.queries, begin + kRows);
    compute_numbers(unit, {begin, end}, numbers);
    if (together) pack(unit, packed, begin, end);
  });
  sum_sink(unit, numbers.delta);
  const index at_once = chunks_in_flight();
  for (index first = 0; first < unit.chunks(); first += at_once) {
    Scratch of_these;
    std::vector<BackwardChunk<T>> chunks;
    for (index n = first; n < std::min(unit.chunks(), first + at_once); ++n) {
      chunks.push_back(chunk_of(unit, n, numbers));
      chunks.back().packed = packed;
      place(unit, dq, chunks.back(), of_these);
    }
    // In order: under a causal mask the first chunks take longest.
    ctx_.for_each_in_order(std::ssize(chunks),
                           [&](index n) { compute(unit, chunks[static_cast<std::size_t>(n)]); });
    // The first chunk stores every row; of the others only the rows that they cover are added.
    Span covered{first == 0 ? 0 : sequence.queries, first == 0 ? sequence.queries : 0};
    for (const auto& chunk : chunks) {
      covered = {std::min(covered.begin, chunk.query_begin),
                 std::max(covered.end, chunk.query_end)};
    }
    const index first_item = covered.begin / kRows;
    ctx_.for_each((covered.end + kRows - 1) / kRows - first_item, [&](index item) {
      const index begin = (first_item + item) * kRows;
      const Span rows{begin, std::min(sequence.queries, begin + kRows)};
      for (const auto& chunk : chunks) dq_sums_.add(dq, chunk, rows);
    });
  }
  if (!kReadsPairs<T>) return;
  ctx_.for_each(row_items, [&](index item) {
    dq_sums_.store(unit, dq, {item * kRows, std::min(sequence.queries, (item + 1) * kRows)});
  });
}

// Adds the gradient of the sink to the tables of the first chunk.
template <class T>
void Backward<T>::sum_sink(const Unit& unit, const W* delta) const {
  for (index h = 0; h < unit.heads(); ++h) {
    sums_.set_sink(unit.first_sums + h, call_.saved, *unit.sequence,
                   delta + h * unit.sequence->queries);
  }
}

}  // namespace

template <class T>
void fused_backward(const Context& ctx, const LoweredCall<T>& call, const AttentionSaved<T>& saved,
                    const AttentionGradients<T>& gradients, bool rounded_o) {
  if (Plan* const plan = ctx.plan()) plan->add_thread_bytes(backward_scratch(ctx, call).worker);
  const SavedLse<T> with_low(ctx, call, saved);
  const BackwardCall<T> kernel_call{
      {call.attention(), call.in()}, with_low.saved(), gradients, rounded_o};
  Backward<T>(ctx, call.sequences(), kernel_call).run();
}

template <class T>
ThreadScratch backward_scratch(const Context& ctx, const LoweredCall<T>& call) {
  const AttentionSaved<T> saved;
  const AttentionGradients<T> gradients;
  const BackwardCall<T> kernel_call{{call.attention(), call.in()}, saved, gradients};
  return Backward<T>(ctx, call.sequences(), kernel_call).scratch();
}

#define FOVEA_INSTANTIATE(T)                                                                    \
  template void fused_backward(const Context&, const LoweredCall<T>&, const AttentionSaved<T>&, \
                               const AttentionGradients<T>&, bool);                             \
  template ThreadScratch backward_scratch(const Context&, const LoweredCall<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
FOVEA_INSTANTIATE(BFloat16)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail

// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/linear/linear.h"

#include <algorithm>
#include <array>
#include <vector>

#include "fovea/attention/linear/linear_block.h"
#include "fovea/base/interruption.h"
#include "fovea/base/memory.h"

namespace fovea::detail {

namespace {

constexpr index kBlock = kLinearBlock;
// How many rows of y one item of work sums, and how many rows of x it computes.
constexpr index kSegment = 8 * kBlock;

index segments_of(index rows) { return (rows + kSegment - 1) / kSegment; }

// Which side of a call the rows belong to.
enum class Side { kQueries, kKeys };

// out_x = scale * sum over the y that x keeps of (a_x . b_y) c_y. y is the other side.
template <class T>
struct Scan {
  View<const T> a, b, c;
  View<T> out;
  Side side;  // of x
};

template <class T>
Scan<T> forward_scan(const AttentionInputs<T>& in, const View<T>& o) {
  return {in.q, in.k, in.v, o, Side::kQueries};
}

template <class T>
std::array<Scan<T>, 3> backward_scans(const AttentionInputs<T>& in, const View<const T>& d_o,
                                      const AttentionGradients<T>& gradients) {
  return {{{d_o, in.v, in.k, gradients.dq, Side::kQueries},
           {in.v, d_o, in.q, gradients.dk, Side::kKeys},
           {in.k, in.q, d_o, gradients.dv, Side::kKeys}}};
}

// A view with the width of dO, only for counting flops: no gradient is given and none is read.
template <class T>
View<const T> shape_of_d_o(const AttentionInputs<T>& in) {
  return in.v;
}

// The heads [begin, end) of x and of y that interact in one sequence.
struct ScanUnit {
  const Sequence& sequence;
  Span x_heads, y_heads;
  index xs, ys;       // rows
  index offset;       // x keeps y <= x + offset, if the mask is causal
  index first_state;  // number of the state before the first segment of y
};

// The code treats x as queries and y as keys. If x are keys, both sides are read from the last row
// to the first: in this order, x again keeps the y that come before.
template <class T>
class LinearScan {
 public:
  LinearScan(const Context& ctx, const LoweredCall<T>& call, const Scan<T>& scan);
  void run() const;
  double flops() const;
  double bytes() const {
    return static_cast<double>(states_) * static_cast<double>(state_size()) * sizeof(T);
  }

 private:
  index D() const { return scan_.a.width; }
  index width() const { return scan_.c.width; }
  index padded_width() const {
    return (width() + kernels_.lanes - 1) / kernels_.lanes * kernels_.lanes;
  }
  index state_size() const { return D() * padded_width(); }
  // Whether a state (a sum over rows of y) takes less work than each pair of rows.
  bool has_states(const ScanUnit& unit) const {
    const auto count = [](Span heads, index rows) {
      return static_cast<double>((heads.end - heads.begin) * rows);
    };
    const double x = count(unit.x_heads, unit.xs), y = count(unit.y_heads, unit.ys);
    const auto d = static_cast<double>(D()), w = static_cast<double>(width());
    return unit.ys > kBlock && x * y * (d + w) > (x + y) * d * w;
  }
  index kept_by(const ScanUnit& unit, index x) const {
    return causal_ ? std::clamp<index>(x + unit.offset + 1, 0, unit.ys) : unit.ys;
  }
  // How many y are in the state that a tile from x on uses. It computes the remaining kept pairs
  // directly.
  index in_state(const ScanUnit& unit, index x) const {
    const index kept = has_states(unit) ? kept_by(unit, x) : 0;
    return kept == unit.ys ? kept : kept / kBlock * kBlock;
  }
  double flops_of(const ScanUnit& unit) const;
  template <class U>
  Rows<U> rows(const ScanUnit& unit, const View<U>& view, Side side, index head, Span span) const;
  Side other_side() const { return scan_.side == Side::kKeys ? Side::kQueries : Side::kKeys; }
  Rows<T> state(T* states, index number) const {
    return {states + number * state_size(), D(), padded_width()};
  }
  void add_to_state(const ScanUnit& unit, Span ys, Rows<T> state) const;
  void sum_segments(T* states) const;
  void run_item(const ScanUnit& unit, index head, index first, T* states) const;
  struct Tile {
    index head;
    Span xs;
  };
  void run_tile(const ScanUnit& unit, const Tile& tile, Rows<const T> state, index summed) const;

  const Context& ctx_;
  const Scan<T>& scan_;
  const LinearKernels<T> kernels_ = linear_kernels<T>();
  const std::vector<Sequence>& sequences_;
  const T scale_;
  const bool causal_;
  std::vector<ScanUnit> units_;
  index states_ = 0;
};

template <class T>
LinearScan<T>::LinearScan(const Context& ctx, const LoweredCall<T>& call, const Scan<T>& scan)
    : ctx_(ctx),
      scan_(scan),
      sequences_(call.sequences()),
      scale_(static_cast<T>(scale_of(call.attention().score, call.in().q.width))),
      causal_(call.attention().mask.kept_prefix() == KeptPrefix::kToPosition) {
  const index H = call.in().q.heads, G = call.in().k.heads;
  for (const Sequence& sequence : sequences_) {
    for (index g = 0; g < G; ++g) {
      const Span of_queries{first_head(g, H, G), first_head(g + 1, H, G)}, of_keys{g, g + 1};
      const index T_ = sequence.queries, S = sequence.keys, offset = sequence.position(0);
      if (scan.side == Side::kQueries) {
        units_.push_back({sequence, of_queries, of_keys, T_, S, offset, states_});
      } else {
        units_.push_back({sequence, of_keys, of_queries, S, T_, offset + T_ - S, states_});
      }
      if (has_states(units_.back())) states_ += segments_of(units_.back().ys) + 1;
    }
  }
}

// Rows [begin, end), in the order in which x keeps y.
template <class T>
template <class U>
Rows<U> LinearScan<T>::rows(const ScanUnit& unit, const View<U>& view, Side side, index head,
                            Span span) const {
  const Sequence& sequence = unit.sequence;
  const bool queries = side == Side::kQueries, turned = scan_.side == Side::kKeys;
  const index first = queries ? sequence.query_row : sequence.key_row;
  const index length = queries ? sequence.queries : sequence.keys;
  const index row = first + (turned ? length - 1 - span.begin : span.begin);
  return {view.row(sequence.batch, row, head), span.end - span.begin, view.width,
          turned ? -view.length_stride : view.length_stride};
}

// Blocks and heads in ascending order, so that the order of the sum depends only on the place in
// the sequence.
template <class T>
void LinearScan<T>::add_to_state(const ScanUnit& unit, Span ys, Rows<T> state) const {
  for (index y = ys.begin; y < ys.end; y += kBlock) {
    stop_if_interrupted();
    const Span block{y, std::min(ys.end, y + kBlock)};
    for (index h = unit.y_heads.begin; h < unit.y_heads.end; ++h) {
      kernels_.add_to_state(rows(unit, scan_.b, other_side(), h, block),
                            rows(unit, scan_.c, other_side(), h, block), state);
    }
  }
}

// State n of a unit is the sum over the segments before the n-th.
template <class T>
void LinearScan<T>::sum_segments(T* states) const {
  struct Segment {
    const ScanUnit& unit;
    index number;
  };
  std::vector<Segment> segments;
  for (const ScanUnit& unit : units_) {
    for (index n = 0; has_states(unit) && n < segments_of(unit.ys); ++n)
      segments.push_back({unit, n});
  }
  std::fill_n(states, states_ * state_size(), T{0});
  ctx_.for_each(static_cast<index>(segments.size()), [&](index item) {
    const auto& [unit, n] = segments[static_cast<std::size_t>(item)];
    add_to_state(unit, {n * kSegment, std::min(unit.ys, (n + 1) * kSegment)},
                 state(states, unit.first_state + n + 1));
  });
  for (const auto& [unit, n] : segments) {
    const Rows<T> sum = state(states, unit.first_state + n + 1);
    const T* const before = sum.data - state_size();
    for (index i = 0; i < state_size(); ++i) sum.data[i] += before[i];
  }
}

template <class T>
void LinearScan<T>::run() const {
  if (scan_.out.empty()) return;
  constexpr double kMostBytes = 1e18;
  const AlignedBytes memory =
      allocate_aligned(static_cast<std::size_t>(std::clamp(bytes(), 1.0, kMostBytes)));
  T* const states = reinterpret_cast<T*>(memory.get());
  sum_segments(states);
  struct Item {
    const ScanUnit& unit;
    index head, first;
  };
  std::vector<Item> items;
  for (const ScanUnit& unit : units_) {
    for (index h = unit.x_heads.begin; h < unit.x_heads.end; ++h) {
      for (index x = 0; x < unit.xs; x += kSegment) items.push_back({unit, h, x});
    }
  }
  ctx_.for_each(static_cast<index>(items.size()), [&](index n) {
    const auto& [unit, head, first] = items[static_cast<std::size_t>(n)];
    run_item(unit, head, first, states);
  });
}

// Computes the tiles from x = `first` on. The running state grows from tile to tile.
template <class T>
void LinearScan<T>::run_item(const ScanUnit& unit, index head, index first, T* states) const {
  Scratch scratch;
  const Rows<T> running(scratch.allocate<T>(state_size()), D(), padded_width());
  index summed = -1;  // y in the running state
  const index end = std::min(unit.xs, first + kSegment);
  for (index x = first; x < end; x += kBlock) {
    const Tile tile{head, {x, std::min(end, x + kBlock)}};
    const index whole = in_state(unit, x);
    if (!has_states(unit)) {
      run_tile(unit, tile, running, 0);
    } else if (whole == unit.ys) {
      run_tile(unit, tile, state(states, unit.first_state + segments_of(unit.ys)), unit.ys);
    } else {
      if (summed < 0) {
        summed = whole / kSegment * kSegment;
        const Rows<T> before = state(states, unit.first_state + summed / kSegment);
        std::copy_n(before.data, state_size(), running.data);
      }
      add_to_state(unit, {summed, whole}, running);
      summed = whole;
      run_tile(unit, tile, running, whole);
    }
  }
}

template <class T>
void LinearScan<T>::run_tile(const ScanUnit& unit, const Tile& tile, Rows<const T> state,
                             index summed) const {
  const auto& [head, xs] = tile;
  Scratch scratch;
  const index count = xs.end - xs.begin, kept = kept_by(unit, xs.end - 1);
  const Rows<T> sum(scratch.allocate<T>(count * padded_width()), count, padded_width());
  const Rows<const T> a = rows(unit, scan_.a, scan_.side, head, xs);
  if (summed > 0) {
    kernels_.take_state(a, state, sum);
  } else {
    std::fill_n(sum.data, count * padded_width(), T{0});
  }
  for (index y = summed; y < kept; y += kBlock) {
    stop_if_interrupted();
    const Span block{y, std::min(unit.ys, y + kBlock)};
    for (index other = unit.y_heads.begin; other < unit.y_heads.end; ++other) {
      kernels_.add_direct({a, rows(unit, scan_.b, other_side(), other, block),
                           rows(unit, scan_.c, other_side(), other, block),
                           xs.begin + unit.offset + 1 - y, !causal_},
                          sum);
    }
  }
  kernels_.store_scaled(sum, scale_, rows(unit, scan_.out, scan_.side, head, xs));
}

// Counts the same tiles as run_item() computes.
template <class T>
double LinearScan<T>::flops() const {
  double flops = 0;
  for (const ScanUnit& unit : units_) flops += flops_of(unit);
  return flops;
}

template <class T>
double LinearScan<T>::flops_of(const ScanUnit& unit) const {
  const bool states = has_states(unit);
  index taken = 0, summed = 0, met = 0;  // x that use a state, y that are added to it, pairs
  for (index x = 0; x < unit.xs; x += kBlock) {
    const index count = std::min(kBlock, unit.xs - x), whole = in_state(unit, x);
    const index kept = kept_by(unit, x + count - 1);
    const index blocks = (std::max(kept, whole) - whole + kBlock - 1) / kBlock;
    met += count * (std::min(unit.ys, whole + blocks * kBlock) - whole);
    if (whole > 0) taken += count;
    if (!states || whole == unit.ys) continue;
    summed +=
        whole - (x % kSegment == 0 ? whole / kSegment * kSegment : in_state(unit, x - kBlock));
  }
  const auto xs = static_cast<double>(unit.x_heads.end - unit.x_heads.begin);
  const auto ys = static_cast<double>(unit.y_heads.end - unit.y_heads.begin);
  const auto state = static_cast<double>(D() * width());
  const double once = states ? ys * static_cast<double>(unit.ys) : 0;
  const double joins = once + xs * ys * static_cast<double>(summed);
  return 2 * state * (joins + xs * static_cast<double>(taken)) +
         2 * static_cast<double>(D() + width()) * xs * ys * static_cast<double>(met);
}

}  // namespace

template <class T>
void linear_forward(const Context& ctx, const LoweredCall<T>& call,
                    const AttentionOutputs<T>& out) {
  const Scan<T> scan = forward_scan(call.in(), out.o);
  LinearScan<T>(ctx, call, scan).run();
}

template <class T>
void linear_backward(const Context& ctx, const LoweredCall<T>& call, View<const T> d_o,
                     const AttentionGradients<T>& gradients) {
  for (const Scan<T>& scan : backward_scans(call.in(), d_o, gradients)) {
    LinearScan<T>(ctx, call, scan).run();
  }
}

template <class T>
LinearFlops linear_flops(const Context& ctx, const LoweredCall<T>& call) {
  const auto flops = [&](const Scan<T>& scan) { return LinearScan<T>(ctx, call, scan).flops(); };
  const auto [dq, dk, dv] = backward_scans<T>(call.in(), shape_of_d_o(call.in()), {});
  return {flops(forward_scan<T>(call.in(), {})), flops(dq) + flops(dk) + flops(dv)};
}

template <class T>
double linear_scratch_bytes(const Context& ctx, const LoweredCall<T>& call) {
  const AttentionInputs<T>& in = call.in();
  const Scan<T> forward = forward_scan<T>(in, {});
  double most = LinearScan<T>(ctx, call, forward).bytes();
  for (const Scan<T>& scan : backward_scans<T>(in, shape_of_d_o(in), {})) {
    most = std::max(most, LinearScan<T>(ctx, call, scan).bytes());
  }
  const index widest = (std::max(in.q.width, in.v.width) + 63) / 64 * 64;
  const index of_a_tile = widest * widest + 4 * kBlock * widest + kBlock * kBlock;
  return most + ctx.threads() * static_cast<double>(of_a_tile) * sizeof(T);
}

#define FOVEA_INSTANTIATE(T)                                                                       \
  template void linear_forward(const Context&, const LoweredCall<T>&, const AttentionOutputs<T>&); \
  template void linear_backward(const Context&, const LoweredCall<T>&, View<const T>,              \
                                const AttentionGradients<T>&);                                     \
  template LinearFlops linear_flops(const Context&, const LoweredCall<T>&);                        \
  template double linear_scratch_bytes(const Context&, const LoweredCall<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail

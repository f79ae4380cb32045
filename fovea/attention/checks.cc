// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/attention/score/pair_score.h"
#include "fovea/attention/score/row_map.h"
#include "fovea/base/check.h"

namespace fovea {

namespace {

// Lengths, offsets, the counters of dropout and the keys of TopK are numbers of 32 bits.
constexpr index kMostOfAnAxis = (index{1} << 31) - 1;
// A call keeps a few numbers for each row of tiles in each head. This limits them to some gigabytes
// and seconds, even for huge sizes with strides of 0.
constexpr double kMostRowsOfTiles = 1 << 26;
// The most values of a tensor, whatever its strides: its size in bytes cannot overflow.
constexpr index kMostValues = index{1} << 56;

constexpr Hint kShapes{
    "q is [B, T, H, D], k [B, S, G, D], v [B, S, G, Dv], o and its gradient [B, T, H, Dv], lse "
    "[B, H, T]; dq, dk and dv are as q, k and v"};
constexpr Hint kGiveIt{"give a view of that shape, such as View<float>::contiguous(data, ...)"};
constexpr Hint kNoData{"its pointer is null: give that of its first value"};
constexpr Hint kUpwards{"sizes and strides count from 0 upwards: copy what runs backwards"};
constexpr Hint kOffsets{
    "query_offsets run from 0 to T, key_offsets from 0 to S; sequence n is rows offsets[n] .. "
    "offsets[n+1]"};

struct Axis {
  index size, stride;
};

// Rows of `width` values must not overlap: results are written to them.
void check_apart(std::string_view name, std::array<Axis, 3> axes, index width) {
  if (std::any_of(axes.begin(), axes.end(), [](Axis axis) { return axis.size == 0; })) return;
  std::sort(axes.begin(), axes.end(), [](Axis a, Axis b) { return a.stride < b.stride; });
  index extent = width;
  for (const Axis& axis : axes) {
    if (axis.size == 1) continue;
    check(axis.stride >= extent, Hint{"give each row memory of its own"},
          "attention: {} is written, so its rows must not overlap; a stride is {}, and what it "
          "steps over takes {}",
          name, axis.stride, extent);
    const index steps = checked_product(axis.size - 1, axis.stride, name);
    check(steps <= kMostValues - extent, "attention: {} spans more than {} values", name,
          kMostValues);
    extent += steps;
  }
}

template <class T>
std::string text(const View<T>& v, const char* length, const char* heads, const char* width) {
  return fmt::format("[B={}, {}={}, {}={}, {}={}]", v.batch, length, v.length, heads, v.heads,
                     width, v.width);
}

template <class T>
void check_view(std::string_view name, const View<T>& v) {
  check(!is_left_out(v), kGiveIt, "attention: {} was not given", name);
  check(v.batch >= 0 && v.length >= 0 && v.heads >= 0 && v.width >= 0, kUpwards,
        "attention: {} has a negative size: [{}, {}, {}, {}]", name, v.batch, v.length, v.heads,
        v.width);
  check(std::max({v.batch, v.length, v.heads, v.width}) <= kMostOfAnAxis,
        Hint{"cut the tensor into several calls"},
        "attention: no axis of {} may be longer than {}; it is [{}, {}, {}, {}]", name,
        kMostOfAnAxis, v.batch, v.length, v.heads, v.width);
  check(v.batch_stride >= 0 && v.length_stride >= 0 && v.head_stride >= 0, kUpwards,
        "attention: {} has a negative stride: {}, {}, {}", name, v.batch_stride, v.length_stride,
        v.head_stride);
  const index rows = checked_product(checked_product(v.batch, v.length, name), v.heads, name);
  check(rows == 0 || v.width <= kMostValues / rows,
        "attention: {} may count at most {} values; it is [{}, {}, {}, {}]", name, kMostValues,
        v.batch, v.length, v.heads, v.width);
  const bool has_values = v.batch > 0 && v.length > 0 && v.heads > 0 && v.width > 0;
  check(!has_values || v.data != nullptr, kNoData, "attention: {} has a shape but no data", name);
}

template <class T>
void check_like(std::string_view name, const View<T>& v, index B, index L, index H, index W) {
  check(!is_left_out(v), kGiveIt, "attention: {} was not given; it must be [{}, {}, {}, {}]", name,
        B, L, H, W);
  check_view(name, v);
  check(v.batch == B && v.length == L && v.heads == H && v.width == W, kShapes,
        "attention: {} must be [{}, {}, {}, {}]; it is [{}, {}, {}, {}]", name, B, L, H, W, v.batch,
        v.length, v.heads, v.width);
}

template <class T>
void check_written(std::string_view name, const View<T>& v, index B, index L, index H, index W) {
  check_like(name, v, B, L, H, W);
  check_apart(name, {{{B, v.batch_stride}, {L, v.length_stride}, {H, v.head_stride}}}, W);
}

template <class T>
void check_rows(std::string_view name, const RowView<T>& v, index B, index H, index L,
                const char* length = "T") {
  const bool fits = v.batch == B && v.heads == H && v.length == L;
  check(fits || !is_left_out(v), kGiveIt,
        "attention: {} was not given; it must be [B={}, H={}, {}={}]", name, B, H, length, L);
  check(fits, kShapes, "attention: {} must be [B={}, H={}, {}={}]; it is [{}, {}, {}]", name, B, H,
        length, L, v.batch, v.heads, v.length);
  check(v.batch_stride >= 0 && v.head_stride >= 0 && v.length_stride >= 0, kUpwards,
        "attention: {} has a negative stride: {}, {}, {}", name, v.batch_stride, v.head_stride,
        v.length_stride);
  check(B == 0 || H == 0 || L == 0 || v.data != nullptr, kNoData,
        "attention: {} has a shape but no data", name);
}

void check_offsets(std::string_view name, Vec<const std::int32_t> offsets, const char* length,
                   index rows) {
  check(offsets.size >= 1, Hint{"give both: .packed = {query_offsets, key_offsets}"},
        "attention: {} must hold at least one offset", name);
  check(offsets.data != nullptr, kNoData, "attention: {} have a size but no data", name);
  check(offsets[0] == 0, kOffsets, "attention: {}[0] must be 0; it is {}", name, offsets[0]);
  for (index n = 1; n < offsets.size; ++n) {
    check(offsets[n] >= offsets[n - 1], kOffsets, "attention: {} must ascend; [{}] = {} follows {}",
          name, n, offsets[n], offsets[n - 1]);
  }
  const index last = offsets[offsets.size - 1];
  check(last == rows, kOffsets, "attention: {} end at {}; {} is {}", name, last, length, rows);
}

template <class T>
void check_packed(const Attention<T>& attention, const AttentionInputs<T>& in) {
  const Packed& packed = attention.packed;
  check(in.q.batch == 1,
        Hint{"lay the sequences one after another along the length axis, with B = 1"},
        "attention: packed sequences need B = 1; q is {}", text(in.q, "T", "H", "D"));
  check_offsets("query_offsets", packed.query_offsets, "T", in.q.length);
  check_offsets("key_offsets", packed.key_offsets, "S", in.k.length);
  check(packed.query_offsets.size == packed.key_offsets.size,
        Hint{"give both an offset for each sequence, and one more; a sequence may be empty"},
        "attention: query_offsets and key_offsets must name the same sequences; they are [{}] and "
        "[{}]",
        packed.query_offsets.size, packed.key_offsets.size);
  // Longer than any sequence: a mask that cuts it has lengths.
  constexpr index kEndless = std::numeric_limits<index>::max() / 2;
  Sequence probe{.queries = kEndless, .keys = kEndless};
  attention.mask.limit(probe);
  check(probe.queries == kEndless && probe.keys == kEndless,
        Hint{"leave the lengths out: offsets say how long each sequence is"},
        "attention: give offsets or lengths, not both; the mask is {}", attention.mask.name());
}

void check_dropout(const Dropout& dropout, index sequences) {
  const double p = dropout.probability;
  if (!(p >= 0 && p < 1)) {
    fail(ErrorCode::kOptionValue, Hint{"give a probability: 0.1 drops one weight in ten"},
         "attention: dropout must be in 0 <= p < 1; it is {}", p);
  }
  check(dropout.samples.empty() || dropout.samples.size == sequences,
        Hint{"give a number for each sequence of the call, or none at all"},
        "attention: dropout samples must be [{}], one for each sequence; they are [{}]", sequences,
        dropout.samples.size);
  check(dropout.samples.empty() || dropout.samples.data != nullptr,
        "attention: dropout samples have a size but no data");
}

template <class T>
void check_norm(const Attention<T>& attention, index H) {
  const Sink<T>& sink = attention.sink;
  const bool softmax = std::holds_alternative<norm::Softmax>(attention.norm);
  const auto require = [&](bool fits, std::string_view what) {
    if (fits) return;
    fail(ErrorCode::kOptionValue, Hint{"leave it out, or use norm::Softmax"},
         "attention: {} needs softmax; the norm is {}", what, name_of(attention.norm));
  };
  require(softmax || sink.logits.empty(), "a sink");
  for (const auto& observer : attention.observe.parts()) {
    require(softmax || !observer->needs_softmax(), observer->name());
  }
  check(sink.logits.empty() || sink.logits.size == H,
        "attention: the sink must be [H={}] or empty; it is [{}]", H, sink.logits.size);
  check(sink.dlogits.empty() || sink.dlogits.size == sink.logits.size,
        "attention: the gradient of the sink must be [{}], as the sink, or empty; it is [{}]",
        sink.logits.size, sink.dlogits.size);
  check(sink.logits.empty() || sink.logits.data != nullptr,
        "attention: the sink has a size but no data");
  check(sink.dlogits.empty() || sink.dlogits.data != nullptr,
        "attention: the gradient of the sink has a size but no data");
  for (index h = 0; h < sink.logits.size; ++h) {
    const T logit = sink.logits[h];
    if (logit < std::numeric_limits<T>::infinity()) continue;
    fail(ErrorCode::kOptionValue, "attention: the sink of head {} must be finite or -inf; it is {}",
         h, logit);
  }
}

struct WeightShape {
  std::string_view name, columns_name;
  index H, columns;
};

// Weights of a score, and their gradient if it is wanted.
template <class T>
void check_weights(const WeightShape& shape, Rows<const T> w, Rows<T> dw) {
  const auto check_one = [&](std::string_view of, const auto& rows) {
    check(rows.rows == shape.H && rows.columns == shape.columns,
          "attention: {}{} must be [H={}, {}={}]; it is [{}, {}]", of, shape.name, shape.H,
          shape.columns_name, shape.columns, rows.rows, rows.columns);
  };
  check_one("", w);
  check(shape.H == 0 || w.data != nullptr, "attention: {} has a shape but no data", shape.name);
  if (dw.data != nullptr) check_one("the gradient of ", dw);
}

template <class T>
void check_score(const Attention<T>& attention, index H, index D) {
  const double scale = scale_of(attention.score, D);
  if (!std::isfinite(static_cast<T>(scale))) {
    fail(ErrorCode::kOptionValue, "attention: the scale must be finite; it is {}", scale);
  }
  if (const auto* concat = std::get_if<score::Concat<T>>(&attention.score)) {
    check_weights<T>({"w of concat", "2 D", H, 2 * D}, concat->w, concat->dw);
  }
  if (const auto* additive = std::get_if<score::Additive<T>>(&attention.score)) {
    check_weights<T>({"v of additive", "D", H, D}, additive->v, additive->dv);
  }
  const Rotary& rotary = attention.rotary;
  if (rotary.pairs == RotaryPairs::kNone) return;
  check(D % 2 == 0, "attention: rotary positions turn pairs of columns: D must be even; it is {}",
        D);
  if (!(rotary.base > 0 && std::isfinite(rotary.base))) {
    fail(ErrorCode::kOptionValue, "attention: the base of rotary positions must be > 0; it is {}",
         rotary.base);
  }
}

// Only softmax has a log-sum-exp.
template <class T>
void check_no_lse(const Attention<T>& attention, const T* lse, const T* lse_low) {
  const bool softmax = std::holds_alternative<norm::Softmax>(attention.norm);
  check(softmax || (lse == nullptr && lse_low == nullptr),
        Hint{"without softmax nothing needs lse, neither forward nor backward"},
        "attention: {} has no log-sum-exp: leave lse and lse_low empty", name_of(attention.norm));
}

template <class T>
void check_parts(const Attention<T>& attention, const AttentionSizes& sizes) {
  const auto check_each = [](const auto& family, const AttentionSizes& of) {
    for (const auto& part : family.parts()) part->check_shape(of);
  };
  check_each(attention.mask, sizes);
  AttentionSizes made = sizes;
  made.D = RowMap<T>::width(attention, sizes.D);
  check_each(attention.bias, made);
  const auto& biases = attention.bias.parts();
  for (std::size_t n = 0; n < biases.size(); ++n) {
    const bool first = n == 0 && !has_pair_score(attention);
    if (!biases[n]->makes_score() || first) continue;
    fail(ErrorCode::kOptionValue, Hint{"put it first in the sum, and make one score only"},
         "attention: {} makes the score, so it must stand first; it follows {}", biases[n]->name(),
         n > 0 ? biases[n - 1]->name() : name_of(attention.score));
  }
  check_each(attention.values, sizes);
  check_each(attention.observe, sizes);
}

// Before anything walks over the call.
template <class T>
void check_countable(const Attention<T>& attention, const AttentionInputs<T>& in) {
  check(rows_of_tiles(attention, in) <= kMostRowsOfTiles,
        "attention: H x (B x (T + S) / {} + 2 x sequences) may be at most {}; q is {}, k is {}",
        kLaneTile, kMostRowsOfTiles, text(in.q, "T", "H", "D"), text(in.k, "S", "G", "D"));
}

}  // namespace

template <class T>
double rows_of_tiles(const Attention<T>& attention, const AttentionInputs<T>& in) {
  const auto size = [](index n) { return static_cast<double>(std::max<index>(n, 1)); };
  const double rows = static_cast<double>(in.q.length) + static_cast<double>(in.k.length);
  const double ends = 2 * size(std::max(in.q.batch, attention.packed.query_offsets.size));
  return size(in.q.heads) * (size(in.q.batch) * rows / kLaneTile + ends);
}

template <class T>
void check_rows_written(std::string_view name, const RowView<T>& v, index B, index H, index L,
                        const char* length) {
  check_rows(name, v, B, H, L, length);
  check_apart(name, {{{B, v.batch_stride}, {H, v.head_stride}, {L, v.length_stride}}}, 1);
}

template <class V>
void check_scores_written(std::string_view name, const ScoreView<V>& v,
                          const std::array<index, 4>& shape) {
  const auto [B, H, L, S] = shape;
  const bool fits = v.batch == B && v.heads == H && v.queries == L && v.keys == S;
  check(fits || !is_left_out(v), kGiveIt,
        "attention: {} was not given; it must be [B={}, H={}, {}, {}]", name, B, H, L, S);
  check(fits, "attention: {} must be [B={}, H={}, {}, {}]; it is [{}, {}, {}, {}]", name, B, H, L,
        S, v.batch, v.heads, v.queries, v.keys);
  check(v.batch_stride >= 0 && v.head_stride >= 0 && v.query_stride >= 0, kUpwards,
        "attention: {} has a negative stride: {}, {}, {}", name, v.batch_stride, v.head_stride,
        v.query_stride);
  check(B == 0 || H == 0 || L == 0 || S == 0 || v.data != nullptr, kNoData,
        "attention: {} has a shape but no data", name);
  check_apart(name, {{{B, v.batch_stride}, {H, v.head_stride}, {L, v.query_stride}}}, S);
}

template <class T>
void check_attention(const Attention<T>& attention, const AttentionInputs<T>& in) {
  const auto& [q, k, v] = in;
  check_view("q", q);
  check_view("k", k);
  check_view("v", v);
  check(q.width == k.width, kShapes,
        "attention: q and k must have the same width D; q is {}, k is {}", text(q, "T", "H", "D"),
        text(k, "S", "G", "D"));
  check(q.batch == k.batch && k.batch == v.batch, kShapes,
        "attention: q, k and v must have the same batch B; q is {}, k is {}, v is {}",
        text(q, "T", "H", "D"), text(k, "S", "G", "D"), text(v, "S", "G", "Dv"));
  check(k.length == v.length && k.heads == v.heads, kShapes,
        "attention: k and v must have the same S and G; k is {}, v is {}", text(k, "S", "G", "D"),
        text(v, "S", "G", "Dv"));
  check(q.width >= 1 && v.width >= 1, kShapes,
        "attention: D and Dv must be at least 1; q is {}, v is {}", text(q, "T", "H", "D"),
        text(v, "S", "G", "Dv"));
  check(q.heads == 0 || (k.heads >= 1 && q.heads % k.heads == 0),
        Hint{"make H a multiple of G: each head of k and v serves H / G heads of q"},
        "attention: H={} heads of q are no multiple of G={} heads of k and v; q is {}, k is {}",
        q.heads, k.heads, text(q, "T", "H", "D"), text(k, "S", "G", "D"));
  check_countable(attention, in);
  check_score(attention, q.heads, q.width);
  check_parts(attention, {.B = q.batch,
                          .T = q.length,
                          .S = k.length,
                          .H = q.heads,
                          .G = k.heads,
                          .D = q.width,
                          .Dv = v.width});
  check_norm(attention, q.heads);
  attention.mask.alignment();
  const bool packed = !attention.packed.empty();
  if (packed) check_packed(attention, in);
  check_dropout(attention.dropout, packed ? attention.packed.query_offsets.size - 1 : q.batch);
}

template <class T>
void check_outputs(const Attention<T>& attention, const AttentionInputs<T>& in,
                   const AttentionOutputs<T>& out) {
  const auto& q = in.q;
  check_no_lse<T>(attention, out.lse.data, out.lse_low.data);
  check_written("o", out.o, q.batch, q.length, q.heads, in.v.width);
  if (!out.lse.empty()) check_rows_written("lse", out.lse, q.batch, q.heads, q.length);
  if (!out.lse_low.empty()) check_rows_written("lse_low", out.lse_low, q.batch, q.heads, q.length);
  const auto& w = out.weights;
  if (!w.empty()) check_scores_written("weights", w, {q.batch, q.heads, q.length, in.k.length});
}

template <class T>
void check_gradients(const Attention<T>& attention, const AttentionInputs<T>& in,
                     const AttentionSaved<T>& saved, const AttentionGradients<T>& gradients) {
  const auto& [q, k, v] = in;
  check_no_lse<T>(attention, saved.lse.data, saved.lse_low.data);
  check_like("o", saved.o, q.batch, q.length, q.heads, v.width);
  check_like("the gradient of o", saved.d_o, q.batch, q.length, q.heads, v.width);
  if (std::holds_alternative<norm::Softmax>(attention.norm)) {
    check_rows("lse", saved.lse, q.batch, q.heads, q.length);
  }
  if (!saved.lse_low.empty()) check_rows("lse_low", saved.lse_low, q.batch, q.heads, q.length);
  const auto& [dq, dk, dv] = gradients;
  if (!dq.empty()) check_written("dq", dq, q.batch, q.length, q.heads, q.width);
  if (!dk.empty()) check_written("dk", dk, k.batch, k.length, k.heads, k.width);
  if (!dv.empty()) check_written("dv", dv, v.batch, v.length, v.heads, v.width);
}

#define FOVEA_INSTANTIATE(T)                                                                 \
  template double rows_of_tiles(const Attention<T>&, const AttentionInputs<T>&);             \
  template void check_attention(const Attention<T>&, const AttentionInputs<T>&);             \
  template void check_rows_written(std::string_view, const RowView<T>&, index, index, index, \
                                   const char*);                                             \
  template void check_outputs(const Attention<T>&, const AttentionInputs<T>&,                \
                              const AttentionOutputs<T>&);                                   \
  template void check_gradients(const Attention<T>&, const AttentionInputs<T>&,              \
                                const AttentionSaved<T>&, const AttentionGradients<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

template void check_scores_written(std::string_view, const ScoreView<float>&,
                                   const std::array<index, 4>&);
template void check_scores_written(std::string_view, const ScoreView<double>&,
                                   const std::array<index, 4>&);
template void check_scores_written(std::string_view, const ScoreView<std::int32_t>&,
                                   const std::array<index, 4>&);
template void check_scores_written(std::string_view, const ScoreView<std::uint8_t>&,
                                   const std::array<index, 4>&);

}  // namespace fovea

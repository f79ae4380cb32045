// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/sequences.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "fovea/base/check.h"
#include "fovea/base/random.h"

namespace fovea {

namespace {

struct Axis {
  index size, stride;
};

// Rows of `width` values must not meet: what is written twice belongs to nobody.
void check_apart(std::string_view name, std::array<Axis, 3> axes, index width) {
  if (std::any_of(axes.begin(), axes.end(), [](Axis axis) { return axis.size == 0; })) return;
  std::sort(axes.begin(), axes.end(), [](Axis a, Axis b) { return a.stride < b.stride; });
  index extent = width;
  for (const Axis& axis : axes) {
    if (axis.size == 1) continue;
    check(axis.stride >= extent,
          "attention: {} is written, so its rows must not overlap; a stride is {}, and what it "
          "steps over takes {}",
          name, axis.stride, extent);
    extent += checked_product(axis.size - 1, axis.stride, name);
  }
}

template <class T>
std::string text(const View<T>& v, const char* length, const char* heads, const char* width) {
  return fmt::format("[B={}, {}={}, {}={}, {}={}]", v.batch, length, v.length, heads, v.heads,
                     width, v.width);
}

template <class T>
void check_view(std::string_view name, const View<T>& v) {
  check(v.batch >= 0 && v.length >= 0 && v.heads >= 0 && v.width >= 0,
        "attention: {} has a negative size: [{}, {}, {}, {}]", name, v.batch, v.length, v.heads,
        v.width);
  check(v.batch_stride >= 0 && v.length_stride >= 0 && v.head_stride >= 0,
        "attention: {} has a negative stride: {}, {}, {}", name, v.batch_stride, v.length_stride,
        v.head_stride);
  checked_product(
      checked_product(checked_product(v.batch, v.length, "attention"), v.heads, "attention"),
      v.width, "attention");
  const bool has_values = v.batch > 0 && v.length > 0 && v.heads > 0 && v.width > 0;
  check(!has_values || v.data != nullptr, "attention: {} has a shape but no data", name);
}

template <class T>
void check_like(std::string_view name, const View<T>& v, index B, index L, index H, index W) {
  check_view(name, v);
  check(v.batch == B && v.length == L && v.heads == H && v.width == W,
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
  check(v.batch == B && v.heads == H && v.length == L,
        "attention: {} must be [B={}, H={}, {}={}]; it is [{}, {}, {}]", name, B, H, length, L,
        v.batch, v.heads, v.length);
  check(v.batch_stride >= 0 && v.head_stride >= 0 && v.length_stride >= 0,
        "attention: {} has a negative stride: {}, {}, {}", name, v.batch_stride, v.head_stride,
        v.length_stride);
  check(B == 0 || H == 0 || L == 0 || v.data != nullptr, "attention: {} has a shape but no data",
        name);
}

void check_offsets(std::string_view name, Vec<const std::int32_t> offsets, index rows) {
  check(offsets.size >= 1, "attention: {} must hold at least one offset", name);
  check(offsets.data != nullptr, "attention: {} have a size but no data", name);
  check(offsets[0] == 0, "attention: {}[0] must be 0; it is {}", name, offsets[0]);
  for (index n = 1; n < offsets.size; ++n) {
    check(offsets[n] >= offsets[n - 1], "attention: {} must ascend; [{}] = {} follows {}", name, n,
          offsets[n], offsets[n - 1]);
  }
  const index last = offsets[offsets.size - 1];
  check(last <= rows, "attention: {} end at {}, beyond the {} rows there are", name, last, rows);
}

bool is_packed(const Packed& packed) {
  return !packed.query_offsets.empty() || !packed.key_offsets.empty();
}

template <class T>
void check_packed(const Attention<T>& attention, const AttentionInputs<T>& in) {
  const Packed& packed = attention.packed;
  check(in.q.batch == 1, "attention: packed sequences need B = 1; q is {}",
        text(in.q, "T", "H", "D"));
  check_offsets("query_offsets", packed.query_offsets, in.q.length);
  check_offsets("key_offsets", packed.key_offsets, in.k.length);
  check(packed.query_offsets.size == packed.key_offsets.size,
        "attention: query_offsets and key_offsets must name the same sequences; they are [{}] and "
        "[{}]",
        packed.query_offsets.size, packed.key_offsets.size);
  // Longer than any length: whatever cuts sequences shows.
  constexpr index kEndless = std::numeric_limits<index>::max() / 2;
  Sequence probe{.queries = kEndless, .keys = kEndless};
  attention.mask.limit(probe);
  check(probe.queries == kEndless && probe.keys == kEndless,
        "attention: give offsets or lengths, not both; the mask is {}", attention.mask.name());
}

void check_dropout(const Dropout& dropout, index sequences) {
  const double p = dropout.probability;
  if (!(p >= 0 && p < 1)) {
    fail(ErrorCode::kOptionValue, "attention: dropout must be in 0 <= p < 1; it is {}", p);
  }
  check(dropout.samples.empty() || dropout.samples.size == sequences,
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
    fail(ErrorCode::kOptionValue, "attention: {} needs softmax; the norm is {}", what,
         name_of(attention.norm));
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
  for (index h = 0; h < sink.logits.size; ++h) {
    const T logit = sink.logits[h];
    if (logit < std::numeric_limits<T>::infinity()) continue;
    fail(ErrorCode::kOptionValue, "attention: the sink of head {} must be finite or -inf; it is {}",
         h, logit);
  }
}

template <class T>
void check_score(const Attention<T>& attention, index H, index D) {
  const double scale = scale_of(attention.score, D);
  if (!std::isfinite(static_cast<T>(scale))) {
    fail(ErrorCode::kOptionValue, "attention: the scale must be finite; it is {}", scale);
  }
  if (const auto* concat = std::get_if<score::Concat<T>>(&attention.score)) {
    const auto& [w, dw, of_concat] = *concat;
    const auto fits = [&](const auto& rows) { return rows.rows == H && rows.columns == 2 * D; };
    check(fits(w), "attention: w of concat must be [H={}, 2 D={}]; it is [{}, {}]", H, 2 * D,
          w.rows, w.columns);
    check(H == 0 || w.data != nullptr, "attention: w of concat has a shape but no data");
    check(dw.data == nullptr || fits(dw),
          "attention: dw of concat must be [H={}, 2 D={}]; it is [{}, {}]", H, 2 * D, dw.rows,
          dw.columns);
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

// Softmax alone has a log-sum-exp.
template <class T>
void check_no_lse(const Attention<T>& attention, const T* lse, const T* lse_low) {
  const bool softmax = std::holds_alternative<norm::Softmax>(attention.norm);
  check(softmax || (lse == nullptr && lse_low == nullptr),
        "attention: {} has no log-sum-exp: leave lse and lse_low empty", name_of(attention.norm));
}

template <class T>
void check_parts(const Attention<T>& attention, const AttentionSizes& sizes) {
  const auto check_each = [&](const auto& family) {
    for (const auto& part : family.parts()) part->check_shape(sizes);
  };
  check_each(attention.mask);
  check_each(attention.bias);
  check_each(attention.values);
  check_each(attention.observe);
}

}  // namespace

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
  check(v.batch == B && v.heads == H && v.queries == L && v.keys == S,
        "attention: {} must be [B={}, H={}, {}, {}]; it is [{}, {}, {}, {}]", name, B, H, L, S,
        v.batch, v.heads, v.queries, v.keys);
  check(v.batch_stride >= 0 && v.head_stride >= 0 && v.query_stride >= 0,
        "attention: {} has a negative stride: {}, {}, {}", name, v.batch_stride, v.head_stride,
        v.query_stride);
  check(B == 0 || H == 0 || L == 0 || S == 0 || v.data != nullptr,
        "attention: {} has a shape but no data", name);
  check_apart(name, {{{B, v.batch_stride}, {H, v.head_stride}, {L, v.query_stride}}}, S);
}

template <class T>
void check_attention(const Attention<T>& attention, const AttentionInputs<T>& in) {
  const auto& [q, k, v] = in;
  check_view("q", q);
  check_view("k", k);
  check_view("v", v);
  check(q.width == k.width, "attention: q and k must have the same width D; q is {}, k is {}",
        text(q, "T", "H", "D"), text(k, "S", "G", "D"));
  check(q.batch == k.batch && k.batch == v.batch,
        "attention: q, k and v must have the same batch B; q is {}, k is {}, v is {}",
        text(q, "T", "H", "D"), text(k, "S", "G", "D"), text(v, "S", "G", "Dv"));
  check(k.length == v.length && k.heads == v.heads,
        "attention: k and v must have the same S and G; k is {}, v is {}", text(k, "S", "G", "D"),
        text(v, "S", "G", "Dv"));
  check(q.width >= 1 && v.width >= 1, "attention: D and Dv must be at least 1; q is {}, v is {}",
        text(q, "T", "H", "D"), text(v, "S", "G", "Dv"));
  check(q.heads == 0 || (k.heads >= 1 && k.heads <= q.heads),
        "attention: there must be 1 <= G <= H heads of k and v; q is {}, k is {}",
        text(q, "T", "H", "D"), text(k, "S", "G", "D"));
  checked_product(checked_product(q.length, k.length, "attention: T x S"), q.heads, "attention");
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
  const bool packed = is_packed(attention.packed);
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

template <class T>
std::vector<Sequence> make_sequences(const Attention<T>& attention, const AttentionInputs<T>& in) {
  const Packed& packed = attention.packed;
  const bool is = is_packed(packed);
  std::vector<Sequence> sequences(
      static_cast<std::size_t>(is ? packed.query_offsets.size - 1 : in.q.batch));
  index n = 0;
  for (Sequence& sequence : sequences) {
    sequence.number = n;
    if (is) {
      sequence.query_row = packed.query_offsets[n];
      sequence.key_row = packed.key_offsets[n];
      sequence.queries = packed.query_offsets[n + 1] - packed.query_offsets[n];
      sequence.keys = packed.key_offsets[n + 1] - packed.key_offsets[n];
    } else {
      sequence.batch = n;
      sequence.queries = in.q.length;
      sequence.keys = in.k.length;
    }
    attention.mask.limit(sequence);
    ++n;
  }
  return sequences;
}

DropoutRule dropout_rule(const Dropout& dropout) {
  const double scaled = dropout.probability * 65536.0, whole = std::floor(scaled);
  const double rest = std::min(std::floor((scaled - whole) * 4294967296.0), 4294967295.0);
  return {static_cast<std::uint32_t>(whole), static_cast<std::uint32_t>(rest),
          1.0 / (1.0 - dropout.probability)};
}

DropoutStream dropout_stream(const Dropout& dropout, const Sequence& sequence, index head) {
  const std::uint64_t sample = dropout.samples.empty() ? static_cast<std::uint64_t>(sequence.number)
                                                       : dropout.samples[sequence.number];
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  // Two rounds of Philox fold what names the stream, 256 bits, into the 128 that are left for it.
  const PhiloxCounter step = philox4x32({low(dropout.step), high(dropout.step), dropout.layer,
                                         static_cast<std::uint32_t>(RandomUse::kDropout)},
                                        {low(dropout.seed), high(dropout.seed)});
  const PhiloxCounter stream = philox4x32(
      {low(sample), high(sample), static_cast<std::uint32_t>(head), step[2]}, {step[0], step[1]});
  return {{stream[0], stream[1]}, {stream[2], stream[3]}};
}

std::uint32_t dropout_bits(const DropoutStream& stream, index i, index j) {
  const PhiloxCounter words =
      philox4x32({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j / 8),
                  stream.counter[0], stream.counter[1]},
                 {stream.key[0], stream.key[1]});
  return words[static_cast<std::size_t>(j % 8 / 2)] >> (j % 2 * 16) & 0xFFFFu;
}

bool drops_tie(const DropoutRule& rule, const DropoutStream& stream, index i, index j) {
  const PhiloxCounter words =
      philox4x32({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j), stream.counter[0],
                  ~stream.counter[1]},
                 {stream.key[0], stream.key[1]});
  return words[0] < rule.rest;
}

bool drops(const DropoutRule& rule, const DropoutStream& stream, index i, index j) {
  const std::uint32_t bits = dropout_bits(stream, i, j);
  return bits < rule.threshold || (bits == rule.threshold && drops_tie(rule, stream, i, j));
}

#define FOVEA_INSTANTIATE(T)                                                                 \
  template void check_attention(const Attention<T>&, const AttentionInputs<T>&);             \
  template void check_rows_written(std::string_view, const RowView<T>&, index, index, index, \
                                   const char*);                                             \
  template void check_outputs(const Attention<T>&, const AttentionInputs<T>&,                \
                              const AttentionOutputs<T>&);                                   \
  template void check_gradients(const Attention<T>&, const AttentionInputs<T>&,              \
                                const AttentionSaved<T>&, const AttentionGradients<T>&);     \
  template std::vector<Sequence> make_sequences(const Attention<T>&, const AttentionInputs<T>&);
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

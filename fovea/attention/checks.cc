// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "fovea/base/check.h"

namespace fovea::detail {

/// The sizes of a view as a message shows them. They become text only if it is needed: that of a
/// call would take longer than a tenth of a small attention.
struct ViewSizes {
  index batch, length, heads, width;
  const char* letters[3];
};

}  // namespace fovea::detail

template <>
struct fmt::formatter<fovea::detail::ViewSizes> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const fovea::detail::ViewSizes& v, Context& context) const {
    const auto& [length, heads, width] = v.letters;
    return fmt::format_to(context.out(), "[B={}, {}={}, {}={}, {}={}]", v.batch, length, v.length,
                          heads, v.heads, width, v.width);
  }
};

namespace fovea::detail {

namespace {

// A call keeps a few numbers for each row of tiles in each head. This limits them to some gigabytes
// and seconds, even for huge sizes with strides of 0.
constexpr double kMostRowsOfTiles = 1 << 26;
constexpr Hint kOffsets{
    "query_offsets run from 0 to T, key_offsets from 0 to S; sequence n is rows offsets[n] .. "
    "offsets[n+1]"};

template <class T>
ViewSizes text(const View<T>& v, const char* length, const char* heads, const char* width) {
  return {v.batch, v.length, v.heads, v.width, {length, heads, width}};
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
void check_packed(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in) {
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
  const auto check_each = [](const auto& family) {
    for (const auto& part : family.parts()) {
      check(part->takes_packed(),
            Hint{"keep sequences apart by a mask: ids(at.batch, at.i) == ids(at.batch, at.j)"},
            "attention: the part \"{}\" takes no packed sequences", part->name());
    }
  };
  check_each(attention.mask);
  check_each(attention.bias);
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
  check(dropout.samples.empty() || dropout.samples.data != nullptr, kNoData,
        "attention: dropout samples have a size but no data");
}

template <class T>
void check_norm(const Attention<T>& attention, index H) {
  const Sink<T>& sink = attention.sink;
  const bool softmax = needs_lse(attention.norm);
  const auto require = [&](bool fits, std::string_view what) {
    if (fits) return;
    fail(ErrorCode::kOptionValue, Hint{"leave it out, or use softmax as the norm"},
         "attention: {} needs softmax; the norm is {}", what, name_of(attention.norm));
  };
  require(softmax || sink.logits.empty(), "a sink");
  for (const auto& observer : attention.observe.parts()) {
    require(softmax || !observer->needs_softmax(), observer->name());
  }
  check(sink.logits.empty() || sink.logits.size == H, Hint{"give the sink a logit for each head"},
        "attention: the sink must be [H={}] or empty; it is [{}]", H, sink.logits.size);
  check(sink.dlogits.empty() || sink.dlogits.size == sink.logits.size,
        Hint{"give the gradient of the sink as many numbers as the sink has"},
        "attention: the gradient of the sink must be [{}], as the sink, or empty; it is [{}]",
        sink.logits.size, sink.dlogits.size);
  check(sink.logits.empty() || sink.logits.data != nullptr, kNoData,
        "attention: the sink has a size but no data");
  check(sink.dlogits.empty() || sink.dlogits.data != nullptr, kNoData,
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
  check(shape.H == 0 || w.data != nullptr, kNoData, "attention: {} has a shape but no data",
        shape.name);
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
  check(D % 2 == 0, Hint{"make D even, or leave the rotary positions out"},
        "attention: rotary positions turn pairs of columns: D must be even; it is {}", D);
  if (!(rotary.base > 0 && std::isfinite(rotary.base))) {
    fail(ErrorCode::kOptionValue, "attention: the base of rotary positions must be > 0; it is {}",
         rotary.base);
  }
  const auto pairs = static_cast<index>(rotary.divisors.size());
  check(pairs == 0 || pairs == D / 2,
        "attention: rotary positions have a divisor for each pair of columns: expected {}, got {}",
        D / 2, pairs);
  const auto is_positive = [](double x) { return x > 0 && std::isfinite(x); };
  if (!is_positive(rotary.amplitude) || !std::ranges::all_of(rotary.divisors, is_positive)) {
    fail(ErrorCode::kOptionValue,
         "attention: the amplitude and the divisors of rotary positions must be > 0 and finite");
  }
}

// Only softmax has a log-sum-exp.
template <class T>
void check_no_lse(const Attention<T>& attention, const void* lse, const void* lse_low) {
  const bool softmax = needs_lse(attention.norm);
  check(softmax || (lse == nullptr && lse_low == nullptr),
        Hint{"without softmax nothing needs lse, neither forward nor backward"},
        "attention: {} has no log-sum-exp: leave lse, lse_low and d_lse empty",
        name_of(attention.norm));
}

template <class T>
void check_parts(const Attention<T>& attention, const AttentionSizes& sizes) {
  const auto check_each = [](const auto& family, const AttentionSizes& of) {
    for (const auto& part : family.parts()) part->check_shape(of);
  };
  check_each(attention.mask, sizes);
  AttentionSizes made = sizes;
  made.D = made_width(attention.score, sizes.D);
  check_each(attention.bias, made);
  const auto& biases = attention.bias.parts();
  for (std::size_t n = 0; n < biases.size(); ++n) {
    const bool first = n == 0 && !is_pair_score(attention.score);
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
void check_countable(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in) {
  check(rows_of_tiles(attention, in) <= kMostRowsOfTiles, Hint{"cut the batch into several calls"},
        "attention: H x (B x (T + S) / {} + 2 x sequences) may be at most {}; q is {}, k is {}",
        kLaneTile, kMostRowsOfTiles, text(in.q, "T", "H", "D"), text(in.k, "S", "G", "D"));
}

// The inputs that forward and backward read.
template <class T>
void read_inputs(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in,
                 OverlapCheck& memory) {
  memory.read("q", in.q);
  memory.read("k", in.k);
  memory.read("v", in.v);
  if (const auto* concat = std::get_if<score::Concat<Wide<T>>>(&attention.score)) {
    memory.read("w of concat", concat->w);
  }
  if (const auto* additive = std::get_if<score::Additive<Wide<T>>>(&attention.score)) {
    memory.read("v of additive", additive->v);
  }
  memory.read("the sink", attention.sink.logits);
  memory.read("query_offsets", attention.packed.query_offsets);
  memory.read("key_offsets", attention.packed.key_offsets);
  memory.read("dropout samples", attention.dropout.samples);
  for (const auto& part : attention.mask.parts()) part->name_memory(memory);
  for (const auto& part : attention.bias.parts()) part->name_parameters(memory);
  for (const auto& part : attention.values.parts()) part->name_parameters(memory);
}

template <class T>
void write_gradients(const Attention<T>& attention, OverlapCheck& memory) {
  if (const auto* concat = std::get_if<score::Concat<T>>(&attention.score)) {
    memory.write("the gradient of w of concat", concat->dw);
  }
  if (const auto* additive = std::get_if<score::Additive<T>>(&attention.score)) {
    memory.write("the gradient of v of additive", additive->dv);
  }
  memory.write("the gradient of the sink", attention.sink.dlogits);
  for (const auto& part : attention.bias.parts()) part->name_gradients(memory);
  for (const auto& part : attention.values.parts()) part->name_gradients(memory);
}

}  // namespace

template <class T>
double rows_of_tiles(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in) {
  const auto size = [](index n) { return static_cast<double>(std::max<index>(n, 1)); };
  const double rows = static_cast<double>(in.q.length) + static_cast<double>(in.k.length);
  const double ends = 2 * size(std::max(in.q.batch, attention.packed.query_offsets.size));
  return size(in.q.heads) * (size(in.q.batch) * rows / kLaneTile + ends);
}

template <class T>
void check_attention(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in) {
  const auto& [q, k, v] = in;
  check_view("q", q);
  check_view("k", k);
  check_view("v", v);
  check(q.width == k.width, kShapesOfACall,
        "attention: q and k must have the same width D; q is {}, k is {}", text(q, "T", "H", "D"),
        text(k, "S", "G", "D"));
  check(q.batch == k.batch && k.batch == v.batch, kShapesOfACall,
        "attention: q, k and v must have the same batch B; q is {}, k is {}, v is {}",
        text(q, "T", "H", "D"), text(k, "S", "G", "D"), text(v, "S", "G", "Dv"));
  check(k.length == v.length && k.heads == v.heads, kShapesOfACall,
        "attention: k and v must have the same S and G; k is {}, v is {}", text(k, "S", "G", "D"),
        text(v, "S", "G", "Dv"));
  check(q.width >= 1 && v.width >= 1, kShapesOfACall,
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
void check_outputs(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in,
                   const AttentionOutputs<T>& out) {
  const auto& q = in.q;
  check_no_lse(attention, out.lse.data, out.lse_low.data);
  check_written("o", out.o, {q.batch, q.length, q.heads, in.v.width});
  if (!out.lse.empty()) check_rows_written("lse", out.lse, {q.batch, q.heads, q.length});
  if (!out.lse_low.empty())
    check_rows_written("lse_low", out.lse_low, {q.batch, q.heads, q.length});
  const auto& w = out.weights;
  if (!w.empty()) check_scores_written("weights", w, {q.batch, q.heads, q.length, in.k.length});
}

template <class T>
void check_gradients(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in,
                     const AttentionSaved<T>& saved, const AttentionGradients<T>& gradients) {
  const auto& [q, k, v] = in;
  check_no_lse(attention, saved.lse.data, saved.lse_low.data);
  check_like("o", saved.o, {q.batch, q.length, q.heads, v.width});
  check_like("the gradient of o", saved.d_o, {q.batch, q.length, q.heads, v.width});
  if (needs_lse(attention.norm)) {
    check_rows("lse", saved.lse, {q.batch, q.heads, q.length});
  }
  if (!saved.lse_low.empty()) check_rows("lse_low", saved.lse_low, {q.batch, q.heads, q.length});
  check_no_lse(attention, saved.d_lse.data, nullptr);
  if (!saved.d_lse.empty()) {
    check_rows("the gradient of lse", saved.d_lse, {q.batch, q.heads, q.length});
  }
  const auto& [dq, dk, dv] = gradients;
  if (!dq.empty()) check_written("dq", dq, {q.batch, q.length, q.heads, q.width});
  if (!dk.empty()) check_written("dk", dk, {k.batch, k.length, k.heads, k.width});
  if (!dv.empty()) check_written("dv", dv, {v.batch, v.length, v.heads, v.width});
}

template <class T>
void check_overlap(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in,
                   const AttentionOutputs<T>& out) {
  OverlapCheck memory;
  read_inputs(attention, in, memory);
  memory.write("o", out.o);
  memory.write("lse", out.lse);
  memory.write("lse_low", out.lse_low);
  memory.write("weights", out.weights);
  for (const auto& observer : attention.observe.parts()) observer->name_memory(memory);
}

template <class T>
void check_overlap(const Attention<Wide<T>>& attention, const AttentionInputs<T>& in,
                   const AttentionSaved<T>& saved, const AttentionGradients<T>& gradients) {
  OverlapCheck memory;
  read_inputs(attention, in, memory);
  memory.read("o", saved.o);
  memory.read("the gradient of o", saved.d_o);
  memory.read("lse", saved.lse);
  memory.read("lse_low", saved.lse_low);
  memory.read("the gradient of lse", saved.d_lse);
  memory.write("dq", gradients.dq);
  memory.write("dk", gradients.dk);
  memory.write("dv", gradients.dv);
  write_gradients(attention, memory);
}

#define FOVEA_INSTANTIATE(T)                                                             \
  template double rows_of_tiles(const Attention<Wide<T>>&, const AttentionInputs<T>&);   \
  template void check_attention(const Attention<Wide<T>>&, const AttentionInputs<T>&);   \
  template void check_outputs(const Attention<Wide<T>>&, const AttentionInputs<T>&,      \
                              const AttentionOutputs<T>&);                               \
  template void check_gradients(const Attention<Wide<T>>&, const AttentionInputs<T>&,    \
                                const AttentionSaved<T>&, const AttentionGradients<T>&); \
  template void check_overlap(const Attention<Wide<T>>&, const AttentionInputs<T>&,      \
                              const AttentionOutputs<T>&);                               \
  template void check_overlap(const Attention<Wide<T>>&, const AttentionInputs<T>&,      \
                              const AttentionSaved<T>&, const AttentionGradients<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
FOVEA_INSTANTIATE(BFloat16)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::detail

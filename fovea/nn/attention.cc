// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fovea/attention/bias/distance.h"
#include "fovea/attention/mask/band.h"
#include "fovea/attention/mask/sparse.h"
#include "fovea/attention/score/rotary.h"
#include "fovea/parts/part_table.h"

namespace fovea {

namespace {

// How many rows before its own a query sees; 0: all.
index reach_of(const MultiHeadAttentionOptions& o) { return o.window * o.dilation; }

Mask mask_of(const MultiHeadAttentionOptions& o) {
  Mask mask = o.mask;
  if (o.window > 0) mask = mask & mask::Window(reach_of(o), kOpen);
  if (o.dilation > 1) mask = mask & mask::Dilated(o.dilation);
  if (o.strided > 0) mask = mask & mask::Strided(o.strided);
  return mask;
}

constexpr index kMostColumns = index{1} << 40;  // of a projection, so that sums cannot overflow

Init init_of(PartStart start) {
  if (start == PartStart::kNormal) return Init::normal(kInitDeviation);
  return start == PartStart::kOnes ? Init::ones() : Init::zeros();
}

// A copy, in the tape's memory, of the rows that queries see.
template <class T>
Variable copy_of_rows(Tape& tape, const Tensor& from, Vec<const std::int32_t> ids) {
  const Rows<const T> all = from.rows<T>();
  const Variable copy = tape.result(ids.size, all.columns, kDTypeOf<T>);
  const Rows<T> to = copy.value<T>();
  for (index n = 0; n < ids.size; ++n) std::copy_n(all[ids[n]], all.columns, to[n]);
  return copy;
}

Tensor published_slopes(index heads, DType dtype) {
  return Tensor::of<double>({heads}, alibi_slopes<double>(heads)).to(dtype);
}

}  // namespace

MultiHeadAttentionOptions resolve(MultiHeadAttentionOptions o) {
  check(o.width > 0, "attention: the width must be positive; it is {}", o.width);
  check(o.heads > 0, "attention: heads must be positive; they are {}", o.heads);
  check(o.kv_heads >= 0 && o.head_dim >= 0 && o.value_dim >= 0 && o.context.value_or(1) > 0,
        "attention: sizes must not be negative; kv_heads is {}, head_dim {}, value_dim {}",
        o.kv_heads, o.head_dim, o.value_dim);
  if (o.kv_heads == 0) o.kv_heads = o.heads;
  check(o.heads % o.kv_heads == 0,
        Hint{"make heads a multiple of kv_heads: each of those serves a group of heads"},
        "attention: {} heads are no multiple of {} kv_heads", o.heads, o.kv_heads);
  if (o.head_dim == 0) {
    check(o.width % o.heads == 0,
          "attention: width {} is not divisible by {} heads; give head_dim to choose it freely",
          o.width, o.heads);
    o.head_dim = o.width / o.heads;
  }
  if (o.value_dim == 0) o.value_dim = o.head_dim;
  check(o.window >= 0, "attention: the window must not be negative; it is {}", o.window);
  check(o.dilation >= 1 && o.strided >= 0,
        "attention: dilation must be at least 1, strided at least 0; they are {}, {}", o.dilation,
        o.strided);
  return o;
}

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionOptions& options,
                                       const ParameterScope& scope)
    : options_(resolve(options)), dtype_(scope.dtype()), mask_(mask_of(options_)) {
  add_projections(scope);
  if (options_.qk_norm == QkNorm::kRms) {
    q_gain_ = &scope["q_norm"].add("weight", {options_.head_dim}, Init::ones(), Decay::kNo);
    k_gain_ = &scope["k_norm"].add("weight", {options_.head_dim}, Init::ones(), Decay::kNo);
  }
  for (const LayerPart& part : options_.parts) add_part(part, scope);
}

void MultiHeadAttention::add_projections(const ParameterScope& scope) {
  const auto& o = options_;
  const index q = checked_product(o.heads, o.head_dim, "heads x head_dim");
  const index kv = checked_product(o.kv_heads, o.head_dim + o.value_dim, "kv_heads x head_dim");
  check(q <= kMostColumns && kv <= kMostColumns, "attention: {} heads of {} are too many columns",
        o.heads, o.head_dim);
  const auto input = [&](index in, index out) {
    return LinearOptions{
        .in = in, .out = out, .bias = o.bias, .weight = o.input_init, .bias_start = o.bias_start};
  };
  if (o.context) {
    q_.emplace(input(o.width, q), scope["q"]);
    kv_.emplace(input(*o.context, kv), scope["kv"]);
  } else {
    qkv_.emplace(input(o.width, q + kv), scope["qkv"]);
  }
  if (o.output == OutputProjection::kLearned) {
    out_.emplace(LinearOptions{.in = o.heads * o.value_dim,
                               .out = o.width,
                               .bias = o.bias,
                               .weight = o.output_init,
                               .bias_start = o.bias_start},
                 scope["out"]);
  }
}

void MultiHeadAttention::add_part(const LayerPart& part, const ParameterScope& scope) {
  const auto& o = options_;
  const std::size_t number = part_number(part.tensor);
  const AttentionPart& row = attention_parts()[number];
  check(row.start != PartStart::kNone, "attention: a layer does not learn {}", part.tensor);
  constexpr index kAny = 0;
  const AttentionSizes sizes{kAny, kAny, kAny, o.heads, o.kv_heads, o.head_dim, o.value_dim};
  const Shape shape(part_shape(row, sizes, part.own_size));
  if (part.shared != nullptr) {
    const bool fits = scope.shapes_only() || part.shared->value.shape() == shape;
    check(fits, "attention: the shared {} is {}; expected {}", part.tensor,
          to_string(part.shared->value.shape()), to_string(shape));
    parts_.push_back({number, part.shared, {}});
    return;
  }
  Tensor start;
  if (row.start == PartStart::kSlopes) start = published_slopes(o.heads, dtype_);
  if (part.learning == LayerPart::Learning::kFixed) {
    check(start.defined(), "attention: {} has no values to be left at: let it be learned",
          part.tensor);
    parts_.push_back({number, nullptr, start});
    return;
  }
  Parameter& learned = scope.add(part.tensor, shape, init_of(row.start), Decay::kNo);
  if (start.defined() && !scope.shapes_only()) learned.value.copy_from(start);
  parts_.push_back({number, &learned, {}});
}

Variable MultiHeadAttention::first_step(Tape& tape, Variable x, const LinearUse& use) const {
  check(qkv_.has_value(), "attention: this is cross-attention, which needs a context");
  return qkv_->forward(tape, x, use);
}

Variable MultiHeadAttention::first_product(Tape& tape, Variable x) const {
  check(qkv_.has_value(), "attention: this is cross-attention, which needs a context");
  return qkv_->without_bias(tape, x);
}

index MultiHeadAttention::first_columns() const {
  const auto& o = options_;
  return o.heads * o.head_dim + o.kv_heads * (o.head_dim + o.value_dim);
}

QueryKeyValue MultiHeadAttention::split(Tape& tape, Variable stepped) const {
  const auto& o = options_;
  const std::array widths{o.heads * o.head_dim, o.kv_heads * o.head_dim, o.kv_heads * o.value_dim};
  const auto qkv = split_columns(tape, stepped, widths);
  return {normalise_queries(tape, qkv[0]), normalise_keys(tape, qkv[1]), qkv[2]};
}

Variable MultiHeadAttention::normalise_queries(Tape& tape, Variable q) const {
  return q_gain_ == nullptr ? q
                            : rms_norm_heads(tape, q, tape.parameter(*q_gain_), options_.heads,
                                             options_.qk_epsilon);
}

Variable MultiHeadAttention::normalise_keys(Tape& tape, Variable k) const {
  return k_gain_ == nullptr ? k
                            : rms_norm_heads(tape, k, tape.parameter(*k_gain_), options_.kv_heads,
                                             options_.qk_epsilon);
}

Variable MultiHeadAttention::forward(Tape& tape, Variable x, const PackedRows& rows,
                                     const DropoutKey& key, HeadStatistics* seen) const {
  // Normed queries and keys are read by the norm first.
  const bool rounds = q_gain_ == nullptr && reads_rounded(options_.variant);
  const auto reader = rounds ? ForReader::kProduct : ForReader::kAny;
  const LinearUse use{.reader = reader, .names = MaskNames{key, rows.rows}};
  return forward_from(tape, first_step(tape, x, use), rows, key, seen);
}

Variable MultiHeadAttention::forward_from(Tape& tape, Variable stepped, const PackedRows& rows,
                                          const DropoutKey& key, HeadStatistics* seen) const {
  const auto [q, k, v] = split(tape, stepped);
  AttentionOptions options = call_options(key);
  options.statistics = seen;
  return attend(tape, {q, k, v, rows, rows}, options);
}

namespace {

// The heads of the rows, turned as the operator turns them. It has no gradient.
Variable turned_heads(Tape& tape, Variable x, index heads, const Rotary& rotary) {
  const Variable y = tape.result(x.rows(), x.columns(), x.dtype());
  const index D = x.columns() / heads;
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const Context& context = tape.context();
    const Rows<const T> from = x.value<T>();
    const Rows<T> to = y.value<T>();
    const detail::RotaryTable<T> table(context, rotary, D, 0, std::max<index>(x.rows() - 1, 0));
    context.for_ranges(x.rows(), 6 * static_cast<double>(x.columns()), [&](index begin, index end) {
      for (index n = begin; n < end; ++n) {
        for (index h = 0; h < heads; ++h) table.turn(from[n] + h * D, n, to[n] + h * D);
      }
    });
  });
  return y;
}

}  // namespace

Variable MultiHeadAttention::forward(Tape& tape, Variable x, KvCache& cache) const {
  check(qkv_.has_value(), "attention: cross-attention has no sequence that goes on");
  check(tape.mode() == TapeMode::kInference, "attention: a cache has no gradient");
  auto [q, k, v] = split(tape, first_step(tape, x));
  AttentionOptions options = call_options({});
  if (AttentionVariant& variant = options.variant; variant.rotary != RotaryPairs::kNone) {
    // The cache holds keys that are turned, so each is turned once.
    const Rotary rotary{variant.rotary, variant.rotary_base, cache.tokens(),
                        options_.rotary_divisors, variant.rotary_amplitude};
    q = turned_heads(tape, q, options_.heads, rotary);
    k = turned_heads(tape, k, options_.kv_heads, rotary);
    variant.rotary = RotaryPairs::kNone;
  }
  cache.append(k, v);
  return attend(tape, {q, cache.keys(tape), cache.values(tape), {}, {}}, options);
}

Variable MultiHeadAttention::forward(Tape& tape, Variable x, const PackedRows& rows,
                                     Variable context, const PackedRows& context_rows,
                                     const DropoutKey& key) const {
  return forward(tape, x, rows, context_of(tape, context, context_rows), key);
}

AttentionContext MultiHeadAttention::context_of(Tape& tape, Variable context,
                                                const PackedRows& rows) const {
  check(kv_.has_value(), "attention: this is self-attention, which has no other context");
  const auto& o = options_;
  const std::array widths{o.kv_heads * o.head_dim, o.kv_heads * o.value_dim};
  const auto kv = split_columns(tape, kv_->forward(tape, context), widths);
  return {normalise_keys(tape, kv[0]), kv[1], rows};
}

Variable MultiHeadAttention::forward(Tape& tape, Variable x, const PackedRows& rows,
                                     const AttentionContext& context, const DropoutKey& key,
                                     HeadStatistics* seen) const {
  check(q_.has_value(), "attention: this is self-attention, which has no other context");
  AttentionOptions options = call_options(key);
  options.statistics = seen;
  const Variable q = normalise_queries(tape, q_->forward(tape, x));
  return attend(tape, {q, context.k, context.v, rows, context.rows}, options);
}

bool MultiHeadAttention::gathers_in_place() const {
  const AttentionVariant& v = options_.variant;
  return v.score == AttentionScoreKind::kDot && v.norm == AttentionNormKind::kSoftmax &&
         v.log_n_scale == 0 && v.softcap == 0 && v.rotary == RotaryPairs::kNone &&
         options_.window == 0 && options_.dilation == 1 && options_.strided == 0 && parts_.empty();
}

Variable MultiHeadAttention::gather_in_place(Tape& tape, Variable q,
                                             const GatheredContext& context) const {
  const auto& o = options_;
  const Variable y = tape.result(q.rows(), o.heads * o.value_dim, dtype_);
  with_type(dtype_, [&]<class T>(std::type_identity<T>) {
    gathered_attention<T>(
        tape.context(),
        {.q = q.value<T>(),
         .k = context.k.rows<T>(),
         .v = context.v.rows<T>(),
         .heads = o.heads,
         .kv_heads = o.kv_heads,
         .scale = o.variant.scale.value_or(1 / std::sqrt(static_cast<double>(o.head_dim))),
         .rows = context.rows},
        y.value<T>());
  });
  return out_ ? out_->forward(tape, y) : y;
}

// Parts see keys as a sequence: each query gets one of its own.
Variable MultiHeadAttention::gather_copies(Tape& tape, Variable q,
                                           const GatheredContext& context) const {
  const index N = q.rows();
  auto* const offsets = tape.saved<std::int32_t>(N + 1);
  for (index n = 0; n <= N; ++n) offsets[n] = static_cast<std::int32_t>(n);
  AttentionOperands in;
  in.q = q;
  with_type(dtype_, [&]<class T>(std::type_identity<T>) {
    in.k = copy_of_rows<T>(tape, context.k, context.rows.ids);
    in.v = copy_of_rows<T>(tape, context.v, context.rows.ids);
  });
  in.queries.offsets = {offsets, N + 1};
  in.keys.offsets = context.rows.offsets;
  return attend(tape, in, call_options({}));
}

Variable MultiHeadAttention::attend_gathered(Tape& tape, Variable q,
                                             const GatheredContext& context) const {
  check(tape.mode() == TapeMode::kInference, "attention: decoding has no gradient");
  return gathers_in_place() ? gather_in_place(tape, q, context) : gather_copies(tape, q, context);
}

Variable MultiHeadAttention::forward_gathered(Tape& tape, Variable x,
                                              const GatheredContext& context) const {
  check(q_.has_value(), "attention: this is self-attention, which has no other context");
  return attend_gathered(tape, normalise_queries(tape, q_->forward(tape, x)), context);
}

KvCacheOptions MultiHeadAttention::cache_options(index capacity) const {
  return {capacity, options_.kv_heads * options_.head_dim, options_.kv_heads * options_.value_dim,
          dtype_, reach_of(options_)};
}

AttentionOptions MultiHeadAttention::call_options(const DropoutKey& key) const {
  AttentionOptions options{.heads = options_.heads,
                           .kv_heads = options_.kv_heads,
                           .variant = options_.variant,
                           .mask = &mask_,
                           .dropout = {options_.dropout, key}};
  const std::vector<double>& divisors = options_.rotary_divisors;
  options.variant.rotary_divisors = {divisors.data(), std::ssize(divisors)};
  return options;
}

Variable MultiHeadAttention::attend(Tape& tape, AttentionOperands operands,
                                    AttentionOptions options) const {
  for (const PartTensor& part : parts_) {
    Variable& operand = operands.parts[part.number];
    if (part.learned != nullptr) {
      operand = tape.parameter(*part.learned);
    } else {
      with_type(dtype_, [&]<class T>(std::type_identity<T>) {
        operand = tape.constant(part.fixed.template rows<T>());
      });
    }
  }
  if (out_) options.reader = ForReader::kProduct;
  const Variable y = attention(tape, operands, options);
  return out_ ? out_->forward(tape, y,
                              {.names = MaskNames{options.dropout.key, operands.queries.rows}})
              : y;
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/block.h"

#include <algorithm>

namespace fovea {

AttentionBlock::AttentionBlock(const MultiHeadAttentionOptions& attention,
                               const ResidualOptions& residual, const ParameterScope& scope)
    : attention_(attention, scope["attention"]), residual_(residual, scope["attention_norm"]) {}

Variable AttentionBlock::forward(Tape& tape, Variable x, const PackedRows& rows,
                                 const DropoutKey& key, HeadStatistics* seen) const {
  return residual_.forward(tape, x, rows, key_of(key, BlockMask::kAttention), [&](Variable y) {
    return attention_.forward(tape, y, rows, key_of(key, BlockMask::kWeights), seen);
  });
}

Variable AttentionBlock::forward(Tape& tape, Variable x, KvCache& cache) const {
  return residual_.forward(tape, x, {}, {},
                           [&](Variable y) { return attention_.forward(tape, y, cache); });
}

namespace {

std::variant<FeedForward, Experts> feed_forward_of(const BlockOptions& options,
                                                   const ParameterScope& scope) {
  if (options.experts) return Experts(*options.experts, scope);
  return FeedForward(options.feed_forward, scope);
}

}  // namespace

Block::Block(const BlockOptions& options, const ParameterScope& scope)
    : attention_(options.attention, options.residual, scope),
      feed_forward_(feed_forward_of(options, scope["feed_forward"])),
      residual_(options.residual, scope["feed_forward_norm"]) {}

Variable Block::forward(Tape& tape, Variable x, const PackedRows& rows, const DropoutKey& key,
                        HeadStatistics* seen) const {
  return feed_forward(tape, attention_.forward(tape, x, rows, key, seen), rows, key);
}

Variable Block::forward(Tape& tape, Variable x, KvCache& cache) const {
  return feed_forward(tape, attention_.forward(tape, x, cache), {}, {});
}

std::unique_ptr<LayerSession> Block::begin(index capacity) const {
  return std::make_unique<CachingSession<Block>>(*this, attention().cache_options(capacity));
}

Variable Block::feed_forward(Tape& tape, Variable x, const PackedRows& rows,
                             const DropoutKey& key) const {
  return residual_.forward(tape, x, rows, key_of(key, BlockMask::kFeedForward), [&](Variable y) {
    if (const auto* const experts = std::get_if<Experts>(&feed_forward_)) {
      return experts->forward(tape, y);
    }
    return std::get<FeedForward>(feed_forward_).forward(tape, y, {key, rows.rows});
  });
}

namespace {

// Puts the rows of x into those of the table.
void put(Tensor& table, Vec<const std::int32_t> places, Variable x) {
  with_type(table.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<T> from = x.value<T>(), to = table.rows<T>();
    for (index n = 0; n < from.rows; ++n) std::copy_n(from[n], from.columns, to[places[n]]);
  });
}

}  // namespace

DecoderBlock::DecoderBlock(const DecoderBlockOptions& o, const ParameterScope& scope)
    : attention_(o.attention, o.residual, scope),
      cross_(o.cross, scope["cross"]),
      cross_residual_(o.residual, scope["cross_norm"]),
      feed_forward_(o.feed_forward, scope["feed_forward"]),
      residual_(o.residual, scope["feed_forward_norm"]) {}

// The masks of attention to the source have the numbers of the next layer.
Variable DecoderBlock::forward(Tape& tape, Variable x, const AttentionContext& source,
                               const DecoderCall& call) const {
  check(call.seen.empty() || call.seen.size() == 2, "decoder: {} statistics for 2 attentions",
        call.seen.size());
  const PackedRows& rows = call.rows;
  HeadStatistics* const seen = call.seen.data();
  DropoutKey next = call.key;
  ++next.layer;
  x = attention_.forward(tape, x, rows, call.key, seen);
  x = cross_residual_.forward(tape, x, rows, key_of(next, BlockMask::kAttention), [&](Variable y) {
    return cross_.forward(tape, y, rows, source, key_of(next, BlockMask::kWeights),
                          seen == nullptr ? nullptr : seen + 1);
  });
  return residual_.forward(tape, x, rows, key_of(call.key, BlockMask::kFeedForward),
                           [&](Variable y) { return feed_forward_.forward(tape, y); });
}

Variable DecoderBlock::step(Tape& tape, Variable x, const DecoderStep& step) const {
  x = attention_.residual().forward(tape, x, {}, {}, [&](Variable y) {
    const auto [q, k, v] = attention().project(tape, y);
    put(step.keys, step.places, k);
    put(step.values, step.places, v);
    return attention().attend_gathered(tape, q, {step.keys, step.values, step.seen});
  });
  x = cross_residual_.forward(
      tape, x, {}, {}, [&](Variable y) { return cross_.forward_gathered(tape, y, step.source); });
  return residual_.forward(tape, x, {}, {},
                           [&](Variable y) { return feed_forward_.forward(tape, y); });
}

}  // namespace fovea

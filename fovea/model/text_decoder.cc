// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/text_decoder.h"

#include "fovea/model/encoder_sizes.h"
#include "fovea/model/layer_options.h"
#include "fovea/model/text_decoding.h"

namespace fovea {

namespace {

// Dropout masks of the decoder have numbers that no layer of an encoder has.
constexpr auto kFirstLayer = static_cast<std::uint32_t>(kMostLayers);
constexpr std::uint32_t kLayersOfBlock = 2;

// Attention to the source knows no positions, and sees all of it.
EncoderConfig cross_config(EncoderConfig c) {
  c.position = PositionKind::kNone;
  c.sight = Sight::kWhole;
  return c;
}

// A block has three residual sums, a layer of an encoder two.
index depth_of(index layers) { return (3 * layers + 1) / 2; }

DecoderBlockOptions block_options(const EncoderConfig& c, const TextDecoderOptions& options) {
  // Positions that are added to embeddings are none of a layer.
  EncoderConfig layer = c;
  if (adds_position_rows(c.position)) layer.position = PositionKind::kNone;
  EncoderLayerSpec spec;
  spec.window = 0;
  const index depth = depth_of(options.layers);
  DecoderBlockOptions o{.attention = attention_options(layer, spec, depth),
                        .cross = attention_options(cross_config(c), spec, depth),
                        .feed_forward = feed_forward_options(c, depth),
                        .residual = residual_options(c, c.width)};
  o.cross.context = options.source_width;
  return o;
}

EmbeddingOptions shared_embedding(const EncoderConfig& c, Parameter* tokens) {
  EmbeddingOptions o = embedding_options(c);
  o.shared = tokens;
  return o;
}

}  // namespace

TextDecoder::TextDecoder(const EncoderConfig& c, const TextDecoderOptions& options,
                         const ParameterScope& scope)
    : dropout_(c.dropout), embedding_(shared_embedding(c, options.tokens), scope["embedding"]) {
  const DecoderBlockOptions block = block_options(c, options);
  const ParameterScope blocks = scope["blocks"];
  blocks_.reserve(static_cast<std::size_t>(options.layers));
  for (index n = 0; n < options.layers; ++n) blocks_.emplace_back(block, blocks[n]);
  if (c.norm_position == NormPosition::kPre) norm_.emplace(norm_options(c, c.width), scope["norm"]);
}

Variable TextDecoder::forward(Tape& tape, Vec<const std::int32_t> ids, const SourceRows& source,
                              const TargetCall& call) const {
  check(call.seen.empty() || static_cast<index>(call.seen.size()) == attentions(),
        "decoder: {} statistics for {} attentions", call.seen.size(), attentions());
  DropoutKey key{call.key.seed, call.key.step, kFirstLayer};
  Variable x = embedding_.forward(tape, ids, call.rows);
  x = dropout(tape, x, {dropout_, {key.seed, key.step, 4 * kFirstLayer}}, call.rows);
  std::size_t n = 0;
  for (const DecoderBlock& block : blocks_) {
    const AttentionContext context = block.context_of(tape, source.rows, source.sentences);
    x = block.forward(tape, x, context,
                      {call.rows, key, call.seen.empty() ? call.seen : call.seen.subspan(n, 2)});
    n += 2;
    key.layer += kLayersOfBlock;
  }
  return finish(tape, x);
}

std::unique_ptr<Decoding> TextDecoder::decoding() const {
  return std::make_unique<TextDecoding>(*this);
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/target_decoder.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/model/layer_table.h"

namespace fovea {

namespace {

// Dropout masks of the decoder have numbers that no layer of an encoder has.
constexpr auto kFirstLayer = static_cast<std::uint32_t>(kMostLayers);
constexpr std::uint32_t kLayersOfBlock = 2;
constexpr std::uint32_t kInputMask = 4 * kFirstLayer;
constexpr std::uint32_t kOutputMask = kInputMask + 1;

EmbeddingOptions shared_embedding(const EncoderConfig& c, Parameter* tokens) {
  EmbeddingOptions o = embedding_options(c);
  o.shared = tokens;
  return o;
}

Variable on_tape(Tape& tape, const Tensor& kept) {
  Variable x;
  with_type(kept.dtype(),
            [&]<class T>(std::type_identity<T>) { x = tape.input<T>(kept.rows<T>()); });
  return x;
}

Variable rows_of(Tape& tape, Variable x, const std::vector<std::int32_t>& ids) {
  return embedding(tape, {.table = x, .ids = {ids.data(), static_cast<index>(ids.size())}});
}

PackedRows packed(const std::vector<std::int32_t>& offsets) {
  PackedRows rows;
  rows.offsets = {offsets.data(), static_cast<index>(offsets.size())};
  return rows;
}

// States lie sentence by sentence, as the operator wants its queries, whatever the order of the
// hypotheses.
class RecurrentDecoding final : public Decoding {
 public:
  explicit RecurrentDecoding(const RecurrentDecoder& decoder) : decoder_(decoder) {}

  void begin(Tape& tape, const SourceRows& source) override {
    const AttentiveGru::Source read = decoder_.gru().read(tape, source.rows, source.sentences);
    keys_ = copy_of(read.keys);
    rows_ = copy_of(read.rows);
    states_ = copy_of(decoder_.gru().start(tape, read));
    source_offsets_.assign(source.sentences.offsets.begin(), source.sentences.offsets.end());
    sentences_.resize(static_cast<std::size_t>(source.sentences.count()));
    std::iota(sentences_.begin(), sentences_.end(), 0);
    state_of_ = sentences_;
  }

  Variable step(Tape& tape, std::span<const index> parents, Vec<const std::int32_t> ids) override {
    check(static_cast<index>(parents.size()) == ids.size, "decoding: {} parents for {} tokens",
          parents.size(), ids.size);
    choose(parents, ids);
    const Variable state = rows_of(tape, on_tape(tape, states_), from_);
    const PackedRows queries = packed(offsets_);
    const Variable y = decoder_.embed(tape, {ids_.data(), ids.size}, queries);
    const AttentiveGru::Source source{on_tape(tape, keys_), on_tape(tape, rows_),
                                      packed(source_offsets_)};
    const AttentiveGru::Step made = decoder_.gru().step(tape, y, state, source, queries);
    states_ = copy_of(made.state);
    return rows_of(tape, made.out, state_of_);
  }

 private:
  // The hypotheses of this step, and where their states and rows lie.
  void choose(std::span<const index> parents, Vec<const std::int32_t> ids) {
    std::vector<std::int32_t> sentences, order(parents.size());
    for (const index parent : parents) {
      check(parent >= 0 && parent < static_cast<index>(sentences_.size()),
            "hypotheses: there is no {} of {}", parent, sentences_.size());
      sentences.push_back(sentences_[static_cast<std::size_t>(parent)]);
    }
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return sentences[static_cast<std::size_t>(a)] < sentences[static_cast<std::size_t>(b)];
    });
    std::vector<std::int32_t> state_of(parents.size());
    from_.clear();
    ids_.clear();
    offsets_.assign(source_offsets_.size(), 0);
    for (const std::int32_t i : order) {
      const auto n = static_cast<std::size_t>(i);
      state_of[n] = static_cast<std::int32_t>(from_.size());
      from_.push_back(state_of_[static_cast<std::size_t>(parents[n])]);
      ids_.push_back(ids[i]);
      ++offsets_[static_cast<std::size_t>(sentences[n]) + 1];
    }
    std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
    sentences_ = std::move(sentences);
    state_of_ = std::move(state_of);
  }

  const RecurrentDecoder& decoder_;
  Tensor keys_, rows_;  // of the source
  std::vector<std::int32_t> source_offsets_;
  Tensor states_;                                   // [N, H]
  std::vector<std::int32_t> sentences_, state_of_;  // of each hypothesis: where its state lies
  // The hypotheses of a step, in the order of the states.
  std::vector<std::int32_t> from_, ids_, offsets_;
};

// Attention to the source knows no positions, and sees all of it.
EncoderConfig cross_config(EncoderConfig c) {
  c.position = PositionKind::kNone;
  c.sight = Sight::kWhole;
  return c;
}

// A block has three residual sums, a layer of an encoder two.
index depth_of(index layers) { return (3 * layers + 1) / 2; }

DecoderBlockOptions block_options(const EncoderConfig& c, const TextDecoderOptions& options,
                                  Parameter* distances) {
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
  share_distances(o.attention, distances);
  return o;
}

// A table with more rows, of which the first are those of `table`.
Tensor grown(const Tensor& table, index rows, index columns, DType dtype) {
  Tensor larger = Tensor::empty({rows, columns}, dtype);
  if (!table.defined()) return larger;
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    std::copy_n(table.data<T>(), table.size(), larger.data<T>());
  });
  return larger;
}

}  // namespace

void RowPool::begin(index count) {
  paths_.assign(static_cast<std::size_t>(count), {});
  free_.clear();
  for (index row = room_; row > 0; --row) free_.push_back(static_cast<std::int32_t>(row - 1));
}

// The rows of paths that have gone are found only when others are needed.
void RowPool::find_free() {
  std::vector<bool> used(static_cast<std::size_t>(room_));
  for (const auto& path : paths_) {
    for (const std::int32_t row : path) used[static_cast<std::size_t>(row)] = true;
  }
  free_.clear();
  for (index row = room_; row > 0; --row) {
    if (!used[static_cast<std::size_t>(row - 1)]) {
      free_.push_back(static_cast<std::int32_t>(row - 1));
    }
  }
}

std::span<const std::int32_t> RowPool::extend(std::span<const index> parents) {
  std::vector<std::vector<std::int32_t>> next(parents.size());
  std::vector<index> children(paths_.size());
  for (const index parent : parents) {
    check(parent >= 0 && parent < size(), "hypotheses: there is no {} of {}", parent, size());
    ++children[static_cast<std::size_t>(parent)];
  }
  for (std::size_t i = 0; i < parents.size(); ++i) {
    const auto parent = static_cast<std::size_t>(parents[i]);
    // The last child has its parent's path itself.
    next[i] = --children[parent] == 0 ? std::move(paths_[parent]) : paths_[parent];
  }
  paths_ = std::move(next);
  if (free_.size() < parents.size()) find_free();
  const auto needed = static_cast<index>(parents.size()) - static_cast<index>(free_.size());
  if (needed > 0) {
    // Twice as many, so that tables grow seldom.
    const index room = std::max(2 * room_, room_ + needed);
    std::vector<std::int32_t> more;
    for (index row = room; row > room_; --row) more.push_back(static_cast<std::int32_t>(row - 1));
    free_.insert(free_.begin(), more.begin(), more.end());
    room_ = room;
  }
  newest_.clear();
  for (auto& path : paths_) {
    newest_.push_back(free_.back());
    path.push_back(free_.back());
    free_.pop_back();
  }
  return newest_;
}

RecurrentDecoder::RecurrentDecoder(const EncoderConfig& c, index source_width, Parameter* tokens,
                                   const ParameterScope& scope)
    : dropout_(c.dropout),
      embedding_(shared_embedding(c, tokens), scope["embedding"]),
      gru_({.in = c.width,
            .source = source_width,
            .hidden = c.width,
            .out = c.width,
            .bias = biases(c)},
           scope["gru"]) {}

Variable RecurrentDecoder::forward(Tape& tape, Vec<const std::int32_t> ids,
                                   const SourceRows& source, const TargetCall& call) const {
  check(call.seen.empty() || call.seen.size() == 1, "decoder: {} statistics for one attention",
        call.seen.size());
  const auto drop = [&](Variable x, std::uint32_t mask) {
    return dropout(tape, x, {dropout_, {call.key.seed, call.key.step, mask}}, call.rows);
  };
  const Variable y = drop(embedding_.forward(tape, ids, call.rows), kInputMask);
  const Variable out =
      gru_.forward(tape, y, call.rows, gru_.read(tape, source.rows, source.sentences),
                   call.seen.empty() ? nullptr : call.seen.data());
  return drop(out, kOutputMask);
}

std::unique_ptr<Decoding> RecurrentDecoder::decoding() const {
  return std::make_unique<RecurrentDecoding>(*this);
}

TextDecoder::TextDecoder(const EncoderConfig& c, const TextDecoderOptions& options,
                         const ParameterScope& scope)
    : dropout_(c.dropout), embedding_(shared_embedding(c, options.tokens), scope["embedding"]) {
  const DecoderBlockOptions block = block_options(c, options, shared_distances(c, scope));
  const ParameterScope blocks = scope["blocks"];
  blocks_.reserve(static_cast<std::size_t>(options.layers));
  for (index n = 0; n < options.layers; ++n) blocks_.emplace_back(block, blocks[n]);
  if (c.norm_position != NormPosition::kPost)
    norm_.emplace(norm_options(c, c.width), scope["norm"]);
}

Variable TextDecoder::forward(Tape& tape, Vec<const std::int32_t> ids, const SourceRows& source,
                              const TargetCall& call) const {
  check(call.seen.empty() || static_cast<index>(call.seen.size()) == attentions(),
        "decoder: {} statistics for {} attentions", call.seen.size(), attentions());
  DropoutKey key{call.key.seed, call.key.step, kFirstLayer};
  Variable x = embedding_.forward(tape, ids, call.rows);
  x = dropout(tape, x, {dropout_, {key.seed, key.step, kInputMask}}, call.rows);
  std::size_t n = 0;
  for (const DecoderBlock& block : blocks_) {
    const auto seen = call.seen.empty() ? call.seen : call.seen.subspan(n, 2);
    const auto f = [&block, x, source, rows = call.rows, key, seen](Tape& t, Pass pass) {
      const AttentionContext context = block.context_of(t, source.rows, source.sentences);
      const bool counts = pass == Pass::kFirst;
      return block.forward(t, x, context, {rows, key, counts ? seen : std::span<HeadStatistics>()});
    };
    x = tape.recompute({x, source.rows}, x.columns(), f);
    n += 2;
    key.layer += kLayersOfBlock;
  }
  return finish(tape, x);
}

std::unique_ptr<Decoding> TextDecoder::decoding() const {
  return std::make_unique<TextDecoding>(*this);
}

void TextDecoding::begin(Tape& tape, const SourceRows& source) {
  const PackedRows& sentences = source.sentences;
  layers_.resize(decoder_.blocks().size());
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    const AttentionContext context = decoder_.blocks()[n].context_of(tape, source.rows, sentences);
    layers_[n].source_keys = copy_of(context.k);
    layers_[n].source_values = copy_of(context.v);
  }
  source_offsets_.assign(sentences.offsets.begin(), sentences.offsets.end());
  pool_.begin(sentences.count());
  sentences_.resize(static_cast<std::size_t>(sentences.count()));
  std::iota(sentences_.begin(), sentences_.end(), index{0});
}

void TextDecoding::make_room() {
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    Layer& layer = layers_[n];
    if (layer.keys.defined() && layer.keys.shape()[0] >= pool_.room()) continue;
    const MultiHeadAttentionOptions& o = decoder_.blocks()[n].attention().options();
    const DType dtype = layer.source_keys.dtype();
    Tensor keys = grown(layer.keys, pool_.room(), o.kv_heads * o.head_dim, dtype);
    layer.values = grown(layer.values, pool_.room(), o.kv_heads * o.value_dim, dtype);
    layer.keys = std::move(keys);  // last: if there is no memory for values, both are as they were
  }
}

// Chooses the rows that each hypothesis attends to from now on.
void TextDecoding::choose(std::span<const index> parents) {
  std::vector<index> sentences;
  for (const index parent : parents) {
    sentences.push_back(sentences_[static_cast<std::size_t>(parent)]);
  }
  sentences_ = std::move(sentences);
  ids_.clear();
  source_ids_.clear();
  offsets_.assign(1, 0);
  source_id_offsets_.assign(1, 0);
  for (index i = 0; i < size(); ++i) {
    const auto path = pool_.path(i);
    ids_.insert(ids_.end(), path.begin(), path.end());
    offsets_.push_back(static_cast<std::int32_t>(ids_.size()));
    const auto s = static_cast<std::size_t>(sentence(i));
    for (auto row = source_offsets_[s]; row < source_offsets_[s + 1]; ++row) {
      source_ids_.push_back(row);
    }
    source_id_offsets_.push_back(static_cast<std::int32_t>(source_ids_.size()));
  }
}

// Each hypothesis is a sequence, whose newest row stands at the end of its path.
PackedRows TextDecoding::lay_out(Tape& tape) const {
  auto* const positions = tape.saved<std::int32_t>(size());
  for (index i = 0; i < size(); ++i) {
    positions[i] = static_cast<std::int32_t>(pool_.path(i).size()) - 1;
  }
  PackedRows rows;
  rows.positions = {positions, size()};
  return rows;
}

Variable TextDecoding::step(Tape& tape, std::span<const index> parents,
                            Vec<const std::int32_t> ids) {
  check(static_cast<index>(parents.size()) == ids.size, "decoding: {} parents for {} tokens",
        parents.size(), ids.size);
  const std::span<const std::int32_t> places = pool_.extend(parents);
  choose(parents);
  make_room();
  Variable x = decoder_.embed(tape, ids, lay_out(tape));
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    Layer& layer = layers_[n];
    const GatheredContext source{
        layer.source_keys, layer.source_values, {source_ids_, source_id_offsets_}};
    x = decoder_.blocks()[n].step(tape, x,
                                  {.keys = layer.keys,
                                   .values = layer.values,
                                   .places = {places.data(), static_cast<index>(places.size())},
                                   .seen = {ids_, offsets_},
                                   .source = source});
  }
  return decoder_.finish(tape, x);
}

}  // namespace fovea

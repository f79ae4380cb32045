// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/text_decoding.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fovea {

namespace {

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

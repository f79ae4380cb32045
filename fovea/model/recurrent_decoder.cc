// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/recurrent_decoder.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "fovea/model/encoder_sizes.h"
#include "fovea/model/layer_options.h"

namespace fovea {

namespace {

// Dropout masks of the decoder have numbers that no layer of an encoder has.
constexpr auto kInputMask = static_cast<std::uint32_t>(4 * kMostLayers);
constexpr std::uint32_t kOutputMask = kInputMask + 1;

EmbeddingOptions table_options(const EncoderConfig& c, Parameter* tokens) {
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

}  // namespace

RecurrentDecoder::RecurrentDecoder(const EncoderConfig& c, index source_width, Parameter* tokens,
                                   const ParameterScope& scope)
    : dropout_(c.dropout),
      embedding_(table_options(c, tokens), scope["embedding"]),
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

}  // namespace fovea

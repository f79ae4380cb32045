// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/text_encoder.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "fovea/base/memory.h"
#include "fovea/model/layer_table.h"

namespace fovea {

namespace {

// Rows of a token table that are computed at once; few, so that they take little memory.
constexpr index kTableRows = 4096;

// Cells one above the other are one object, with one residual sum whatever their number.
index objects_of(const EncoderLayerSpec& spec) { return spec.kind->in_one ? 1 : spec.layers; }

// How many layers of a Transformer, of two residual sums each, have as many sums as all layers.
index depth_of(const std::vector<SizedStage>& stages) {
  index sums = 0;
  for (const SizedStage& stage : stages) {
    for (const SizedLayer& layer : stage.branches) {
      if (!*layer.spec.residual) continue;
      sums += objects_of(layer.spec) * (layer.spec.kind->sum == LayerSum::kInside ? 2 : 1);
    }
  }
  return std::max<index>(1, (sums + 1) / 2);
}

class EncoderBuilder {
 public:
  using NextScope = std::function<ParameterScope()>;

  EncoderBuilder(const EncoderConfig& config, index depth, Parameter* distances)
      : config_(config), depth_(depth), distances_(distances) {}

  EncoderStageLayers stage(const SizedStage& stage, const NextScope& next_scope) const {
    EncoderStageLayers layers;
    if (stage.branches.size() == 1) {
      layers.branches.push_back(branch(stage.branches[0], next_scope));
      return layers;
    }
    const ParameterScope scope = next_scope();
    index number = 0, columns = 0;
    for (const SizedLayer& one : stage.branches) {
      layers.branches.push_back(branch(one, [&] { return scope[number++]; }));
      columns += one.out;
    }
    layers.join.emplace(LinearOptions{.in = columns,
                                      .out = stage.out,
                                      .bias = biases(config_),
                                      .weight = matrix_init(config_, columns, stage.out),
                                      .bias_start = bias_start(config_)},
                        scope["join"]);
    return layers;
  }

 private:
  std::unique_ptr<EncoderLayer> layer(const SizedLayer& one, const ParameterScope& scope) const {
    const EncoderConfig c = config_of_layer(config_, one);
    const ResidualIf residual =
        *one.spec.residual ? ResidualIf(residual_options(c, one.in)) : std::nullopt;
    std::unique_ptr<EncoderLayer> made =
        one.spec.kind->make({c, one.spec, depth_, residual, distances_}, scope);
    return one.spec.joints ? layer_across(std::move(made)) : std::move(made);
  }

  // The layers of a branch, one after another.
  EncoderBranch branch(SizedLayer one, const NextScope& next_scope) const {
    EncoderBranch result;
    for (index n = objects_of(one.spec); n > 0; --n) {
      result.push_back(layer(one, next_scope()));
      one.in = one.out;
    }
    return result;
  }

  const EncoderConfig& config_;
  index depth_;
  Parameter* distances_;  // that all layers share, or null
};

Encoder make_encoder(const EncoderConfig& c, const std::vector<SizedStage>& stages,
                     const ParameterScope& scope, std::string_view layers) {
  const EncoderBuilder builder(c, depth_of(stages), shared_distances(c, scope));
  const ParameterScope numbered = scope[layers];
  Encoder encoder;
  index number = 0;
  for (const SizedStage& stage : stages) {
    encoder.add(builder.stage(stage, [&] { return numbered[number++]; }));
  }
  return encoder;
}

}  // namespace

// A hash table of places, by open addressing: it needs no room for the whole vocabulary.
DistinctIds distinct_ids(Tape& tape, Vec<const std::int32_t> ids) {
  constexpr std::int32_t kFree = -1;
  constexpr std::uint32_t kFactor = 2654435769;  // 2^32 / the golden ratio: spreads neighbours
  const auto N = static_cast<std::size_t>(ids.size);
  const std::size_t slots = std::bit_ceil(2 * N + 2);
  const int unused_bits = 32 - std::countr_zero(slots);
  Scratch scratch;
  auto* const place_in = scratch.allocate<std::int32_t>(static_cast<index>(slots));
  std::fill_n(place_in, slots, kFree);
  auto* const kept = tape.saved<std::int32_t>(ids.size);
  auto* const places = tape.saved<std::int32_t>(ids.size);
  std::int32_t count = 0;
  for (index n = 0; n < ids.size; ++n) {
    std::size_t slot = (static_cast<std::uint32_t>(ids[n]) * kFactor) >> unused_bits;
    while (place_in[slot] != kFree && kept[place_in[slot]] != ids[n]) {
      slot = (slot + 1) % slots;
    }
    if (place_in[slot] == kFree) {
      kept[count] = ids[n];
      place_in[slot] = count++;
    }
    places[n] = place_in[slot];
  }
  return {{kept, count}, {places, ids.size}};
}

TextEncoder::TextEncoder(const EncoderConfig& c, const std::vector<SizedStage>& stages,
                         const ParameterScope& scope, std::string_view layers)
    : dropout_(c.dropout),
      width_(last_width(c, stages)),
      embedding_(c.features > 0 ? std::nullopt
                                : std::optional<Embedding>(std::in_place, embedding_options(c),
                                                           scope["embedding"])),
      projects_tokens_once_(projected_once_columns(c, stages) > 0),
      encoder_(make_encoder(c, stages, scope, layers)) {
  if (ends_with_norm(c, stages)) norm_.emplace(norm_options(c, width_), scope["norm"]);
  check(!projects_tokens_once_ || encoder_.first_columns() == projected_once_columns(c, stages),
        "model: the first layer projects to {} columns, not {}", encoder_.first_columns(),
        projected_once_columns(c, stages));
}

Variable TextEncoder::forward(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                              const DropoutKey& key, std::span<HeadStatistics> seen,
                              Variable* inputs) const {
  if (projects_tokens_once_ && tape.mode() == TapeMode::kTrain && inputs == nullptr) {
    const Variable stepped = project_tokens_once(tape, ids, rows);
    return finish(tape, encoder_.forward_from(tape, stepped, rows, key, seen));
  }
  return forward(tape, embed(tape, ids, rows, inputs), rows, key, seen);
}

// Texts repeat their words, so in training the products that make q, k and v, forward and backward,
// have a row for each different token of the batch. Positions are projected by themselves, and
// added behind that; where they are added before, the last bits of a row may differ (of bfloat16
// operands, which are then rounded apart, its last). An id out of range is named by its place among
// the different ones.
Variable TextEncoder::project_tokens_once(Tape& tape, Vec<const std::int32_t> ids,
                                          const PackedRows& rows) const {
  const DistinctIds tokens = distinct_ids(tape, ids);
  const TableRows stepped{encoder_.first_step(tape, embedding_->token_rows(tape, tokens.kept)),
                          tokens.places};
  if (!has_position_rows()) return embedding(tape, stepped);
  index count = 0;
  for (const std::int32_t place : rows.positions) count = std::max<index>(count, place + 1);
  auto* const all = tape.saved<std::int32_t>(count);
  std::iota(all, all + count, 0);
  const Variable places =
      encoder_.first_product(tape, embedding_->position_rows(tape, {all, count}));
  return embedding(tape, stepped, TableRows{places, rows.positions});
}

Variable TextEncoder::forward(Tape& tape, Variable x, const PackedRows& rows, const DropoutKey& key,
                              std::span<HeadStatistics> seen) const {
  x = dropout(tape, x, {dropout_, {key.seed, key.step, 0}}, rows);
  return finish(tape, encoder_.forward(tape, x, rows, key, seen));
}

Variable TextEncoder::forward(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                              EncoderSession& session) const {
  return finish(tape, session.forward(tape, embedding_->forward(tape, ids, rows)));
}

index TextEncoder::token_table_columns() const {
  return !embedding_ || has_position_rows() ? 0 : encoder_.first_columns();
}

Tensor TextEncoder::token_table(const Context& context) const {
  check(token_table_columns() > 0, "model: its first step is no table of tokens");
  const Tensor& tokens = embedding_->tokens().value;
  const index V = tokens.shape()[0];
  Tensor table = Tensor::empty({V, token_table_columns()}, tokens.dtype());
  std::vector<std::int32_t> ids(static_cast<std::size_t>(std::min(V, kTableRows)));
  Tape tape(context, TapeMode::kInference);
  for (index first = 0; first < V; first += kTableRows) {
    const index count = std::min(kTableRows, V - first);
    std::iota(ids.begin(), ids.begin() + count, static_cast<std::int32_t>(first));
    tape.reset();
    const Variable x = embedding_->forward(tape, {ids.data(), count}, {});
    const Variable y = encoder_.first_step(tape, x);
    with_type(tokens.dtype(), [&]<class T>(std::type_identity<T>) {
      const Rows<const T> rows = y.value<T>();
      for (index n = 0; n < count; ++n) {
        std::copy_n(rows[n], rows.columns, table.rows<T>()[first + n]);
      }
    });
  }
  return table;
}

Variable TextEncoder::forward(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                              const Tensor& token_table) const {
  Variable stepped;
  with_type(token_table.dtype(), [&]<class T>(std::type_identity<T>) {
    stepped = embedding(tape, TableRows{tape.constant(token_table.rows<T>()), ids});
  });
  return finish(tape, encoder_.forward_from(tape, stepped, rows));
}

}  // namespace fovea

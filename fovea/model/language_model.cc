// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/config/field.h"
#include "fovea/model/layer_table.h"

namespace fovea {

namespace {

void check_kind(const LanguageModelConfig& c) {
  const bool is_encoder = c.kind == LanguageModelKind::kEncoder;
  if (is_encoder && c.encoder.empty()) {
    throw Error(ErrorCode::kOptionValue, "--model encoder: no layers are given",
                "say which: --encoder conv3,attention:window=8,lstm");
  }
  if (!is_encoder && !c.encoder.empty()) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("--encoder belongs to --model encoder; it is --model {}", to_string(c.kind)),
        "give --model encoder, or leave out --encoder");
  }
  compat_of(c);
}

// Checks the limits that all layers together must keep.
void check_layers(const LanguageModelConfig& c) {
  const std::vector<SizedStage> stages = sized_stages(c);
  check_stages(c, stages);
  if (c.tie && stages.back().out != c.width) {
    throw Error(ErrorCode::kShape,
                fmt::format("--tie: the last layer has {} columns, the token embeddings {}",
                            stages.back().out, c.width),
                "give --no-tie, or let the last layer have the width of the model");
  }
}

// The kinds of models but encoder are named as the layers that they are made of.
const LayerKind* layer_of(const LanguageModelConfig& c) { return &layer_kind(to_string(c.kind)); }

std::vector<EncoderStage> transformer(const LanguageModelConfig& c) {
  std::vector<EncoderStage> stages;
  for (const index window : layer_windows(c)) {
    stages.push_back({{.kind = layer_of(c), .window = window}});
  }
  return stages;
}

// The one window of --window.
index only_window(const LanguageModelConfig& c) {
  LanguageModelConfig one = c;
  one.layers = 1;
  return layer_windows(one)[0];
}

std::vector<EncoderStage> stages_of(const LanguageModelConfig& c) {
  switch (c.kind) {
    case LanguageModelKind::kTransformer:
      return transformer(c);
    case LanguageModelKind::kAttentionRnn:
      return {{{.kind = layer_of(c), .heads = c.heads, .window = only_window(c)}}};
    case LanguageModelKind::kEncoder:
      return parse_encoder(c.encoder);
    default:  // recurrent layers
      return {{{.kind = layer_of(c), .layers = c.layers}}};
  }
}

index count_by_shapes(const LanguageModelConfig& resolved) {
  ParameterSet shapes({.memory = ParameterMemory::kShapesOnly});
  const LanguageModelLayers layers(resolved, ParameterScope(shapes));
  return shapes.size();
}

}  // namespace

std::vector<index> layer_windows(const LanguageModelConfig& c) {
  const auto layers = static_cast<std::size_t>(c.layers);
  if (c.window.empty()) return std::vector<index>(layers, 0);
  std::vector<index> windows = parse_numbers(c.window, ',');
  if (windows.empty()) {
    fail_option("window", printable(c.window), "whole numbers, such as 64 or 64,0",
                ErrorCode::kOptionValue, Hint{"write digits, with a comma between layers"});
  }
  for (const index window : windows) check_size("window", window, 0);
  if (windows.size() == 1) windows.resize(layers, windows[0]);
  if (windows.size() != layers) {
    fail_option("window", printable(c.window),
                fmt::format("one number, or one for each of the {} layers", layers),
                ErrorCode::kOptionValue,
                Hint{"a layer with the window 0 sees all; --layers says how many there are"});
  }
  return windows;
}

LanguageModelConfig resolve(LanguageModelConfig c) {
  check_ranges(c);
  check_size("layers", c.layers, 1, kMostLayers);
  resolve_encoder(c);
  check_kind(c);
  if (c.head_dim == 0 && c.kind == LanguageModelKind::kTransformer) {
    throw Error(ErrorCode::kShape,
                fmt::format("--width: {} is not divisible by --heads ({})", c.width, c.heads),
                "make --width a multiple of --heads, or choose --head-dim yourself");
  }
  check_softcap("logit_softcap", c.logit_softcap);
  if (c.experts > 0) check_size("experts_per_token", c.experts_per_token, 1, c.experts);
  layer_windows(c);
  check_layers(c);
  return c;
}

// All layers of a Transformer are alike, so one and two of them say what any number has: to make
// tens of thousands would take hundreds of megabytes.
index parameter_count(const LanguageModelConfig& config) {
  LanguageModelConfig c = resolve(config);
  const index layers = c.layers;
  if (c.kind != LanguageModelKind::kTransformer || layers <= 2) return count_by_shapes(c);
  c.window.clear();  // it may list the layers, and changes no shape
  c.layers = 1;
  const index one = count_by_shapes(c);
  c.layers = 2;
  return one + (layers - 1) * (count_by_shapes(c) - one);
}

Compat compat_of(const LanguageModelConfig& c) {
  Compat compat;
  if (c.compat.empty()) return compat;
  AttentionRnnDefects& rnn = compat.attention_rnn;
  const bool is_rnn = c.kind == LanguageModelKind::kAttentionRnn;
  const bool has_layer_norm =
      c.kind == LanguageModelKind::kTransformer && c.norm == NormKind::kLayer;
  const struct {
    std::string_view name;
    bool& on;
    bool possible;
  } rows[] = {
      {"sum-weights", rnn.sum_weights, is_rnn},
      {"history-only", rnn.history_only, is_rnn},
      {"state-is-attention", rnn.state_is_attention, is_rnn},
      {"ln-unbiased", compat.ln_unbiased, has_layer_norm},
  };
  if (std::none_of(std::begin(rows), std::end(rows), [](auto& row) { return row.possible; })) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--compat: --model {} has no known defect", to_string(c.kind)),
                "--model attention-rnn and --model transformer have some");
  }
  for (const std::string_view word : parts_between(c.compat, ',')) {
    if (word == "all") {
      for (const auto& row : rows) row.on = row.possible;
      continue;
    }
    const auto& row = choose(rows, word, "compat");
    if (!row.possible) {
      std::vector<std::string_view> has;
      for (const auto& r : rows) {
        if (r.possible) has.push_back(r.name);
      }
      fail_option(
          "compat", printable(word),
          fmt::format("a defect of --model {} ({})", to_string(c.kind), fmt::join(has, ", ")));
    }
    row.on = true;
  }
  return compat;
}

std::vector<SizedStage> sized_stages(const LanguageModelConfig& c) {
  return size_stages(c, stages_of(c));
}

EncoderConfig encoder_of(const LanguageModelConfig& config) {
  EncoderConfig encoder = config;
  const Compat compat = compat_of(config);
  encoder.attention_rnn_defects = compat.attention_rnn;
  if (compat.ln_unbiased) encoder.ln_variant = LayerNormVariant::kUnbiased;
  encoder.token_rows = config.tie ? RowUse::kDense : RowUse::kSparse;
  return encoder;
}

namespace {

bool is_recurrent(const SizedLayer& layer) { return layer.spec.kind->is_recurrent; }

// The logits. The book's start from nearly nothing where they read a recurrent network; its
// Transformer's do not.
LinearOptions logits_options(const LanguageModelConfig& c, const SizedStage& last) {
  LinearOptions o{.in = last.out,
                  .out = c.vocabulary,
                  .bias = c.experts > 0 ? Biases::kNone : biases(c),  // as models have it
                  .weight = matrix_init(c, last.out, c.vocabulary),
                  .bias_start = bias_start(c)};
  if (c.init == InitScheme::kSource && std::ranges::all_of(last.branches, is_recurrent)) {
    o.weight = Init::normal(kSourceRnnDeviation);
    o.bias_start = BiasStart::kZeros;
  }
  return o;
}

void check_ids(std::string_view op, Vec<const std::int32_t> ids, index V) {
  for (index n = 0; n < ids.size; ++n) {
    check(ids[n] >= 0 && ids[n] < V, "{}: token {} is {}; the vocabulary has {}", op, n, ids[n], V);
  }
}

}  // namespace

LanguageModelLayers::LanguageModelLayers(const LanguageModelConfig& c, const ParameterScope& scope)
    : encoder_(encoder_of(c), sized_stages(c), scope,
               c.kind == LanguageModelKind::kTransformer ? "blocks" : "encoder") {
  if (!c.tie) output_.emplace(logits_options(c, sized_stages(c).back()), scope["output"]);
}

Variable LanguageModel::rows(Tape& tape, const TokenBatch& batch,
                             const LossOptions& options) const {
  const PackedRows rows = lay_out_texts(tape, batch.sequences(), config_.block);
  return layers().encoder().forward(tape, batch.ids, rows, options.dropout, options.attention,
                                    options.inputs);
}

Variable LanguageModel::loss_of_sequence(Tape& tape, Variable rows, const TokenBatch& batch,
                                         index sequence, double factor) const {
  const auto begin = batch.offsets[sequence], end = batch.offsets[sequence + 1];
  auto* const places = tape.saved<std::int32_t>(end - begin);
  auto* const targets = tape.saved<std::int32_t>(end - begin);
  index count = 0;
  for (std::int32_t n = begin; n < end; ++n) {
    if (batch.targets[n] < 0) continue;
    places[count] = n;
    targets[count++] = batch.targets[n];
  }
  if (count == 0) return {};
  const Variable of_targets = embedding(tape, TableRows{rows, {places, count}});
  return linear_cross_entropy(tape, of_targets, tape.parameter(layers().output_weight()),
                              parameter_or_none(tape, layers().output_bias()), {{targets, count}},
                              {.scale = factor, .softcap = config_.logit_softcap});
}

Variable LanguageModel::loss_of_rows(Tape& tape, Variable rows, const TokenBatch& batch,
                                     Vec<const double> factors) const {
  check(factors.size + 1 == batch.offsets.size, "language model: {} factors for {} sequences",
        factors.size, batch.offsets.size - 1);
  Variable loss;
  for (index s = 0; s < factors.size; ++s) {
    const Variable one = loss_of_sequence(tape, rows, batch, s, factors[s]);
    if (one.defined()) loss = loss.defined() ? add(tape, loss, one) : one;
  }
  return loss.defined() ? loss : zero_loss(tape);
}

std::vector<double> LanguageModel::losses_of_rows(Tape& tape, Variable rows,
                                                  const TokenBatch& batch) const {
  std::vector<double> losses;
  for (index s = 0; s + 1 < batch.offsets.size; ++s) {
    const Variable loss = loss_of_sequence(tape, rows, batch, s, 1);
    if (!loss.defined()) {
      losses.push_back(0);
      continue;
    }
    with_type(loss.dtype(), [&]<class T>(std::type_identity<T>) {
      losses.push_back(double{loss.value<T>()[0][0]});
    });
  }
  return losses;
}

Variable LanguageModel::loss(Tape& tape, const TokenBatch& batch,
                             const LossOptions& options) const {
  check(batch.targets.size == batch.ids.size, "language model: {} targets for {} tokens",
        batch.targets.size, batch.ids.size);
  if (batch.ids.empty()) return zero_loss(tape);
  const Variable x = rows(tape, batch, options);
  return linear_cross_entropy(tape, x, tape.parameter(layers().output_weight()),
                              parameter_or_none(tape, layers().output_bias()), {batch.targets},
                              {.scale = options.scale, .softcap = config_.logit_softcap});
}

Variable LanguageModel::logits(Tape& tape, const TokenBatch& batch,
                               const LossOptions& options) const {
  return project(tape, rows(tape, batch, options));
}

Variable LanguageModel::project(Tape& tape, Variable x) const {
  const Variable logits = linear(tape, x, tape.parameter(layers().output_weight()),
                                 parameter_or_none(tape, layers().output_bias()));
  return config_.logit_softcap > 0 ? softcap(tape, logits, config_.logit_softcap) : logits;
}

LanguageModelDecoder::LanguageModelDecoder(const Context& context, const LanguageModel& model)
    : model_(model),
      tape_(context, TapeMode::kInference),
      session_(model.layers().encoder().begin(model.config().block)),
      endless_(session_.endless() && !model.layers().encoder().has_position_rows()) {}

index LanguageModelDecoder::window_start(index n, index block) {
  if (n <= block) return 0;
  const index hop = std::max<index>(1, block / 4);
  return (n - block + hop - 1) / hop * hop;
}

void LanguageModelDecoder::begin_at(index start) {
  start_ = start;
  encoded_ = 0;
  session_.clear();
}

Vec<const float> LanguageModelDecoder::append(Vec<const std::int32_t> ids) {
  check(!ids.empty(), "decoder: there is no token to append");
  check_ids("decoder", ids, model_.config().vocabulary);
  const std::size_t before = tokens_.size();
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  try {
    return encode_rest();
  } catch (...) {
    // Some layers may have taken rows that others have not: the next call encodes all again.
    begin_at(start_);
    tokens_.resize(before);
    throw;
  }
}

// Encodes the tokens that the session does not have yet, as many at once as it takes.
Vec<const float> LanguageModelDecoder::encode_rest() {
  const index start = endless_ ? 0 : window_start(size(), model_.config().block);
  if (start != start_) begin_at(start);
  for (;;) {
    const index seen = start_ + encoded_;
    // An endless session takes a block at a time, so that its memory is that of a block.
    const index most = std::min(session_.most_rows(), model_.config().block);
    const index count = std::min(size() - seen, most);
    const Vec<const float> logits = encode({tokens_.data() + seen, count});
    if (seen + count == size()) return logits;
  }
}

Vec<const float> LanguageModelDecoder::encode(Vec<const std::int32_t> ids) {
  tape_.reset();
  const std::array<std::int32_t, 2> offsets{0, static_cast<std::int32_t>(ids.size)};
  // Rows of an endless model have no positions, which would overflow one day.
  const index first = endless_ ? 0 : encoded_;
  const PackedRows rows = lay_out_rows(tape_, ids.size, {offsets.data(), 2}, {}, first);
  const Variable x = model_.layers().encoder().forward(tape_, ids, rows, session_);
  encoded_ += ids.size;
  const Rows<const float> last = x.value<float>().slice(ids.size - 1, ids.size);
  return model_.project(tape_, tape_.constant(last)).vec<float>();
}

void LanguageModelDecoder::clear() {
  tokens_.clear();
  begin_at(0);
}

PassCost plan_pass(const Context& context, const LanguageModelConfig& config, const TapeLoad& load,
                   const ModelChange<LanguageModel>& change) {
  if (load.listed() > kMostPlanned) return extrapolated(context, config, load, change);
  const LanguageModelConfig c = resolve(config);
  const PlannedRows rows(load, c.block, c.vocabulary);
  return plan_changed<LanguageModel>(
      context, load, [&](const auto& options) { return LanguageModel(c, options); }, change,
      [&](Tape& tape, const LanguageModel& model, std::span<HeadStatistics> seen) {
        const TokenBatch batch{.ids = rows.ids, .targets = rows.ids, .offsets = rows.offsets};
        return model.loss(tape, batch, {.attention = seen});
      });
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model.h"

#include <algorithm>
#include <array>

#include "fovea/model/language_model_config.h"
#include "fovea/model/layer_table.h"

namespace fovea {

namespace {

bool is_recurrent(const SizedLayer& layer) { return layer.spec.kind->is_recurrent; }

// The logits. The book's start from nearly nothing where they read a recurrent network; its
// Transformer's do not.
LinearOptions logits_options(const LanguageModelConfig& c, const SizedStage& last) {
  LinearOptions o{.in = last.out,
                  .out = c.vocabulary,
                  .bias = biases(c),
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

LanguageModel::LanguageModel(const LanguageModelConfig& config, std::uint64_t seed, DType dtype)
    : LanguageModel(config, ParameterSetOptions{seed, dtype}) {}

LanguageModel::LanguageModel(const LanguageModelConfig& config, const ParameterSetOptions& options)
    : config_(resolve(config)),
      parameters_(std::make_unique<ParameterSet>(options)),
      layers_(std::make_unique<LanguageModelLayers>(config_, ParameterScope(*parameters_))) {}

LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&&) noexcept = default;
LanguageModel::~LanguageModel() = default;

Variable LanguageModel::loss(Tape& tape, const TokenBatch& batch,
                             const LossOptions& options) const {
  check(batch.targets.size == batch.ids.size, "language model: {} targets for {} tokens",
        batch.targets.size, batch.ids.size);
  const PackedRows rows = lay_out_texts(tape, batch.sequences(), config_.block);
  if (batch.ids.empty()) return zero_loss(tape);
  const Variable x = layers_->encoder().forward(tape, batch.ids, rows, options.dropout,
                                                options.attention, options.inputs);
  return linear_cross_entropy(tape, x, tape.parameter(layers_->output_weight()),
                              parameter_or_none(tape, layers_->output_bias()), {batch.targets},
                              options.scale);
}

Variable LanguageModel::logits(Tape& tape, const TokenBatch& batch,
                               const LossOptions& options) const {
  const PackedRows rows = lay_out_texts(tape, batch.sequences(), config_.block);
  return project(tape, layers_->encoder().forward(tape, batch.ids, rows, options.dropout,
                                                  options.attention, options.inputs));
}

Variable LanguageModel::project(Tape& tape, Variable x) const {
  return linear(tape, x, tape.parameter(layers_->output_weight()),
                parameter_or_none(tape, layers_->output_bias()));
}

index LanguageModel::attentions() const { return layers_->encoder().attentions(); }

LanguageModelDecoder::LanguageModelDecoder(const Context& context, const LanguageModel& model)
    : model_(model),
      tape_(context, TapeMode::kInference),
      session_(model.layers_->encoder().begin(model.config().block)),
      endless_(session_.endless() && !model.layers_->encoder().has_position_rows()) {}

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
  const Variable x = model_.layers_->encoder().forward(tape_, ids, rows, session_);
  encoded_ += ids.size;
  const Rows<const float> last = x.value<float>().slice(ids.size - 1, ids.size);
  return model_.project(tape_, tape_.constant(last)).vec<float>();
}

void LanguageModelDecoder::clear() {
  tokens_.clear();
  begin_at(0);
}

}  // namespace fovea

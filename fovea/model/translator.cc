// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/translator.h"

#include "fovea/model/layer_table.h"
#include "fovea/model/target_decoder.h"

namespace fovea {

namespace {

std::unique_ptr<const TargetDecoder> make_decoder(const TranslatorConfig& c,
                                                  const TextEncoder& encoder,
                                                  const ParameterScope& scope) {
  Parameter* const tokens = c.share_embeddings ? &encoder.tokens() : nullptr;
  if (c.kind == TranslatorKind::kBahdanauGru) {
    return std::make_unique<RecurrentDecoder>(decoder_of(c), encoder.width(), tokens, scope);
  }
  const TextDecoderOptions options{
      .layers = c.decoder_layers, .source_width = encoder.width(), .tokens = tokens};
  return std::make_unique<TextDecoder>(decoder_of(c), options, scope);
}

}  // namespace

TranslatorLayers::TranslatorLayers(const TranslatorConfig& c, const ParameterScope& scope)
    : encoder_(encoder_of(c), encoder_stages(c), scope["encoder"],
               c.encoder.empty() ? "blocks" : "layers"),
      decoder_(make_decoder(c, encoder_, scope["decoder"])) {
  if (c.tie) return;
  output_.emplace(LinearOptions{.in = c.width,
                                .out = c.target_vocabulary,
                                .bias = biases(c),
                                .weight = matrix_init(c, c.width, c.target_vocabulary),
                                .bias_start = bias_start(c)},
                  scope["output"]);
}

Translator::Translator(const TranslatorConfig& config, std::uint64_t seed, DType dtype)
    : Translator(config, ParameterSetOptions{seed, dtype}) {}

Translator::Translator(const TranslatorConfig& config, const ParameterSetOptions& options)
    : config_(resolve(config)),
      parameters_(std::make_unique<ParameterSet>(options)),
      layers_(std::make_unique<TranslatorLayers>(config_, ParameterScope(*parameters_))) {}

Translator::Translator(Translator&&) noexcept = default;
Translator& Translator::operator=(Translator&&) noexcept = default;
Translator::~Translator() = default;

index Translator::attentions() const {
  return layers_->encoder().attentions() + layers_->decoder().attentions();
}

index Translator::cross_attention(index layer) const {
  check(layer >= 0 && layer < config_.decoder_layers, "translator: there is no layer {} of {}",
        layer, config_.decoder_layers);
  return layers_->encoder().attentions() + layers_->decoder().cross_attention(layer);
}

// The rows from which the next tokens of the target are predicted.
Variable Translator::rows(Tape& tape, const TranslationBatch& batch,
                          const TranslatorLossOptions& o) const {
  const PackedRows source = lay_out_texts(tape, batch.source, config_.block),
                   target = lay_out_texts(tape, batch.target, config_.block);
  check(source.count() == target.count(),
        "translator: {} sentences of the source, {} of the target", source.count(), target.count());
  const auto read = static_cast<std::size_t>(layers_->encoder().attentions());
  const bool observes = !o.attention.empty();
  check(!observes || static_cast<index>(o.attention.size()) == attentions(),
        "translator: {} statistics for {} attentions", o.attention.size(), attentions());
  const auto seen = [&](std::size_t begin, std::size_t count) {
    return observes ? o.attention.subspan(begin, count) : std::span<HeadStatistics>();
  };
  const Variable encoded = layers_->encoder().forward(tape, batch.source.ids, source, o.dropout,
                                                      seen(0, read), o.inputs);
  const TargetDecoder& decoder = layers_->decoder();
  return decoder.forward(
      tape, batch.target.ids, {encoded, source},
      {target, o.dropout, seen(read, static_cast<std::size_t>(decoder.attentions()))});
}

Variable Translator::loss(Tape& tape, const TranslationBatch& batch,
                          const TranslatorLossOptions& o) const {
  check(batch.targets.size == batch.target.ids.size, "translator: {} targets for {} tokens",
        batch.targets.size, batch.target.ids.size);
  if (batch.target.ids.empty()) return zero_loss(tape);
  const Variable x = rows(tape, batch, o);
  return linear_cross_entropy(tape, x, tape.parameter(layers_->output_weight()),
                              parameter_or_none(tape, layers_->output_bias()),
                              {.ids = batch.targets, .smoothing = o.smoothing}, o.scale);
}

Variable Translator::logits(Tape& tape, const TranslationBatch& batch,
                            const TranslatorLossOptions& o) const {
  return linear(tape, rows(tape, batch, o), tape.parameter(layers_->output_weight()),
                parameter_or_none(tape, layers_->output_bias()));
}

TranslatorDecoder::TranslatorDecoder(const Context& context, const Translator& model)
    : model_(model),
      tape_(context, TapeMode::kInference),
      decoding_(model.layers_->decoder().decoding()) {}

TranslatorDecoder::~TranslatorDecoder() = default;

void TranslatorDecoder::begin(const TextRows& sources) {
  tape_.reset();
  const PackedRows rows = lay_out_texts(tape_, sources, model_.config_.block);
  const Variable encoded = model_.layers_->encoder().forward(tape_, sources.ids, rows, {}, {});
  decoding_->begin(tape_, {encoded, rows});
}

Rows<const float> TranslatorDecoder::step(std::span<const index> parents,
                                          Vec<const std::int32_t> ids) {
  tape_.reset();
  const Variable x = decoding_->step(tape_, parents, ids);
  const TranslatorLayers& layers = *model_.layers_;
  return linear(tape_, x, tape_.parameter(layers.output_weight()),
                parameter_or_none(tape_, layers.output_bias()))
      .value<float>();
}

}  // namespace fovea

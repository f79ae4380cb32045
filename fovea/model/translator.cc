// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/translator.h"

#include <algorithm>
#include <cmath>

#include "fovea/base/option.h"
#include "fovea/config/field.h"
#include "fovea/model/layer_table.h"
#include "fovea/model/target_decoder.h"

namespace fovea {

namespace {

PositionKind decoder_position(const TranslatorConfig& c) {
  if (c.decoder_position.empty()) return c.position;
  std::string names;
  for (const auto& [kind, name] : enum_names(PositionKind{})) {
    if (name == c.decoder_position) return kind;
    names += names.empty() ? std::string(name) : ", " + std::string(name);
  }
  fail_choice("decoder_position", c.decoder_position, names);
}

void check_tables(const TranslatorConfig& c) {
  check_size("target_vocabulary", c.target_vocabulary, 1);
  if (!c.share_embeddings || c.vocabulary == c.target_vocabulary) return;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("--share-embeddings: the source has {} tokens, the target {}: one table "
                          "needs one vocabulary",
                          c.vocabulary, c.target_vocabulary),
              "add --shared-vocabulary, or leave out --share-embeddings");
}

// Stages of `layers` Transformer layers. One list element holds them all, however many they are.
std::vector<SizedStage> transformer(const EncoderConfig& c, index layers) {
  const EncoderStage stage = {{.kind = &layer_kind("transformer"), .layers = layers}};
  return size_stages(c, {&stage, 1});
}

// A recurrent decoder has one layer, and reads in order: it needs no positions.
void resolve_recurrent(TranslatorConfig& c) {
  const TranslatorConfig usual;
  require_option(c.encoder_layers == usual.encoder_layers,
                 Hint{"leave it out; --encoder bigru,bigru has two layers"}, "encoder_layers",
                 c.encoder_layers, "an option of --model bahdanau-gru");
  require_option(c.decoder_layers == usual.decoder_layers || c.decoder_layers == 1,
                 Hint{"leave it out"}, "decoder_layers", c.decoder_layers,
                 "what --model bahdanau-gru has: one");
  if (!c.decoder_position.empty()) {
    throw Error(ErrorCode::kOptionValue,
                "--decoder-position: has no effect on --model bahdanau-gru, which reads in order",
                "leave it out");
  }
  c.decoder_layers = 1;
  if (c.encoder.empty()) c.encoder = "bigru";
  if (c.position == PositionKind::kSinusoidal) c.position = PositionKind::kNone;
}

}  // namespace

TranslatorConfig resolve(TranslatorConfig c) {
  check_ranges(c);
  if (c.kind == TranslatorKind::kBahdanauGru) resolve_recurrent(c);
  check_size("encoder_layers", c.encoder_layers, 1, kMostLayers);
  check_size("decoder_layers", c.decoder_layers, 1, kMostLayers);
  check_tables(c);
  // Sinusoids are large beside tokens, on whichever side they are.
  if (c.embedding_scale == 0 && decoder_position(c) == PositionKind::kSinusoidal && c.width > 0) {
    c.embedding_scale = std::sqrt(static_cast<double>(c.width));
  }
  resolve_encoder(c);
  if (c.head_dim == 0) {
    throw Error(ErrorCode::kShape,
                fmt::format("--width: {} is not divisible by --heads ({})", c.width, c.heads),
                "make --width a multiple of --heads, or choose --head-dim yourself");
  }
  EncoderConfig decoder = decoder_of(c);
  resolve_encoder(decoder);
  check_stages(encoder_of(c), encoder_stages(c));
  check_stages(decoder, decoder_stages(c));
  return c;
}

// A table that another layer reads, too, or that makes the logits, has gradients of all its rows.
EncoderConfig encoder_of(const TranslatorConfig& c) {
  EncoderConfig encoder = c;
  encoder.token_rows = c.share_embeddings ? RowUse::kDense : RowUse::kSparse;
  return encoder;
}

EncoderConfig decoder_of(const TranslatorConfig& c) {
  EncoderConfig decoder = c;
  decoder.sight = Sight::kPast;
  decoder.position =
      c.kind == TranslatorKind::kTransformer ? decoder_position(c) : PositionKind::kNone;
  decoder.vocabulary = c.target_vocabulary;
  decoder.token_rows = c.tie || c.share_embeddings ? RowUse::kDense : RowUse::kSparse;
  // Where the encoder alone has rows to concatenate.
  if (!adds_position_rows(decoder.position)) decoder.position_join = PositionJoin::kAdd;
  return decoder;
}

std::vector<SizedStage> encoder_stages(const TranslatorConfig& c) {
  const EncoderConfig encoder = encoder_of(c);
  return c.encoder.empty() ? transformer(encoder, c.encoder_layers)
                           : size_stages(encoder, parse_encoder(c.encoder));
}

std::vector<SizedStage> decoder_stages(const TranslatorConfig& c) {
  if (c.kind == TranslatorKind::kBahdanauGru) {
    return size_stages(decoder_of(c), parse_encoder("gru"));
  }
  return transformer(decoder_of(c), c.decoder_layers);
}

// All layers of a Transformer are alike, so one and two of them say what any number has.
index parameter_count(const TranslatorConfig& config) {
  const TranslatorConfig c = resolve(config);
  const auto count = [&](index encoder_layers, index decoder_layers) {
    TranslatorConfig small = c;
    small.encoder_layers = encoder_layers;
    small.decoder_layers = decoder_layers;
    ParameterSet shapes({.memory = ParameterMemory::kShapesOnly});
    const TranslatorLayers layers(small, ParameterScope(shapes));
    return shapes.size();
  };
  const index one = count(1, 1);
  return one + (c.encoder_layers - 1) * (count(2, 1) - one) +
         (c.decoder_layers - 1) * (count(1, 2) - one);
}

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
  if (c.tie && c.logits_bias) {
    logits_bias_ = &scope["output"].add("bias", {c.target_vocabulary}, Init::zeros(), Decay::kNo);
  }
  if (c.tie) return;
  output_.emplace(LinearOptions{.in = c.width,
                                .out = c.target_vocabulary,
                                .bias = biases(c),
                                .weight = matrix_init(c, c.width, c.target_vocabulary),
                                .bias_start = bias_start(c)},
                  scope["output"]);
}

index Translator::cross_attention(index layer) const {
  check(layer >= 0 && layer < config_.decoder_layers, "translator: there is no layer {} of {}",
        layer, config_.decoder_layers);
  return layers().encoder().attentions() + layers().decoder().cross_attention(layer);
}

Variable Translator::scaled(Tape& tape, Variable decoded) const {
  return config_.output_scale == 1 ? decoded : scale(tape, decoded, config_.output_scale);
}

Variable Translator::rows(Tape& tape, const TranslationBatch& batch,
                          const TranslatorLossOptions& o) const {
  const PackedRows source = lay_out_texts(tape, batch.source, config_.block),
                   target = lay_out_texts(tape, batch.target, config_.block);
  check(source.count() == target.count(),
        "translator: {} sentences of the source, {} of the target", source.count(), target.count());
  const auto read = static_cast<std::size_t>(layers().encoder().attentions());
  const bool observes = !o.attention.empty();
  check(!observes || static_cast<index>(o.attention.size()) == attentions(),
        "translator: {} statistics for {} attentions", o.attention.size(), attentions());
  const auto seen = [&](std::size_t begin, std::size_t count) {
    return observes ? o.attention.subspan(begin, count) : std::span<HeadStatistics>();
  };
  const Variable encoded = layers().encoder().forward(tape, batch.source.ids, source, o.dropout,
                                                      seen(0, read), o.inputs);
  const TargetDecoder& decoder = layers().decoder();
  const Variable decoded = decoder.forward(
      tape, batch.target.ids, {encoded, source},
      {target, o.dropout, seen(read, static_cast<std::size_t>(decoder.attentions()))});
  return scaled(tape, decoded);
}

Variable Translator::loss(Tape& tape, const TranslationBatch& batch,
                          const TranslatorLossOptions& o) const {
  check(batch.targets.size == batch.target.ids.size, "translator: {} targets for {} tokens",
        batch.targets.size, batch.target.ids.size);
  if (batch.target.ids.empty()) return zero_loss(tape);
  const Variable x = rows(tape, batch, o);
  return linear_cross_entropy(tape, x, tape.parameter(layers().output_weight()),
                              parameter_or_none(tape, layers().output_bias()),
                              {.ids = batch.targets, .smoothing = o.smoothing}, {.scale = o.scale});
}

Variable Translator::logits(Tape& tape, const TranslationBatch& batch,
                            const TranslatorLossOptions& o) const {
  return linear(tape, rows(tape, batch, o), tape.parameter(layers().output_weight()),
                parameter_or_none(tape, layers().output_bias()));
}

TranslatorDecoder::TranslatorDecoder(const Context& context, const Translator& model)
    : model_(model),
      tape_(context, TapeMode::kInference),
      decoding_(model.layers().decoder().decoding()) {}

TranslatorDecoder::~TranslatorDecoder() = default;

void TranslatorDecoder::begin(const TextRows& sources) {
  tape_.reset();
  const PackedRows rows = lay_out_texts(tape_, sources, model_.config_.block);
  const Variable encoded = model_.layers().encoder().forward(tape_, sources.ids, rows, {}, {});
  decoding_->begin(tape_, {encoded, rows});
}

Rows<const float> TranslatorDecoder::step(std::span<const index> parents,
                                          Vec<const std::int32_t> ids) {
  tape_.reset();
  const Variable x = model_.scaled(tape_, decoding_->step(tape_, parents, ids));
  const TranslatorLayers& layers = model_.layers();
  return linear(tape_, x, tape_.parameter(layers.output_weight()),
                parameter_or_none(tape_, layers.output_bias()))
      .value<float>();
}

PassCost plan_pass(const Context& context, const TranslatorConfig& config,
                   const TranslationLoad& load) {
  if (load.listed() > kMostPlanned) return extrapolated(context, config, load);
  const TranslatorConfig c = resolve(config);
  TapeLoad from = load.source, to = load.target;
  if (from.lengths.empty()) {  // both sides have as many sentences
    const auto least = [&](const TapeLoad& side) { return (side.tokens + c.block - 1) / c.block; };
    from.sequences = to.sequences = std::max(
        {least(from), least(to), std::min({load.source.sequences, from.tokens, to.tokens})});
    from.tokens = std::max(from.tokens, from.sequences);
    to.tokens = std::max(to.tokens, to.sequences);
  }
  const PlannedRows source(from, c.block, c.vocabulary), target(to, c.block, c.target_vocabulary);
  return plan(
      context, load.target, [&](const auto& options) { return Translator(c, options); },
      [&](Tape& tape, const Translator& model, std::span<HeadStatistics> seen) {
        return model.loss(tape,
                          {.source = source.view(), .target = target.view(), .targets = target.ids},
                          {.attention = seen});
      });
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/translator_config.h"

#include <algorithm>
#include <cmath>

#include "fovea/base/option.h"
#include "fovea/config/field.h"
#include "fovea/model/layer_table.h"
#include "fovea/model/translator.h"

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

}  // namespace fovea

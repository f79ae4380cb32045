// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/translator_memory.h"

#include <algorithm>

#include "fovea/kernel/cross_entropy.h"

namespace fovea {

namespace {

constexpr double kFloat = sizeof(float);

// The widths of a layer's attention to the source.
struct CrossWidths {
  explicit CrossWidths(const TranslatorConfig& c)
      : layers(static_cast<double>(c.decoder_layers)),
        model(static_cast<double>(c.width)),
        queries(static_cast<double>(c.heads * c.head_dim)),
        keys(static_cast<double>(c.kv_heads * c.head_dim)),
        heads(static_cast<double>(c.heads)),
        kv_heads(static_cast<double>(c.kv_heads)) {}

  double layers, model, queries, keys, heads, kv_heads;
};

// What a tape keeps of attention to the source, for each token of the target: queries, the heads'
// results, their projection, the norm and the sum; in training also the log-sum-exp in two parts.
double cross_target_columns(const TranslatorConfig& c, TapeMode mode) {
  const CrossWidths w(c);
  const double qk_norm = c.qk_norm ? w.queries + w.heads : 0;
  const double norm = w.model + (c.norm == NormKind::kLayer ? 2 : 1);
  const double sums = mode == TapeMode::kTrain ? 2 * w.heads : 0;
  return w.layers * (2 * w.queries + w.model + norm + w.model + qk_norm + sums);
}

double cross_source_columns(const TranslatorConfig& c) {
  const CrossWidths w(c);
  return w.layers * (2 * w.keys + (c.qk_norm ? w.keys + w.kv_heads : 0));
}

// While a layer's attention to the source is pulled: the gradients of its queries and results, of
// keys and values, and of the rows of the source, which all layers add to.
double cross_gradient_bytes(const TranslatorConfig& c, const TranslationLoad& load, double read) {
  const CrossWidths w(c);
  return static_cast<double>(load.target.tokens) * (w.queries + w.model) +
         static_cast<double>(load.source.tokens) * (2 * w.keys + read);
}

// What a tape keeps of a recurrent decoder for each token of the target, beside the embedding: the
// gates' sums and what they become, the state and its copies, the context and its, the output.
double attentive_columns(const TranslatorConfig& c, double read) {
  return 40 * static_cast<double>(c.width) + 4 * read + 4;
}

// The rows that a call of attention to the source rounds: q and o of the target, k and v of the
// source, and their gradients.
double cross_rounded_bytes(const TranslatorConfig& c, const TranslationLoad& load) {
  if (!keeps_rounded(load.target) || c.kind != TranslatorKind::kTransformer) return 0;
  const CrossWidths w(c);
  return 2 * 2 * sizeof(BFloat16) *
         (static_cast<double>(load.target.tokens) * w.queries +
          static_cast<double>(load.source.tokens) * w.keys);
}

double loss_scratch(const TranslatorConfig& c, const TranslationLoad& load) {
  const index V = c.target_vocabulary;
  const auto rows = static_cast<double>(logit_rows<float>(load.target.tokens, V));
  constexpr double kMostSums = 32;  // as add_chunk_sums has them
  const bool sums = c.bias && !c.tie && load.target.mode == TapeMode::kTrain;
  return kFloat * (static_cast<double>(V) * (rows + (sums ? kMostSums : 0)) +
                   static_cast<double>(load.target.tokens));
}

// The gradient of a table of which an update uses some rows: their values, which grow by half, and
// the place of each row in them, where no other layer reads the table.
double table_bytes(index rows, index width, double used, RowUse use) {
  const auto V = static_cast<double>(rows), C = static_cast<double>(width);
  if (use == RowUse::kDense) return kFloat * V * C;
  const double held = std::min(V, 1.5 * std::min(V, used)) + std::min(V, used);
  return kFloat * (held * C + 2 * V);
}

// The gradients of a recurrent decoder exist all at once: it is one chain of steps.
double recurrent_bytes(const TranslatorConfig& c, const TranslationLoad& load) {
  const EncoderConfig encoder = encoder_of(c);
  const auto reads = encoder_stages(c);
  const auto read = static_cast<double>(last_width(encoder, reads)),
             width = static_cast<double>(c.width);
  const double copies = load.target.mode == TapeMode::kTrain ? 2 : 1;
  const double source = encoder_columns(encoder, reads, load.source) + copies * (width + read) +
                        (copies - 1) * encoder_gradient_columns(encoder, reads, load.source);
  return kFloat * (static_cast<double>(load.source.tokens) * source +
                   static_cast<double>(load.target.tokens) * copies *
                       (2 * width + attentive_columns(c, read)));
}

}  // namespace

double activation_bytes(const TranslatorConfig& config, const TranslationLoad& load) {
  const TranslatorConfig c = resolve(config);
  const EncoderConfig encoder = encoder_of(c), decoder = decoder_of(c);
  const auto reads = encoder_stages(c), writes = decoder_stages(c);
  const TapeMode mode = load.source.mode;
  const auto of_source = static_cast<double>(load.source.tokens),
             of_target = static_cast<double>(load.target.tokens);
  const auto read = static_cast<double>(last_width(encoder, reads));
  if (c.kind == TranslatorKind::kBahdanauGru) return recurrent_bytes(c, load);
  double values =
      of_source * (encoder_columns(encoder, reads, load.source) + cross_source_columns(c)) +
      of_target * (encoder_columns(decoder, writes, load.target) + cross_target_columns(c, mode));
  if (mode == TapeMode::kTrain) {  // the loss computes its gradient at once
    values += of_target * (static_cast<double>(c.width) +
                           encoder_gradient_columns(decoder, writes, load.target)) +
              of_source * encoder_gradient_columns(encoder, reads, load.source) +
              cross_gradient_bytes(c, load, read);
  }
  return kFloat * values;
}

double packed_bytes(const TranslatorConfig& config, const TranslationLoad& load) {
  const TranslatorConfig c = resolve(config);
  const EncoderConfig encoder = encoder_of(c), decoder = decoder_of(c);
  const auto reads = encoder_stages(c), writes = decoder_stages(c);
  const index q = c.heads * c.head_dim, kv = 2 * c.kv_heads * c.head_dim;
  const double cross = packed_bytes(WeightShape{q, c.width}, load.target) +
                       packed_bytes(WeightShape{kv, last_width(encoder, reads)}, load.source) +
                       packed_bytes(WeightShape{c.width, q}, load.target);
  return encoder_packed_bytes(encoder, reads, load.source) +
         encoder_packed_bytes(decoder, writes, load.target) +
         static_cast<double>(c.decoder_layers) * cross +
         packed_bytes(WeightShape{c.target_vocabulary, c.width}, load.target);
}

double scratch_bytes(const Context& context, const TranslatorConfig& config,
                     const TranslationLoad& load) {
  const TranslatorConfig c = resolve(config);
  const EncoderScratch reads = encoder_scratch(encoder_of(c), encoder_stages(c), load.source),
                       writes = encoder_scratch(decoder_of(c), decoder_stages(c), load.target);
  return context.threads() * (kThreadScratch + std::max(reads.of_thread, writes.of_thread)) +
         std::max(
             {reads.of_call, writes.of_call, cross_rounded_bytes(c, load), loss_scratch(c, load)});
}

double gradient_bytes(const TranslatorConfig& config, index source_tokens, index target_tokens) {
  const TranslatorConfig c = resolve(config);
  const auto source = static_cast<double>(source_tokens),
             target = static_cast<double>(target_tokens);
  const auto table = [&](index rows) {
    return static_cast<double>(rows) * static_cast<double>(c.width);
  };
  const double own = c.share_embeddings ? 0 : table(c.target_vocabulary);
  const double tables = table(c.vocabulary) + own;
  return kFloat * (static_cast<double>(parameter_count(c)) - tables) +
         table_bytes(c.vocabulary, c.width, source, encoder_of(c).token_rows) +
         (c.share_embeddings
              ? 0
              : table_bytes(c.target_vocabulary, c.width, target, decoder_of(c).token_rows));
}

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/tagger.h"

#include <algorithm>
#include <cmath>

#include "fovea/model/tagger_layers.h"
#include "fovea/model/text_batch.h"

namespace fovea {

namespace {

template <class T>
std::vector<std::int32_t> largest_of_rows(Rows<const T> logits) {
  std::vector<std::int32_t> best(static_cast<std::size_t>(logits.rows));
  for (index n = 0; n < logits.rows; ++n) {
    const T* const row = logits[n];
    best[static_cast<std::size_t>(n)] =
        static_cast<std::int32_t>(std::max_element(row, row + logits.columns) - row);
  }
  return best;
}

template <class T>
std::vector<double> softmax_of_rows(Rows<const T> logits) {
  std::vector<double> all(static_cast<std::size_t>(logits.rows * logits.columns));
  for (index n = 0; n < logits.rows; ++n) {
    const T* const row = logits[n];
    double* const to = all.data() + n * logits.columns;
    const double most = *std::max_element(row, row + logits.columns);
    double sum = 0;
    for (index k = 0; k < logits.columns; ++k) sum += to[k] = std::exp(double{row[k]} - most);
    for (index k = 0; k < logits.columns; ++k) to[k] /= sum;
  }
  return all;
}

}  // namespace

Tagger::Tagger(const TaggerConfig& config, std::span<const CrfRules> rules, std::uint64_t seed,
               DType dtype)
    : Tagger(config, rules, ParameterSetOptions{seed, dtype}) {}

Tagger::Tagger(const TaggerConfig& config, std::span<const CrfRules> rules,
               const ParameterSetOptions& options)
    : config_(resolve(config)),
      parameters_(std::make_unique<ParameterSet>(options)),
      layers_(std::make_unique<TaggerLayers>(config_, rules, ParameterScope(*parameters_))) {}

Tagger::Tagger(Tagger&&) noexcept = default;
Tagger& Tagger::operator=(Tagger&&) noexcept = default;
Tagger::~Tagger() = default;

index Tagger::attentions() const { return layers_->attentions(); }

TagScores Tagger::scores(Tape& tape, const WordRows& rows, const TaggerLossOptions& o) const {
  const PackedRows sentences = layers_->lay_out(tape, rows);
  return {layers_->logits(tape, rows, sentences, o.dropout, {o.attention, o.inputs}), sentences};
}

Variable Tagger::loss(Tape& tape, const TaggedRows& batch, const TaggerLossOptions& o) const {
  if (batch.rows.words.empty()) return zero_loss(tape);
  return loss_of(tape, scores(tape, batch.rows, o), batch.tags, o);
}

Variable Tagger::loss_of(Tape& tape, const TagScores& scores,
                         std::span<const Vec<const std::int32_t>> tags,
                         const TaggerLossOptions& o) const {
  check(tags.size() == scores.logits.size(), "tagger: {} columns of tags for {}", tags.size(),
        scores.logits.size());
  Variable sum = loss_of_column(tape, scores, 0, tags[0], o.scale);
  for (std::size_t n = 1; n < tags.size(); ++n) {
    sum = add(tape, sum, loss_of_column(tape, scores, n, tags[n], o.scale));
  }
  return sum;
}

Variable Tagger::loss_of_column(Tape& tape, const TagScores& scores, std::size_t column,
                                Vec<const std::int32_t> tags, double scale) const {
  const Variable logits = scores.logits[column];
  check(tags.size == logits.rows(), "tagger: {} tags for {} words", tags.size, logits.rows());
  if (const Crf* crf = layers_->head(column).crf()) {
    return crf->loss(tape, logits, tags, scores.sentences, scale);
  }
  return cross_entropy(tape, logits, {.ids = tags}, scale);
}

std::vector<std::int32_t> Tagger::best_tags(const Context& context, const TagScores& scores,
                                            std::size_t column) const {
  const Variable logits = scores.logits[column];
  if (const Crf* crf = layers_->head(column).crf()) {
    return crf->decode(context, logits, scores.sentences);
  }
  std::vector<std::int32_t> best;
  with_type(logits.dtype(),
            [&]<class T>(std::type_identity<T>) { best = largest_of_rows<T>(logits.value<T>()); });
  return best;
}

std::vector<double> Tagger::probabilities(const Context& context, const TagScores& scores,
                                          std::size_t column) const {
  const Variable logits = scores.logits[column];
  if (const Crf* crf = layers_->head(column).crf()) {
    return crf->marginals(context, logits, scores.sentences);
  }
  std::vector<double> all;
  with_type(logits.dtype(),
            [&]<class T>(std::type_identity<T>) { all = softmax_of_rows<T>(logits.value<T>()); });
  return all;
}

}  // namespace fovea

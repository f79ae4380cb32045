// SPDX-License-Identifier: Apache-2.0
// A tagger: from the words of a sentence it computes a tag for each, with a softmax or a CRF over
// the encoder's rows (Lample et al. 2016, section 2); or several tags, with a head for each column.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/model/tagger_config.h"
#include "fovea/model/word_batch.h"
#include "fovea/nn/crf.h"
#include "fovea/nn/module.h"

namespace fovea {

class TaggerLayers;

/// Sentences and their tags. All members are views.
struct TaggedRows {
  WordRows rows = {};
  std::vector<Vec<const std::int32_t>> tags = {};  ///< [tag columns], [N] each
};

struct TaggerLossOptions {
  double scale = 1;      ///< 1 / (the words of the update) makes the loss a mean
  DropoutKey dropout{};  ///< seed and step of this update's masks; `layer` is not read
  /// If not empty: [attentions()], to which the forward adds what each attention looks like.
  std::span<HeadStatistics> attention{};
  /// If given: becomes what the model reads of each word [N, features], as an input of the tape,
  /// for its gradient.
  Variable* inputs = nullptr;
};

/// The scores of the tags of each word by itself, and which words are a sentence.
struct TagScores {
  std::vector<Variable> logits;  ///< [tag columns], [N, tags] each
  PackedRows sentences;
};

/// Only the optimizer and checkpoints change the parameters. All functions are const; several
/// threads may call them at once, each with its own tape, as long as no thread trains. No bit of a
/// sentence's result depends on the others.
class Tagger {
 public:
  /// `rules` [tag columns]: which tags may follow each other, for the CRFs; empty: all may. Throws
  /// as resolve() does, and kOutOfMemory.
  Tagger(const TaggerConfig& config, std::span<const CrfRules> rules, std::uint64_t seed,
         DType dtype = DType::kFloat32);
  Tagger(const TaggerConfig& config, std::span<const CrfRules> rules,
         const ParameterSetOptions& options);
  Tagger(Tagger&&) noexcept;
  Tagger& operator=(Tagger&&) noexcept;
  ~Tagger();

  /// The resolved configuration: no size is 0.
  const TaggerConfig& config() const { return config_; }
  /// In a fixed order, with names such as "words.tokens" and "output.weight".
  std::span<Parameter* const> parameters() const { return parameters_->parameters(); }
  /// How many layers of its encoder have attention.
  index attentions() const;

  /// A sentence may have at most `block` words.
  TagScores scores(Tape& tape, const WordRows& rows, const TaggerLossOptions& options = {}) const;
  /// scale x the sum over columns and sentences of -log of the probability of their tags, in nats:
  /// [1, 1].
  /// Throws what crf_loss and cross_entropy do.
  Variable loss(Tape& tape, const TaggedRows& batch, const TaggerLossOptions& options = {}) const;
  /// As loss(), of scores() that are there already.
  Variable loss_of(Tape& tape, const TagScores& scores,
                   std::span<const Vec<const std::int32_t>> tags,
                   const TaggerLossOptions& options = {}) const;

  /// The best tag of each word [N] in a column; with a CRF those of the best path of each sentence.
  /// The first of equal ones is taken.
  std::vector<std::int32_t> best_tags(const Context& context, const TagScores& scores,
                                      std::size_t column = 0) const;
  /// The probability of each tag of each word in a column: [N, tags], row after row; with a CRF
  /// over all paths.
  std::vector<double> probabilities(const Context& context, const TagScores& scores,
                                    std::size_t column = 0) const;

 private:
  Variable loss_of_column(Tape& tape, const TagScores& scores, std::size_t column,
                          Vec<const std::int32_t> tags, double scale) const;

  TaggerConfig config_;
  std::unique_ptr<ParameterSet> parameters_;
  std::unique_ptr<const TaggerLayers> layers_;
};

}  // namespace fovea

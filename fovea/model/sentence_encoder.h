// SPDX-License-Identifier: Apache-2.0
// A model that makes a vector of a text, in training: the layers of an encoder from elsewhere, and
// what makes one row of all those of a text (Reimers, Gurevych 2019, "Sentence-BERT").
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fovea/model/bert.h"
#include "fovea/model/encoder_config.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/model/model.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/text_batch.h"
#include "fovea/nn/pooling.h"

namespace fovea {

/// What the layers of the base are, and what a vector is. All but the dropout follows from the
/// base.
struct SentenceEncoderConfig : EncoderConfig {
  SentenceEncoderConfig() { sight = Sight::kWhole; }

  PoolingKind pooling = PoolingKind::kMean;  ///< kMean, kMax or kFirst
  bool normalizes = false;                   ///< vectors have the length 1
  std::string prompt = {};                   ///< stands before each text

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    const FieldTraits decided{.is_option = false};
    const FieldTraits size{.range = ValueRange::in(0, kLargestSize), .is_option = false};
    visit("pooling", pooling, "how the rows of a text become one", decided);
    visit("normalizes", normalizes, "whether vectors are divided by their length", decided);
    visit("prompt", prompt, "stands before each text", decided);
    visit("vocabulary", vocabulary, "number of tokens", size);
    visit("width", width, "of a vector", size);
    visit("heads", heads, "attention heads per layer", size);
    visit("ff", ff, "hidden width of the feed-forward network", size);
    visit("block", block, "most tokens that the model sees at once", size);
    visit("norm_epsilon", norm_epsilon, "added to variances of norms", decided);
    visit("activation", activation, "of the feed-forward network", decided);
    visit("encoder_dropout", dropout,
          "probability of dropping a weight or activation of the encoder in training; not said: as "
          "the base has it",
          {.range = ValueRange::share()});
    visit_base(visit);
  }

  friend bool operator==(const SentenceEncoderConfig&, const SentenceEncoderConfig&) = default;
};

/// The configuration with all that follows from these fields. Throws kOptionValue, and kShape.
SentenceEncoderConfig resolve(SentenceEncoderConfig config);

/// None: all layers are those of the base.
inline std::vector<SizedStage> sized_stages(const SentenceEncoderConfig&) { return {}; }

/// The number of learned values. Allocates nothing.
index parameter_count(const SentenceEncoderConfig& config);

/// The row of each text: [texts, width].
Variable pooled_rows(Tape& tape, PoolingKind kind, const BertRows& from);

/// What a forward of vectors takes beside the texts.
struct VectorOptions {
  double scale = 1;      ///< of the loss: 1 / the number of losses in an update
  DropoutKey dropout{};  ///< seed and step of this update's masks; `layer` is not read
  /// If not empty: [attentions()], to which the forward adds what each attention looks like.
  std::span<HeadStatistics> attention{};
};

/// Parameters: those of BertLayers, without a pooler and a head.
class SentenceEncoderLayers {
 public:
  /// `config` must be resolved.
  SentenceEncoderLayers(const SentenceEncoderConfig& config, const ParameterScope& scope)
      : pooling_(config.pooling), layers_(pretrained_layers(config), scope) {}

  index attentions() const { return layers_.attentions(); }
  Variable vectors(Tape& tape, const TextRows& texts, const VectorOptions& options) const;

 private:
  PoolingKind pooling_;
  BertLayers layers_;
};

class SentenceEncoder : public ModelOf<SentenceEncoderConfig, SentenceEncoderLayers> {
 public:
  using ModelOf::ModelOf;

  /// [texts, width], not divided by their length. No bit of a row depends on the other texts.
  Variable vectors(Tape& tape, const TextRows& texts, const VectorOptions& options = {}) const {
    return layers().vectors(tape, texts, options);
  }
};

/// The cost of the vectors of texts and, in training, of the gradient of their sum.
PassCost plan_pass(const Context& context, const SentenceEncoderConfig& config,
                   const TapeLoad& load, const ModelChange<SentenceEncoder>& change = {});

}  // namespace fovea

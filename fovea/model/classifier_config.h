// SPDX-License-Identifier: Apache-2.0
// The configuration of a text classifier, its parameter count and its FLOPs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/model/encoder_config.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/nn/pooling.h"

namespace fovea {

/// The kind of answer that a classifier gives for a text.
enum class ClassifierTask : std::uint8_t {
  kSingleLabel,  ///< one of several classes: softmax
  kBinary,       ///< one of two classes, by a single logit: sigmoid
  kMultiLabel,   ///< any of several labels, each a question of its own: sigmoid
  kRegression,   ///< numbers
};

inline constexpr EnumName<ClassifierTask> kClassifierTaskNames[] = {
    {ClassifierTask::kSingleLabel, "single-label"},
    {ClassifierTask::kBinary, "binary"},
    {ClassifierTask::kMultiLabel, "multi-label"},
    {ClassifierTask::kRegression, "regression"}};
inline std::span<const EnumName<ClassifierTask>> enum_names(ClassifierTask) {
  return kClassifierTaskNames;
}

/// What stands between a text and its logits.
enum class ClassifierModel : std::uint8_t {
  kAuto,     ///< of a text linear, unless a setting of the others says more; else by `encoder`
  kLinear,   ///< counted n-grams, and a convex problem that is solved (fovea/linear)
  kBag,      ///< a bag of the embeddings of tokens and n-grams
  kEncoder,  ///< the layers of `encoder`
};
inline constexpr EnumName<ClassifierModel> kClassifierModelNames[] = {
    {ClassifierModel::kAuto, "auto"},
    {ClassifierModel::kLinear, "linear"},
    {ClassifierModel::kBag, "bag"},
    {ClassifierModel::kEncoder, "encoder"}};
inline std::span<const EnumName<ClassifierModel>> enum_names(ClassifierModel) {
  return kClassifierModelNames;
}

/// How the two texts of a pair are read. The tokens of a pair are those of the first text, a
/// separator (the last id of the vocabulary), those of the second, and a separator.
enum class PairEncoder : std::uint8_t {
  kNone,   ///< a text is no pair
  kBi,     ///< each by itself; the output reads [u, v, |u - v|, u * v] (Conneau et al. 2017, 3.1)
  kCross,  ///< both at once, with segment embeddings (Devlin et al. 2019, section 3)
};
inline constexpr EnumName<PairEncoder> kPairEncoderNames[] = {
    {PairEncoder::kNone, "none"}, {PairEncoder::kBi, "bi"}, {PairEncoder::kCross, "cross"}};
inline std::span<const EnumName<PairEncoder>> enum_names(PairEncoder) { return kPairEncoderNames; }

/// Tokens, or with `features` rows of numbers -> embeddings (+ positions) -> encoder -> pooling ->
/// dropout -> linear. Layers of the encoder see the whole text. Beside what is pooled stand the
/// n-grams of the tokens, if asked for: rows of a table by their hash (model/ngram_ids.h), whose
/// sum is divided by the root of their number. Sizes given as 0 follow from the others; resolve()
/// fills them in.
struct ClassifierConfig : EncoderConfig {
  ClassifierConfig() {
    sight = Sight::kWhole;
    pools = true;
    position = PositionKind::kNone;
    block = 512;
  }

  ClassifierModel kind = ClassifierModel::kAuto;
  ClassifierTask task = ClassifierTask::kSingleLabel;
  PairEncoder pair_encoder = PairEncoder::kNone;
  PoolingKind pooling = PoolingKind::kMean;
  double output_dropout = 0;
  index ngrams = 1;
  index ngram_width = 0;
  index buckets = 0;
  index classes = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("model", kind,
          "linear: n-grams and a convex problem; bag: embeddings of tokens and n-grams; encoder: "
          "the layers of --encoder; auto: linear, unless an option of the others is given",
          {.place = HelpPlace::kModel});
    visit("task", task, "one class of several, one of two by a single logit, any labels, numbers",
          {.is_option = false});
    visit("encoder", encoder,
          "layers that read the tokens, such as conv3,attention:window=8,bilstm; none: the text is "
          "a bag of its words",
          {.place = HelpPlace::kModel, .shown = "LAYERS"});
    visit(
        "pair_encoder", pair_encoder,
        "bi: read each text by itself, and compare what is pooled; cross: read both at once, with "
        "separators and segment embeddings",
        {.needs = {"input", "pairs"}, .place = HelpPlace::kModel, .shown = "bi|cross"});
    visit(
        "pooling", pooling,
        "how the vectors of a text become one; last: of a bidirectional layer where each direction "
        "ends; with textcnn in --encoder: max");
    visit(
        "ngrams", ngrams,
        "n-grams of 2 to N tokens are read as well; 1: no n-grams; 0: 2 without --encoder, 1 with "
        "it");
    visit("ngram_width", ngram_width, "--ngrams: width of their table; 0: 16");
    visit("buckets", buckets,
          "--ngrams: rows of their table, into which they are hashed; 0: as many as the training "
          "texts have n-grams, but at most 500000");
    visit_init(visit);
    visit_sizes(visit);
    visit("block", block, "context length: most tokens that the model sees at once",
          {.range = ValueRange::in(1, kLargestSize), .is_option = false});
    visit("dropout", output_dropout,
          "probability of dropping a number of the pooled text in training",
          {.range = ValueRange::share()});
    visit("encoder_dropout", dropout,
          "probability of dropping a weight or activation of the encoder in training",
          {.range = ValueRange::share()});
    visit("freeze_embeddings", freeze_embeddings,
          "with --embeddings: the table of the tokens is not trained", {.needs = {"embeddings"}});
    visit_positions(under("Positions", visit));
    visit_attention(under("Attention", visit));
    visit_layers(under("Layers", visit));
    visit("classes", classes, "number of classes, labels or numbers", {.is_option = false});
    visit("vocabulary", vocabulary, "number of tokens", {.is_option = false});
    visit("features", features, "input npz: numbers of a time step, or of each of its joints",
          {.range = ValueRange::in(0, kLargestSize), .is_option = false});
    visit("joints", joints, "input npz: joints of a time step; 0: none",
          {.range = ValueRange::in(0, kLargestSize), .is_option = false});
  }

  friend bool operator==(const ClassifierConfig&, const ClassifierConfig&) = default;
};

/// The configuration with every size filled in. Throws kShape or kOptionValue that names the
/// option, its value and the rule.
ClassifierConfig resolve(ClassifierConfig config);

/// The stages of a resolved configuration, none for a bag of words. Throws kOptionValue or kShape.
std::vector<SizedStage> sized_stages(const ClassifierConfig& config);

/// The token between the two texts of a pair; -1: the texts are no pairs.
std::int32_t pair_separator(const ClassifierConfig& config);

/// How many logits a text gets: 1 with kBinary, else the classes.
constexpr index logit_count(ClassifierTask task, index classes) {
  return task == ClassifierTask::kBinary ? 1 : classes;
}
constexpr index logit_count(const ClassifierConfig& c) { return logit_count(c.task, c.classes); }

/// The number of learned values. Allocates nothing.
index parameter_count(const ClassifierConfig& config);

/// How many parameters of a resolved configuration are frozen: the table of the tokens, or none.
index frozen_count(const ClassifierConfig& config);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// A text classifier: from the tokens of a text it computes what class or classes it has, or
// numbers. With attention without residual sums, and the mean, it is the model of Su 2018 (spec
// L15); without an encoder it is a bag of words.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fovea/grad/ops.h"
#include "fovea/model/bert.h"
#include "fovea/model/encoder_config.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/model/model.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/text_batch.h"
#include "fovea/model/text_encoder.h"
#include "fovea/nn/embedding.h"
#include "fovea/nn/embedding_bag.h"
#include "fovea/nn/linear.h"
#include "fovea/nn/module.h"
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

/// The kind of model between a text and its logits.
enum class ClassifierModel : std::uint8_t {
  kAuto,        ///< of a text linear, unless a setting of the others says more; else by `encoder`
  kLinear,      ///< counted n-grams, and a convex problem that is solved (fovea/linear)
  kBag,         ///< a bag of the embeddings of tokens and n-grams
  kEncoder,     ///< the layers of `encoder`
  kPretrained,  ///< those of a model from elsewhere (`base`)
};
inline constexpr EnumName<ClassifierModel> kClassifierModelNames[] = {
    {ClassifierModel::kAuto, "auto"},
    {ClassifierModel::kLinear, "linear"},
    {ClassifierModel::kBag, "bag"},
    {ClassifierModel::kEncoder, "encoder"},
    {ClassifierModel::kPretrained, "pretrained"}};
inline std::span<const EnumName<ClassifierModel>> enum_names(ClassifierModel) {
  return kClassifierModelNames;
}

/// How the two texts of a pair are read. The tokens of a pair are those of the first text, a
/// separator (the last id of the vocabulary), those of the second, and a separator; of a base,
/// which is a cross-encoder, those between its own marks.
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
          "the layers of --encoder; pretrained: those of --base; auto: linear, unless an option of "
          "the others is given",
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
    visit_base(visit);
  }

  friend bool operator==(const ClassifierConfig&, const ClassifierConfig&) = default;
};

/// A classifier on these layers. What its outputs are is not said yet.
ClassifierConfig classifier_on(const BertConfig& layers);

/// The configuration with every size filled in. Throws kShape or kOptionValue that names the
/// option, its value and the rule.
ClassifierConfig resolve(ClassifierConfig config);

/// The stages of a resolved configuration, none for a bag of words. Throws kOptionValue or kShape.
std::vector<SizedStage> sized_stages(const ClassifierConfig& config);

/// The token behind the first text of a pair; -1: the texts are no pairs, or those of a base that
/// does not tell both texts apart.
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

/// Texts and what is known about them. All members are views.
struct LabelledTexts {
  TextRows texts = {};
  /// [sequences] kSingleLabel, kBinary: the class of each; -1: not known, no loss
  Vec<const std::int32_t> labels = {};
  /// [sequences, classes] kMultiLabel: 1 for a label that the text has, 0 for one that it has not,
  /// or between, and -1 for one not known, without a loss. kRegression: the numbers.
  Rows<const float> values = {};
};

struct ClassifierLossOptions {
  double scale = 1;  ///< 1 / (loss_weight() of the update) makes the loss a mean
  /// [classes], or empty: all are 1. kSingleLabel, kBinary: of each class. kMultiLabel: of the
  /// texts that have the label (PyTorch's pos_weight). Not with kRegression.
  Vec<const double> class_weights = {};
  /// e in [0, 1): a class keeps 1 - e of the target, and e is shared by all of them. Not with
  /// kRegression.
  double label_smoothing = 0;
  DropoutKey dropout{};  ///< seed and step of this update's masks; `layer` is not read
  /// If not empty: [attentions()], to which the forward adds what each attention looks like.
  std::span<HeadStatistics> attention{};
  /// If given: becomes what the model reads, as an input of the tape, for its gradient. The rows of
  /// the tokens before positions join them; of numbers, these.
  Variable* inputs = nullptr;
  /// If given, of a model with n-grams: becomes the row of each n-gram, as such an input.
  Variable* ngrams = nullptr;
};

/// The observers of a forward: see ClassifierLossOptions.
struct ClassifierView {
  std::span<HeadStatistics> attention = {};
  Variable* inputs = nullptr;
  Variable* ngrams = nullptr;
};

/// `config` must be resolved. Parameters, in this order: with features input.* of FrameEmbedding;
/// those of TextEncoder; segments.tokens [2, width] (cross-encoders of pairs); pooling.query
/// (attention); ngrams.weight [buckets, ngram_width], if there are n-grams; output.weight [logits,
/// F], output.bias [logits]. F is width + ngram_width; four times as many with a bi-encoder. With
/// the layers of a base those of BertLayers, with its pooler and its head.
class ClassifierLayers {
 public:
  ClassifierLayers(const ClassifierConfig& config, const ParameterScope& scope);

  /// The logits [sequences, logit_count()].
  Variable logits(Tape& tape, const TextRows& texts, const DropoutKey& key,
                  const ClassifierView& view) const;
  /// The logits by TextEncoder::token_table(), for an inference tape.
  Variable logits(Tape& tape, const TextRows& texts, const Tensor& token_table) const;
  const TextEncoder& encoder() const { return *encoder_; }
  /// The columns that TextEncoder says; 0 if what a token becomes depends on its segment, or on
  /// what a base makes of it.
  index token_table_columns() const {
    return segments_ || pretrained_ ? 0 : encoder_->token_table_columns();
  }
  /// With attention as pooling: the weight of each token [N] in its text, for an inference tape;
  /// for rows of numbers with joints [joints x N], as lay_out_frames() has them.
  std::vector<double> token_weights(Tape& tape, const TextRows& texts) const;

  index attentions() const {
    return pretrained_ ? pretrained_->attentions() : encoder_->attentions();
  }

 private:
  // The rows that are pooled, and which of them belong to a text.
  struct Encoded {
    Variable x;
    PackedRows texts;
  };

  Encoded encode(Tape& tape, const TextRows& texts, const DropoutKey& key,
                 const ClassifierView& view) const;
  Variable features(Tape& tape, const TextRows& texts, const DropoutKey& key,
                    const ClassifierView& view) const;

  Variable ngrams(Tape& tape, const TextRows& texts, Variable* inputs) const;
  Variable with_ngrams(Tape& tape, Variable pooled, const TextRows& texts,
                       Variable* inputs = nullptr) const;

  // The sequences that the encoder reads: the texts or, with a bi-encoder, both texts of each pair.
  TextRows read_apart(Tape& tape, const TextRows& texts) const;
  Vec<const std::int32_t> segments_of(Tape& tape, const TextRows& texts) const;
  Variable compared(Tape& tape, Variable features) const;

  index block_, joints_, frame_features_;
  std::int32_t separator_;  // of pairs; -1: none
  bool is_bi_;
  index longest_, buckets_;  // of the n-grams
  double dropout_;
  std::optional<FrameEmbedding> frames_;
  std::optional<BertLayers> pretrained_;  // of a base: there are no other layers then
  std::optional<TextEncoder> encoder_;
  std::optional<Embedding> segments_;
  std::optional<Pooling> pooling_;
  std::optional<EmbeddingBag> ngrams_;
  std::optional<Linear> output_;
};

/// [N, classes] for an inference tape, by the logits [N, logit_count()]: as
/// Classifier::predictions.
Variable predictions_of(Tape& tape, Variable logits, ClassifierTask task);

class Classifier : public ModelOf<ClassifierConfig, ClassifierLayers> {
 public:
  using ModelOf::ModelOf;

  /// scale x the sum of the losses of all texts, in nats, or of squared errors: [1, 1]. A text may
  /// have at most `block` tokens.
  Variable loss(Tape& tape, const LabelledTexts& batch,
                const ClassifierLossOptions& options = {}) const;
  /// The loss() for logits() that are there already.
  Variable loss_of(Tape& tape, Variable logits, const LabelledTexts& batch,
                   const ClassifierLossOptions& options = {}) const;
  /// The divisor that makes a mean of the sum of the losses, as in PyTorch: the sum of the weights
  /// of the known classes; the number of known labels; the number of numbers.
  double loss_weight(const LabelledTexts& batch, const ClassifierLossOptions& options = {}) const;

  /// [sequences, logit_count()].
  Variable logits(Tape& tape, const TextRows& texts,
                  const ClassifierLossOptions& options = {}) const;
  /// [sequences, classes] for an inference tape: the probability of each class (kSingleLabel,
  /// kBinary) or label; with kRegression the numbers. The bits of a text do not depend on the
  /// others.
  Variable predictions(Tape& tape, const TextRows& texts) const;
  /// The columns of token_table(); 0 if the model has none.
  index token_table_columns() const;
  /// [vocabulary, token_table_columns()]: what the first step makes of every token, however the
  /// texts are. Valid until a parameter changes. It pays where many more tokens are read than the
  /// vocabulary has.
  Tensor token_table(const Context& context) const;
  /// The predictions(), with the same bits, by that table.
  Variable predictions(Tape& tape, const TextRows& texts, const Tensor& token_table) const;
  /// The predictions() for logits() that are there already.
  Variable predictions_of(Tape& tape, Variable logits) const {
    return fovea::predictions_of(tape, logits, config().task);
  }

  /// With attention as pooling: the weight of each token [N] in its text, for an inference tape.
  std::vector<double> token_weights(Tape& tape, const TextRows& texts) const;
};

/// The load of a classifier.
struct TextLoad {
  index texts = 0;
  TapeLoad tape{};  ///< of their tokens, or of the rows of their time steps

  index listed() const { return tape.tokens; }
  TextLoad part(double share) const { return {part_of(texts, share), tape.part(share)}; }
};
PassCost plan_pass(const Context& context, const ClassifierConfig& config, const TextLoad& load,
                   const ModelChange<Classifier>& change = {});

}  // namespace fovea

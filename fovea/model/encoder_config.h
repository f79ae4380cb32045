// SPDX-License-Identifier: Apache-2.0
// The fields of embeddings and encoder that every kind of model has. The configuration of a model
// inherits this and lists the fields among its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"
#include "fovea/base/types.h"
#include "fovea/nn/attention_rnn.h"
#include "fovea/nn/options.h"
#include "fovea/parts/variant.h"

namespace fovea {

/// How parameters start.
enum class InitScheme : std::uint8_t {
  kGpt2,    ///< matrices and tables normal(0, 0.02); recurrent layers as in PyTorch
  kSource,  ///< as in the book: tables normal(0, 1); RNN, GRU, LSTM, their attention and the
            ///< output above them normal(0, 0.01), biases there 0; else PyTorch's
  kKeras,   ///< tables uniform in +-0.05, matrices glorot_uniform_init(); convolutions and
            ///< recurrent layers as in PyTorch
};

inline constexpr EnumName<InitScheme> kInitSchemeNames[] = {
    {InitScheme::kGpt2, "gpt2"}, {InitScheme::kSource, "source"}, {InitScheme::kKeras, "keras"}};
inline std::span<const EnumName<InitScheme>> enum_names(InitScheme) { return kInitSchemeNames; }

/// Which rows of its sequence the result of a layer may depend on.
enum class Sight : std::uint8_t {
  kPast,   ///< its own and earlier ones, as what predicts the next token must
  kWhole,  ///< all
};

/// The meaning of some choices. A configuration without a revision is from the time of the first.
enum class Revision : std::uint8_t {
  kFirst = 1,   ///< position shaw: keys alone; pooling last: the last row, also of two directions
  kSecond = 2,  ///< position shaw: keys and values; pooling last: the end of each direction
  kThird = 3,   ///< textcnn: windows within the text; before, it was padded with zeros
};
inline constexpr EnumName<Revision> kRevisionNames[] = {
    {Revision::kFirst, "1"}, {Revision::kSecond, "2"}, {Revision::kThird, "3"}};
inline std::span<const EnumName<Revision>> enum_names(Revision) { return kRevisionNames; }

/// The largest size of anything: ids, offsets and positions are int32.
inline constexpr index kLargestSize = INT32_MAX;

/// The layers of a model from elsewhere from which a training began (model/bert.h), as far as
/// EncoderConfig has no other field for them.
struct PretrainedLayers {
  index layers = 0;  ///< 0: there are none; the layers are those of `encoder`
  index types = 0;
  index padding = -1;
  index buckets = 0;
  bool relu_pooler = false;
  index separator = -1;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("layers", layers, "number of blocks; 0: the model did not begin from elsewhere",
          {.range = ValueRange::from(0), .is_option = false});
    visit("types", types, "of tokens; 0: there are none",
          {.range = ValueRange::in(0, kLargestSize), .is_option = false});
    visit("padding", padding, "the token without a position; -1: there is none",
          {.range = ValueRange::in(-1, kLargestSize), .is_option = false});
    visit("buckets", buckets, "of the distances that scores have a bias by; 0: none",
          {.range = ValueRange::in(0, kLargestSize), .is_option = false});
    visit("relu_pooler", relu_pooler, "the layer over the first row has a ReLU, and no tanh",
          {.is_option = false});
    visit("separator", separator,
          "the token behind the first text of a pair; what follows has the second type; -1: texts "
          "are no pairs, or their tokens have one type",
          {.range = ValueRange::in(-1, kLargestSize), .is_option = false});
  }

  friend bool operator==(const PretrainedLayers&, const PretrainedLayers&) = default;
};

/// Sizes given as 0 follow from the others; resolve_encoder() fills them in. Attention layers of
/// any kind of model take what is said about attention.
struct EncoderConfig {
  // No fields: the kind of the model decides.
  Sight sight = Sight::kPast;
  AttentionRnnDefects attention_rnn_defects{};
  bool freeze_embeddings = false;       ///< the table of the tokens is never trained
  RowUse token_rows = RowUse::kSparse;  ///< kDense: the table of the tokens makes the logits, too
  bool pools = false;                   ///< rows of a text become one, as textcnn needs it
  bool shares_distances = false;  ///< position t5: all layers share one table (distances.weight)
  /// Of language models: networks of a block, each --ff wide, of which a row takes so many
  /// (nn/experts.h); 0: it has one, for all rows.
  index experts = 0;
  index experts_per_token = 0;
  std::string encoder = {};
  InitScheme init = InitScheme::kGpt2;
  index heads = 4;
  index kv_heads = 0;
  index head_dim = 0;
  index width = 128;
  index ff = 0;
  index block = 64;
  double dropout = 0;
  PositionKind position = PositionKind::kLearned;
  index position_max = 0;
  PositionJoin position_join = PositionJoin::kAdd;
  SinusoidOrder sinusoid = SinusoidOrder::kInterleaved;
  double embedding_scale = 0;
  index t5_buckets = 32;
  index t5_max_distance = 128;
  index shaw_clip = 16;
  double rope_base = 10000;
  double rope_local_base = 0;
  std::string rotary_divisors = {};  ///< divisors_of(), with commas between
  double rotary_amplitude = 1;
  bool qk_norm = false;
  AttentionScoreKind score = AttentionScoreKind::kDot;
  AttentionNormKind attention_norm = AttentionNormKind::kSoftmax;
  bool log_n_scale = false;
  double score_scale = 0;
  double softcap = 0;
  bool sink = false;
  NormKind norm = NormKind::kLayer;
  NormPosition norm_position = NormPosition::kPre;
  LayerNormVariant ln_variant = LayerNormVariant::kStandard;
  double norm_epsilon = 1e-5;
  bool bias = false;
  LayerActivation activation = LayerActivation::kGelu;
  index vocabulary = 0;
  /// Numbers of a time step, or of a joint of it, that stand in place of a token; 0: tokens.
  index features = 0;
  index joints = 0;  ///< of a time step; 0: it is one row
  double forget_bias = 1;
  Revision revision = Revision::kThird;
  PretrainedLayers base = {};

  /// Whether the layers are those of a model from elsewhere.
  bool has_base() const { return base.layers > 0; }

  /// Sets the values that a configuration means that was written before these were fields.
  void set_first_revision() {
    forget_bias = 0;
    revision = Revision::kFirst;
  }

  friend bool operator==(const EncoderConfig&, const EncoderConfig&) = default;

 protected:
  // Parts of the list of fields.
  template <class Visitor>
  void visit_init(Visitor&& visit) {
    visit("init", init, "how parameters start: as in GPT-2, in the book's code, or in Keras");
  }

  template <class Visitor>
  void visit_sizes(Visitor&& visit) {
    visit("heads", heads, "attention heads per layer",
          {.range = ValueRange::in(1, kLargestSize), .part = "heads", .place = HelpPlace::kModel});
    visit(
        "kv_heads", kv_heads,
        "heads of keys and values, each shared by a group of queries (GQA); 0: as many as --heads",
        {.part = "heads"});
    visit("head_dim", head_dim, "width of a head; 0: --width / --heads",
          {.range = ValueRange::in(0, kLargestSize), .part = "heads"});
    visit("width", width, "width of the model (d_model)",
          {.range = ValueRange::in(1, kLargestSize), .place = HelpPlace::kModel});
    visit("ff", ff,
          "hidden width of the feed-forward network, with any --activation; 0: 4 times --width",
          {.range = ValueRange::in(0, kLargestSize), .part = "ff"});
  }

  template <class Visitor>
  void visit_positions(Visitor&& visit) {
    visit("position", position, "position encoding", {.part = "position"});
    visit(
        "position_max", position_max,
        "--position learned or sinusoidal: rows of the table; 0: as many as the model sees at once",
        {.part = "position rows"});
    visit("position_join", position_join,
          "--position learned or sinusoidal: add the row to the embedding, or concatenate and "
          "project "
          "both");
    visit("sinusoid", sinusoid, "--position sinusoidal: order of sines and cosines",
          {.part = "sinusoid"});
    visit("embedding_scale", embedding_scale,
          "factor of token embeddings; 0: the square root of --width with --position sinusoidal, "
          "else 1",
          {.range = ValueRange::in(0, 1e6, "chosen by --position")});
    visit("t5_buckets", t5_buckets, "--position t5: buckets of distances, a learned bias each",
          {.range = ValueRange::in(2, kLargestSize), .part = "t5"});
    visit("t5_max_distance", t5_max_distance,
          "--position t5: distances from here on share a bucket",
          {.range = ValueRange::in(1, kLargestSize), .part = "t5"});
    visit("shaw_clip", shaw_clip,
          "--position shaw or shaw-keys: distances from here on share a learned vector",
          {.range = ValueRange::in(1, kLargestSize), .part = "shaw"});
    visit("rope_base", rope_base, "--position rotary: base of the angles",
          {.range = ValueRange::over(0), .part = "rotary"});
    visit("rope_local_base", rope_local_base,
          "--position rotary: base of the angles in layers with a window; 0: --rope-base",
          {.range = ValueRange::from(0, "--rope-base"), .part = "local rotary"});
    visit("rotary_divisors", rotary_divisors,
          "of a model that reads farther than it was trained to", {.is_option = false});
    visit("rotary_amplitude", rotary_amplitude, "the same: factor of cosines and sines",
          {.is_option = false});
  }

  template <class Visitor>
  void visit_attention(Visitor&& visit) {
    visit("qk_norm", qk_norm,
          "normalise queries and keys of each head (RMS) before their product, with learned gains",
          {.part = "attention"});
    visit("score", score, "how a query and a key become a score", {.part = "attention"});
    visit("attention_norm", attention_norm, "how scores become weights", {.part = "attention"});
    visit("log_n_scale", log_n_scale,
          "multiply scores by log(n) / log(block), n the keys that a query sees and block the most "
          "that it may see",
          {.part = "attention"});
    visit("score_scale", score_scale,
          "factor of the scores; 0: that of --score, such as 1 / sqrt(--head-dim) of dot",
          {.range = ValueRange::from(0, "that of --score"), .part = "attention"});
    visit("softcap", softcap, "a score s becomes C tanh(s / C), C this cap; 0: no cap",
          {.part = "attention"});
    visit("sink", sink, "a learned sink in every head: weight that goes to no key",
          {.part = "attention"});
  }

  template <class Visitor>
  void visit_layers(Visitor&& visit) {
    visit("norm", norm, "LayerNorm or RMSNorm", {.part = "norm"});
    visit("norm_position", norm_position,
          "normalise before each part of a layer, after its sum, or before and behind it",
          {.part = "norm"});
    visit("ln_variant", ln_variant, "--norm layer: divide by sqrt(var + eps), or by std + eps",
          {.part = "norm"});
    visit("norm_epsilon", norm_epsilon, "added to variances and mean squares of norms",
          {.is_option = false});
    visit("bias", bias, "biases in projections and norms", {.part = "bias"});
    visit("activation", activation, "activation of the feed-forward network",
          {.part = "activation"});
    visit("forget_bias", forget_bias,
          "LSTM layers: added to the biases of the forget gates at the start, so that cells keep "
          "what "
          "they hold",
          {.part = "lstm"});
    visit("revision", revision, "what position shaw, pooling last and textcnn mean",
          {.is_option = false});
  }

  template <class Visitor>
  void visit_base(Visitor&& visit) {
    visit("base", base, "what else is known of the layers of the model that it began from");
  }
};

/// The divisors of the angles of rotary positions, as Rotary has them; none: all are 1. Throws
/// kOptionValue unless they are numbers over 0.
std::vector<double> divisors_of(const EncoderConfig& config);
/// As the configuration has them.
std::string divisors_text(std::span<const double> divisors);

/// Throws kOptionValue unless the value is in `least` to `most`.
void check_size(std::string_view name, index value, index least, index most = kLargestSize);

/// Throws kOptionValue unless the cap is 0, which is none, or a number over 0 of float32.
void check_softcap(std::string_view name, double cap);

/// Fills in every size of a configuration whose fields are in their ranges, except head_dim where
/// the heads do not divide the width. Throws kShape or kOptionValue that names the option, its
/// value and the rule.
void resolve_encoder(EncoderConfig& config);

/// Throws as resolve_encoder() if what is said about attention does not fit together.
void check_attention(const EncoderConfig& config);

}  // namespace fovea

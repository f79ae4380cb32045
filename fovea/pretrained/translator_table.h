// SPDX-License-Identifier: Apache-2.0
// The table of translators of other programs: what a model of each architecture is called in a
// config.json and in its tensors, and how its translations are searched. What a model asks for and
// the table does not know is refused by an error that names it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/model/translator.h"
#include "fovea/pretrained/encoder_table.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// What says whether the logits have a matrix of their own.
enum class HeadRule : std::uint8_t {
  kByConfig,
  kByFile,  ///< whether the file has it, whatever config.json says: so does transformers
};

struct TranslatorArchitecture {
  /// The ids of marks where no file says them.
  struct Marks {
    index padding, end, begin;
  };

  std::string_view name;        ///< model_type
  std::string_view class_name;  ///< of transformers
  /// Sets the sizes and layers that a config.json describes. A key that it does not ask for is
  /// refused later.
  void (*read)(const ForeignObject& config, TranslatorConfig& c);
  /// The table of both sides; of a side that has its own. Without ".weight".
  std::string_view shared, of_source, of_target;
  std::string_view head;  ///< the output projection
  HeadRule head_rule = HeadRule::kByConfig;
  std::string_view logits_bias = {};             ///< "": there is none
  std::span<const EncoderTensor> of_model = {};  ///< beside tables, head and layers
  /// Behind these stand the number of a layer and the names of its tensors. A feed-forward network
  /// with a gate has "feed_forward.gated" in the place of "feed_forward.in".
  std::string_view encoder_layer, decoder_layer;
  std::span<const EncoderTensor> in_encoder, in_decoder;
  index least_tensors;  ///< of a layer
  /// Sines and cosines, which not every file has.
  std::string_view source_positions = {}, target_positions = {};
  std::string_view unread = {};  ///< a tensor that some files have and nothing reads
  Marks marks;
  bool writes_padding = false;  ///< the mark of padding may stand in a translation
  bool one_vocabulary = false;  ///< both sides have the same (shared_vocabulary.h)
};

bool is_translator_architecture(std::string_view name);
/// Whether a config.json is that of such a model without its decoder (T5EncoderModel).
bool is_source_encoder(const ForeignObject& config);
/// The row that model_type names. Throws kModelWrongKind, which lists the known ones.
const TranslatorArchitecture& translator_architecture(const ForeignObject& config);

/// Which layers of a model are read.
enum class TranslatorPart : std::uint8_t {
  kWhole,
  kEncoder,  ///< what there is of a decoder is left out
};

/// The sizes and layers that a config.json describes, resolved, without a bias of the logits and
/// without dropout.
/// Throws kModelWrongKind for a key or a value that fovea does not know, which it names;
/// kModelDamaged.
TranslatorConfig foreign_translator_config(const ForeignObject& config,
                                           TranslatorPart part = TranslatorPart::kWhole);

/// The tensors whose rows are those of one of our parameters, one behind another.
std::vector<std::string> translator_tensors(const TranslatorArchitecture& architecture,
                                            const TranslatorConfig& config, std::string_view ours);
/// Other names under which a file may have a table instead of translator_tensors(), or beside it.
std::vector<std::string> other_names_of_table(const TranslatorArchitecture& architecture,
                                              const TranslatorConfig& config,
                                              std::string_view ours);

/// When transformers ends a beam search.
enum class EarlyStop : std::uint8_t {
  kNo,     ///< false: when nothing that goes on is better, at its present length, than what ended
  kYes,    ///< true: when as many hypotheses as beams have ended
  kNever,  ///< "never": when nothing that goes on can become better
};

/// How translations are made, as a generation_config.json says.
struct TranslationRules {
  token begin = kNoToken;          ///< with which every translation begins
  token end = kNoToken;            ///< with which it ends: the first of these
  std::vector<token> ends = {};    ///< each of these ends a translation
  std::vector<token> banned = {};  ///< are never chosen
  index beams = 1;
  double length_penalty = 1;  ///< exponent of the number of tokens with the end
  EarlyStop early_stop = EarlyStop::kNo;
  index most_tokens = 0;      ///< with the end; 0: not said
  bool forced_end = false;    ///< where there is no more room the end has probability 1
  bool renormalizes = false;  ///< banned tokens have no probability
};

/// By generation_config.json or, without one, by the same keys of config.json. `tokens`: of the
/// target. Throws as foreign_translator_config().
TranslationRules translation_rules(const TranslatorArchitecture& architecture,
                                   const ForeignObject& said, const ForeignObject& config,
                                   index tokens);

}  // namespace fovea

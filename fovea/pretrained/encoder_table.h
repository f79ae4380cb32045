// SPDX-License-Identifier: Apache-2.0
// The table of encoders: what a model of each architecture is called in a config.json and in its
// tensors. What a model asks for and its row does not know is refused by an error that names it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/model/bert.h"
#include "fovea/pretrained/foreign_json.h"

namespace fovea {

/// The tensors that hold the rows of ours, one behind another. Names are without ".weight" and
/// ".bias".
struct EncoderTensor {
  std::string_view ours;
  std::array<std::string_view, 3> theirs;
};

/// What says the id of the token that has no position (BertConfig::padding).
enum class PaddingRule : std::uint8_t {
  kNone,       ///< every token has one
  kFromFile,   ///< pad_token_id, 1 unless said
  kAlwaysOne,  ///< whatever the file says
};

struct EncoderArchitecture {
  /// Keys of config.json.
  struct Keys {
    std::string_view width = "hidden_size", layers = "num_hidden_layers",
                     heads = "num_attention_heads", ff = "intermediate_size",
                     activation = "hidden_act";
    std::string_view norm_epsilon = "layer_norm_eps";  ///< "": it is 1e-12
    std::string_view types = "type_vocab_size";        ///< "": there are no types
    std::string_view buckets = {};  ///< of distances, which must be 32; "": there are none
    std::string_view dropout = "hidden_dropout_prob";
    std::string_view text_dropout = "classifier_dropout";  ///< before a head that reads texts
    double usual_text_dropout = -1;  ///< where the file says nothing; -1: as `dropout`
  };
  /// Of the layers of a head, which stand behind no prefix. The first one is that over the pooled
  /// row; "": it is the pooler of the encoder.
  struct Heads {
    std::string_view pooler, text, tokens;
  };

  std::string_view name;        ///< model_type
  std::string_view class_name;  ///< before "ForSequenceClassification"
  std::string_view prefix;
  std::string_view layer;  ///< "encoder.layer.": the number of the block follows
  std::span<const EncoderTensor> tensors, of_block;
  Keys keys;
  Heads heads;
  PaddingRule padding = PaddingRule::kNone;
  Activation pooled = Activation::kTanh;
};

/// The row that model_type names, BERT's if the file names none. Throws kModelWrongKind, which
/// lists the known ones.
const EncoderArchitecture& encoder_architecture(const ForeignObject& config);

/// The sizes of an encoder without a head by its config.json. Throws kModelWrongKind for a key or a
/// value that fovea does not know, which it names; kModelDamaged.
BertConfig encoder_config(const EncoderArchitecture& architecture, const ForeignObject& config);

/// Sets what a training drops, as its config.json says of it, before such a head, too.
void take_dropout(BertConfig& config, const EncoderArchitecture& architecture,
                  const ForeignObject& said, BertHead head);

/// The tensors of one of our parameters. Those behind no prefix begin with a point.
std::vector<std::string> encoder_tensors(const EncoderArchitecture& architecture, BertHead head,
                                         std::string_view ours);

/// The same, as a model of transformers with this head calls them: without a head there is no
/// prefix.
std::vector<std::string> encoder_tensor_names(const EncoderArchitecture& architecture,
                                              BertHead head, std::string_view ours);

}  // namespace fovea

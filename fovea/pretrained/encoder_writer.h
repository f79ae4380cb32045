// SPDX-License-Identifier: Apache-2.0
// An encoder with a head in the form of transformers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/grad/parameter.h"
#include "fovea/pretrained/encoder.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {

/// The head of a model, as a config.json says it.
struct EncoderHead {
  BertHead head = BertHead::kText;
  EncoderProblem problem = EncoderProblem::kOneLabel;
  std::vector<std::string> labels{};  ///< in the order of the outputs; none with kNumber
};

/// config.json of the encoder that the model began from, with this head in place of its own.
/// `text`: that file. Adds the class of transformers as the first of `architectures`.
Json::Object config_with_head(const std::string& text, const EncoderHead& head,
                              const std::string& where);

/// The class of transformers of such a config.json: "BertForSequenceClassification", without a head
/// "BertModel".
std::string class_with_head(const Json& config, BertHead head, const std::string& where);

/// The tensors of parameters that are called as those of BertLayers, under the names of
/// transformers. They share no memory with the parameters.
std::vector<NamedTensor> encoder_tensors_of(std::span<Parameter* const> parameters,
                                            const Json& config, BertHead head,
                                            const std::string& where);

}  // namespace fovea

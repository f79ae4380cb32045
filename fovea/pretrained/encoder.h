// SPDX-License-Identifier: Apache-2.0
// Encoders as transformers has saved them: a folder with a config.json, the weights and a
// tokenizer. One with a head says what labels a text has, or each of its words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fovea/model/bert.h"
#include "fovea/pretrained/encoder_tokenizer.h"

namespace fovea {

/// What the outputs of a head mean.
enum class EncoderProblem : std::uint8_t {
  kOneLabel,   ///< one of several: softmax
  kAnyLabels,  ///< each a question of its own: sigmoid
  kNumber,     ///< one output, which is the number
};

struct LoadedEncoder {
  Bert model;
  std::unique_ptr<const EncoderTokenizer> tokenizer;
  index max_length;  ///< tokens of a text, its marks among them
  /// Of a head.
  EncoderProblem problem = EncoderProblem::kOneLabel;
  std::vector<std::string> labels{};  ///< in the order of the outputs; none with kNumber
};

/// The head of the model in a folder of Hugging Face, by the `architectures` of its config.json:
/// "...ForSequenceClassification" reads texts, "...ForTokenClassification" tokens.
BertHead encoder_head(const std::filesystem::path& folder);

/// Reads a folder. With kNone a head is left out, if there is one; else the folder must have that
/// head. Throws kModelMissing; kModelDamaged, as for a tensor that is missing or has another shape;
/// kModelWrongKind for another architecture or head, for a setting or a tensor that fovea does not
/// know, which it names; and kOutOfMemory.
LoadedEncoder load_encoder(const std::filesystem::path& folder, BertHead head);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// Sentence encoders that fovea has trained, and those of other programs: as what makes vectors of
// texts, and as what a training begins from.
//
// A model folder holds config.json, tokenizer.txt and model.safetensors; a run folder also the
// files of Trainer. A checkpoint is a model folder, too.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/model/sentence_encoder.h"
#include "fovea/pretrained/encoder_tokenizer.h"
#include "fovea/pretrained/sentence_model.h"
#include "fovea/task/embed/settings.h"

namespace fovea {

/// config.json: "kind" of a sentence encoder.
inline constexpr std::string_view kSentenceEncoderKind = "sentence-encoder";

/// A model that fovea has trained.
struct LoadedSentenceEncoder {
  EmbedSettings settings;
  TokenizerData kept;  ///< as the folder keeps it
  EncoderText pieces;
  std::unique_ptr<SentenceEncoder> model;
  std::string checksum;  ///< of config.json and the weights
};

/// Whether it is the folder of such a model, by its config.json.
bool is_sentence_encoder(const std::filesystem::path& folder);

/// Throws kModelMissing, kModelWrongKind, kModelDamaged, kOutOfMemory.
LoadedSentenceEncoder load_sentence_encoder(const std::filesystem::path& folder);

/// What makes vectors: a model that fovea has trained, or one of another program
/// (load_sentence_model()); with these adapters (encoder_peft.h), whose head is left out. Throws as
/// these, and what EncoderPeft throws.
SentenceModel load_embedder(const std::filesystem::path& folder,
                            std::span<const std::string> adapters = {});

/// How the base of a training makes a vector of a text: as it says, else the mean of the rows.
SentenceSettings sentence_settings_of_base(const std::filesystem::path& base,
                                           const EncoderBase& read);

/// The text of config.json.
std::string config_text(const EmbedSettings& settings);
/// Reads what config_text wrote; `name` is the file's name in errors. Throws kModelWrongKind,
/// kModelDamaged.
EmbedSettings embed_settings_from_text(std::string_view text, const std::string& name);

}  // namespace fovea

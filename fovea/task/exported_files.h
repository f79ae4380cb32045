// SPDX-License-Identifier: Apache-2.0
// What every export in the form of Hugging Face writes, and how.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/train/model_folder.h"

namespace fovea {

/// The names of what an export may write, config.json last: a folder that has one is whole.
inline constexpr std::array<std::string_view, 19> kExportedFiles = {
    "source.spm",
    "target.spm",
    "target_vocab.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "model.safetensors",
    "config.json"};

/// Throws kModelWrongKind unless fovea has trained the model: another has the form of its program
/// already.
void require_of_fovea(bool is_ours);

/// A config.json that says this type of the weights, and no other.
Json::Object with_dtype(Json::Object config, DType dtype);

/// model.safetensors with these values in this type.
NamedFile exported_weights(std::vector<NamedTensor> tensors, DType dtype);

/// Writes the files, or replaces those that are there, config.json last. Throws kDiskFull before
/// anything is written; kWrite.
void write_exported(const std::filesystem::path& folder, std::vector<NamedFile> files);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// BERT as Hugging Face transformers saves it: config.json, and the names of its tensors.
#pragma once

#include <filesystem>

#include "fovea/model/bert.h"
#include "fovea/pretrained/folder_tensors.h"
#include "fovea/pretrained/foreign_json.h"

namespace fovea {

/// The configuration in config.json. Throws kModelWrongKind for another architecture, and for a key
/// or a value that fovea does not know, which it names; kModelDamaged.
BertConfig bert_config(const ForeignObject& config);

/// The model of a folder, with or without a head, whose tensors are then left out. Throws as above,
/// kModelMissing, kModelDamaged for a tensor that is missing or has another shape, kModelWrongKind
/// for one that BERT does not have, and kOutOfMemory.
Bert read_bert(const std::filesystem::path& folder);

}  // namespace fovea

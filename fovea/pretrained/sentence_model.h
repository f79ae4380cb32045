// SPDX-License-Identifier: Apache-2.0
// Models that make a vector of a text, as sentence-transformers saves them: a folder with BERT, its
// tokenizer, and modules.json, which says how the rows of a text become one vector. A folder of
// transformers alone is read as sentence-transformers reads it: the mean of the rows.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "fovea/model/bert.h"
#include "fovea/nn/pooling.h"
#include "fovea/pretrained/folder_tensors.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/text/tokenizer/wordpiece.h"

namespace fovea {

/// The sizes of BERT by the config.json of Hugging Face transformers. Throws kModelWrongKind for
/// another architecture, and for a key or a value that fovea does not know, which it names;
/// kModelDamaged.
BertConfig bert_config(const ForeignObject& config);

/// How the rows of a text become a vector, by modules.json and the files that it names.
struct SentenceSettings {
  PoolingKind pooling = PoolingKind::kMean;  ///< kMean, kMax or kFirst
  bool normalizes = false;                   ///< vectors have the length 1
  index max_length = 0;                      ///< tokens of a text, its marks among them
  std::string prompt{};                      ///< stands before each text
};

struct SentenceModel {
  Bert model;
  std::unique_ptr<const WordPiece> tokenizer;
  SentenceSettings settings;
  std::string checksum;  ///< XXH3-128 of all that the vectors depend on

  index width() const { return model.config().width; }
};

/// Reads a folder, with or without a head, whose tensors are left out. Throws kModelMissing;
/// kModelDamaged, as for a tensor that is missing or has another shape; kModelWrongKind for a
/// module, a setting or a tensor that fovea does not know, which it names; and kOutOfMemory.
SentenceModel load_sentence_model(const std::filesystem::path& folder);

}  // namespace fovea

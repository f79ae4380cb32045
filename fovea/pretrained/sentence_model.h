// SPDX-License-Identifier: Apache-2.0
// Models that make a vector of a text, as sentence-transformers saves them: a folder with an
// encoder (of a T5, also one with its decoder) and modules.json, which says how the rows of a text
// become one vector. A folder of transformers alone is read as sentence-transformers reads it: the
// mean of the rows.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "fovea/model/row_encoder.h"
#include "fovea/nn/pooling.h"
#include "fovea/pretrained/encoder_tokenizer.h"

namespace fovea {

/// How the rows of a text become a vector, by modules.json and the files that it names.
struct SentenceSettings {
  PoolingKind pooling = PoolingKind::kMean;  ///< kMean, kMax or kFirst
  bool normalizes = false;                   ///< vectors have the length 1
  index max_length = 0;                      ///< tokens of a text, its marks among them
  std::string prompt{};                      ///< stands before each text
};

struct SentenceModel {
  RowEncoder model;
  std::unique_ptr<const EncoderTokenizer> tokenizer;
  SentenceSettings settings;
  std::string checksum;  ///< XXH3-128 of all that the vectors depend on
  Dense dense = Dense(DenseConfigs(), ParameterSetOptions());  ///< over the pooled rows

  /// Of a vector.
  index width() const { return dense.config().empty() ? model.width() : dense.config().back().out; }
};

/// The folder of the encoder in such a folder: as modules.json says, else the folder itself. Throws
/// kModelDamaged, kModelWrongKind.
std::filesystem::path transformer_folder(const std::filesystem::path& folder);

/// How such a folder makes a vector of a text, for an encoder of this width that reads at most
/// `longest` tokens and has so many positions, and no layers over the pooled rows. Throws
/// kModelDamaged, kModelWrongKind, as for such layers.
SentenceSettings sentence_settings(const std::filesystem::path& folder, index width,
                                   index positions, index longest);

/// Reads a folder, with or without a head, whose tensors are left out. Throws as load_encoder()
/// does, and kModelWrongKind for a module that fovea does not know, which it names.
SentenceModel load_sentence_model(const std::filesystem::path& folder);

}  // namespace fovea

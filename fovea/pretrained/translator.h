// SPDX-License-Identifier: Apache-2.0
// Translators as transformers has saved them, and other models that write a text from a text: a
// folder with a config.json, the weights, and the vocabulary: of a MarianMTModel in source.spm,
// target.spm and vocab.json, of a T5ForConditionalGeneration in tokenizer.json or spiece.model.
#pragma once

#include <filesystem>
#include <memory>

#include "fovea/model/source_encoder.h"
#include "fovea/model/translator.h"
#include "fovea/pretrained/encoder_tokenizer.h"
#include "fovea/pretrained/translator_table.h"
#include "fovea/pretrained/translator_tokenizer.h"

namespace fovea {

struct ForeignTranslator {
  TranslatorConfig config;  ///< resolved
  TranslationRules rules;
  ForeignVocabularies vocabularies;
  std::unique_ptr<Translator> model;
};

/// The encoder of a T5, which makes a row of each token of a text.
struct ForeignSourceEncoder {
  SourceEncoder model;
  EncoderText text;
};

/// Whether the model in a folder of Hugging Face has such an encoder: with its decoder or alone.
bool has_source_encoder(const std::filesystem::path& folder);

/// Reads it; tensors of a decoder and of logits are left out. Throws as load_foreign_translator().
ForeignSourceEncoder load_source_encoder(const std::filesystem::path& folder);

/// Whether a path is a folder of Hugging Face whose model is a translator.
bool is_foreign_translator(const std::filesystem::path& folder);

/// Reads such a folder; weights are widened to float32. Throws kModelMissing; kModelDamaged, as for
/// a tensor that is missing or has another shape; kModelWrongKind for a key, a value or a tensor
/// that fovea does not know, which it names, and for pickles; kOutOfMemory before memory is taken.
ForeignTranslator load_foreign_translator(const std::filesystem::path& folder);

}  // namespace fovea

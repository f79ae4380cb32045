// SPDX-License-Identifier: Apache-2.0
// The vocabulary of a model that reads and writes the same tokens (T5): that of tokenizer.json or
// spiece.model.
#pragma once

#include <string_view>

#include "fovea/pretrained/model_files.h"
#include "fovea/pretrained/translator_tokenizer.h"

namespace fovea {

/// A text is cut by the folder's tokenizer, whose mark of the end, one of rules.ends, stands behind
/// it. Marks that are
/// written, such as <extra_id_0>, and ids without a name stand for no text. Throws as
/// read_folder_subwords(); kModelWrongKind for other marks around a text.
ForeignVocabularies read_shared_vocabulary(const ModelFiles& files, std::string_view architecture,
                                           const TranslatorConfig& config,
                                           const TranslationRules& rules);

}  // namespace fovea

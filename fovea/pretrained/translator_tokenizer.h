// SPDX-License-Identifier: Apache-2.0
// The vocabularies of a translator of transformers: the pieces of source.spm and target.spm, whose
// ids are in vocab.json, and texts that are one token wherever they stand.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "fovea/pretrained/model_files.h"
#include "fovea/pretrained/translator_table.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

struct ForeignVocabularies {
  std::unique_ptr<Tokenizer> of_source;
  std::unique_ptr<Tokenizer> of_target;  ///< null: that of the source
  /// Whether translations lose blanks before punctuation (clean_up_tokenization_spaces).
  bool cleans = false;
  /// Names of tokens that stand for no text, of a vocabulary of both sides: <extra_id_0>.
  std::map<token, std::string> marks = {};
};

/// A text is cut as transformers cuts it: marks such as </s> are found first; a language code that
/// begins what stands between them, such as >>fra<<, is its token; the rest is cut by the .spm file
/// of its side. A piece without an id is unknown. Text that is written is read off target.spm;
/// tokens that `rules` bans, and ids without a name, are never written. Throws kModelMissing;
/// kModelDamaged, as for ids that the model does not have; kModelWrongKind for a part that fovea
/// does not know, by its name.
ForeignVocabularies read_translator_vocabularies(const ModelFiles& files,
                                                 const TranslatorConfig& config,
                                                 const TranslationRules& rules);

/// Without the blanks that transformers takes out of a text: before a full stop, and so on.
std::string without_spare_blanks(std::string text);

}  // namespace fovea

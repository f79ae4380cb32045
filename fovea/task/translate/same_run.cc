// SPDX-License-Identifier: Apache-2.0
// Whether a training of a translator can go on with other settings or pairs.
#include "fovea/task/same_fields.h"
#include "fovea/task/translate/run.h"

namespace fovea {

namespace {

bool splits(const TranslatorTextOptions& text) {
  return text.valid.empty() && text.valid_source.empty();
}

// All files of a half, one after another.
std::vector<std::string> joined(const std::vector<std::string>& source,
                                const std::vector<std::string>& target,
                                const std::vector<std::string>& tables) {
  std::vector<std::string> all = source;
  all.insert(all.end(), target.begin(), target.end());
  all.insert(all.end(), tables.begin(), tables.end());
  return all;
}

}  // namespace

void require_same_run(const TranslatorSettings& began, const TranslatorSettings& given) {
  TranslatorSettings was = began, is = given;
  was.model = resolve(was.model);
  // Settings that follow from the pairs equal those that followed from them before.
  is.model.vocabulary = was.model.vocabulary;
  is.model.target_vocabulary = was.model.target_vocabulary;
  is.model = resolve(is.model);
  if (is.text.target_tokenizer.empty()) is.text.target_tokenizer = is.text.tokenizer;
  require_same_settings(fields_of(was), fields_of(is), splits(began.text) && splits(given.text));
}

std::vector<std::string> changed_options(const TranslatorSettings& checkpoint,
                                         const TranslatorSettings& given) {
  TranslatorSettings was = checkpoint, is = given;
  return changed_updates(fields_of(was), fields_of(is), given.recipe);
}

void require_same_text(const TranslatorSettings& began, const RunIdentity& identity,
                       const TranslatorRun& given) {
  const TranslatorTextOptions &was = began.text, &is = given.settings.text;
  require_same_files({joined(was.source, was.target, was.train),
                      joined(was.valid_source, was.valid_target, was.valid), identity.data},
                     {joined(is.source, is.target, is.train),
                      joined(is.valid_source, is.valid_target, is.valid), given.identity.data},
                     {.train = is.train.empty() ? "source, --target" : "train",
                      .valid = is.valid.empty() ? "valid-source, --valid-target" : "valid"});
}

}  // namespace fovea

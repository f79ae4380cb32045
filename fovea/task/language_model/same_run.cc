// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/same_run.h"

#include "fovea/task/same_fields.h"

namespace fovea {

void require_same_run(const LanguageModelSettings& began, const LanguageModelSettings& given) {
  LanguageModelSettings was = began, is = given;
  // A size given as 0 equals the size that follows from the others.
  was.model = resolve(was.model);
  is.model.vocabulary = was.model.vocabulary;
  is.model = resolve(is.model);
  const bool splits = was.text.valid.empty() && is.text.valid.empty();
  require_same_settings(fields_of(was), fields_of(is), splits);
}

std::vector<std::string> changed_options(const LanguageModelSettings& checkpoint,
                                         const LanguageModelSettings& given) {
  LanguageModelSettings was = checkpoint, is = given;
  return changed_updates(fields_of(was), fields_of(is), given.recipe);
}

void require_same_text(const LanguageModelSettings& began, const RunIdentity& identity,
                       const LanguageModelRun& given) {
  const TextOptions &was = began.text, &is = given.settings.text;
  require_same_files({was.train, was.valid, identity.data},
                     {is.train, is.valid, given.identity.data});
}

}  // namespace fovea

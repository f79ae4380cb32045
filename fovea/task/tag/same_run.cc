// SPDX-License-Identifier: Apache-2.0
// Whether a training of a tagger can go on with other settings or sentences.
#include <algorithm>

#include "fovea/task/same_fields.h"
#include "fovea/task/tag/run.h"

namespace fovea {

std::vector<SchemeChoice> settled_schemes(std::vector<SchemeChoice> given,
                                          const std::vector<SchemeChoice>& stored) {
  if (given.size() == 1) given.resize(stored.size(), given[0]);
  for (std::size_t c = 0; c < std::min(given.size(), stored.size()); ++c) {
    if (given[c] == SchemeChoice::kAuto) given[c] = stored[c];
  }
  return given;
}

void require_same_run(const TaggerSettings& began, const TaggerSettings& given) {
  TaggerSettings was = began, is = given;
  // Settings that follow from the sentences equal those that followed from them before.
  is.text.scheme = settled_schemes(is.text.scheme, was.text.scheme);
  was.model = resolve(was.model);
  is.model.vocabulary = was.model.vocabulary;
  is.model.characters = was.model.characters;
  is.model.tags = was.model.tags;
  is.model.block = was.model.block;
  is.model = resolve(is.model);
  const bool splits = was.text.valid.empty() && is.text.valid.empty();
  require_same_settings(fields_of(was), fields_of(is), splits);
}

std::vector<std::string> changed_options(const TaggerSettings& checkpoint,
                                         const TaggerSettings& given) {
  TaggerSettings was = checkpoint, is = given;
  return changed_updates(fields_of(was), fields_of(is), given.recipe);
}

void require_same_text(const TaggerSettings& began, const RunIdentity& identity,
                       const TaggerRun& given) {
  const TaggerTextOptions &was = began.text, &is = given.settings.text;
  require_same_files({was.train, was.valid, identity.data},
                     {is.train, is.valid, given.identity.data});
}

}  // namespace fovea

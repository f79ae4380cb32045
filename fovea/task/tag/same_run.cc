// SPDX-License-Identifier: Apache-2.0
// Whether a training of a tagger can go on with other settings or sentences.
#include <algorithm>
#include <array>

#include "fovea/task/same_fields.h"
#include "fovea/task/tag/run.h"

namespace fovea {

namespace {

bool is_fixed(const Field& field, bool splits) {
  if (field.name == "text.valid_fraction") return splits;
  constexpr std::array<std::string_view, 4> kFree = {"text.train", "text.valid", "text.batch_size",
                                                     "text.word_dropout"};
  return field.name.starts_with("model.") ||
         (field.name.starts_with("text.") &&
          std::find(kFree.begin(), kFree.end(), field.name) == kFree.end());
}

}  // namespace

void require_same_run(const TaggerSettings& began, const TaggerSettings& given) {
  TaggerSettings was = began, is = given;
  // What follows from the sentences equals what followed from them.
  if (is.text.scheme == SchemeChoice::kAuto) is.text.scheme = was.text.scheme;
  was.model = resolve(was.model);
  is.model.vocabulary = was.model.vocabulary;
  is.model.characters = was.model.characters;
  is.model.tags = was.model.tags;
  is.model.block = was.model.block;
  is.model = resolve(is.model);
  const bool splits = was.text.valid.empty() && is.text.valid.empty();
  require_same_fields(fields_of(was), fields_of(is),
                      [&](const Field& field) { return is_fixed(field, splits); });
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

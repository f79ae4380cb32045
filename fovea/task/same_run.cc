// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/same_run.h"

#include <algorithm>
#include <array>

#include "fovea/task/same_fields.h"

namespace fovea {

namespace {

bool is_fixed(const Field& field, bool splits) {
  if (field.name == "text.valid_fraction") return splits;
  constexpr std::array<std::string_view, 3> kFree = {"text.train", "text.valid", "text.batch_size"};
  return field.name.starts_with("model.") ||
         (field.name.starts_with("text.") &&
          std::find(kFree.begin(), kFree.end(), field.name) == kFree.end());
}

}  // namespace

void require_same_run(const LanguageModelSettings& began, const LanguageModelSettings& given) {
  LanguageModelSettings was = began, is = given;
  // A size given as 0 equals the size that follows from the others.
  was.model = resolve(was.model);
  is.model.vocabulary = was.model.vocabulary;
  is.model = resolve(is.model);
  const bool splits = was.text.valid.empty() && is.text.valid.empty();
  require_same_fields(fields_of(was), fields_of(is),
                      [&](const Field& field) { return is_fixed(field, splits); });
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

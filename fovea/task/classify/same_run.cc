// SPDX-License-Identifier: Apache-2.0
// Whether a training of a classifier can go on with other settings or texts.

#include "fovea/task/classify/run.h"
#include "fovea/task/same_fields.h"

namespace fovea {

void require_same_run(const ClassifierSettings& began, const ClassifierSettings& given) {
  ClassifierSettings was = began, is = given;
  // Settings that follow from the texts equal those that followed from them before.
  if (is.text.tokenizer == "auto") is.text.tokenizer = was.text.tokenizer;
  if (is.text.max_length == 0) is.text.max_length = was.text.max_length;
  // A size given as 0 equals the size that follows from the others.
  was.model = resolve(was.model);
  is.model.vocabulary = was.model.vocabulary;
  is.model.classes = was.model.classes;
  is.model.features = was.model.features;
  is.model.joints = was.model.joints;
  is.model.task = was.model.task;
  is.model.block = was.model.block;
  if (is.model.ngrams != 1 && is.model.buckets == 0) is.model.buckets = was.model.buckets;
  is.model = resolve(is.model);
  const bool splits = was.text.valid.empty() && is.text.valid.empty();
  require_same_settings(fields_of(was), fields_of(is), splits);
}

std::vector<std::string> changed_options(const ClassifierSettings& checkpoint,
                                         const ClassifierSettings& given) {
  ClassifierSettings was = checkpoint, is = given;
  return changed_updates(fields_of(was), fields_of(is), given.recipe);
}

void require_same_text(const ClassifierSettings& began, const RunIdentity& identity,
                       const ClassifierRun& given) {
  const ClassifierTextOptions &was = began.text, &is = given.settings.text;
  require_same_files({was.train, was.valid, identity.data},
                     {is.train, is.valid, given.identity.data});
}

}  // namespace fovea

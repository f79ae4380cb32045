// SPDX-License-Identifier: Apache-2.0
// A classifier in memory that knows nothing: its weights are random, and large enough that its
// predictions differ.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fovea/task/classify/classifier.h"

namespace fovea {

inline LoadedClassifier untrained_classifier(ClassifierTask task, std::vector<std::string> labels,
                                             const std::string& encoder = "") {
  LoadedClassifier loaded;
  ClassifierSettings& settings = loaded.settings;
  settings.text.tokenizer = "char";
  settings.text.lower = false;
  settings.text.max_length = 20;
  settings.text.multi_label = task == ClassifierTask::kMultiLabel;
  settings.text.regression = task == ClassifierTask::kRegression;
  const TokenizerKind& kind = tokenizer_kind("char");
  loaded.tokenizer = kind.make(kind.learn("abcdefgh", "text", {}));
  settings.model.task = task;
  settings.model.encoder = encoder;
  settings.model.classes =
      task == ClassifierTask::kRegression ? 1 : static_cast<index>(labels.size());
  settings.model.width = 16;
  settings.model.heads = 2;
  settings.model.block = 20;
  settings.model.init = InitScheme::kSource;  // tables normal(0, 1)
  settings.model.vocabulary = loaded.tokenizer->vocabulary_size();
  loaded.labels = std::move(labels);
  loaded.model = std::make_unique<Classifier>(settings.model, 3);
  return loaded;
}

}  // namespace fovea

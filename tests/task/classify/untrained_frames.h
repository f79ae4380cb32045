// SPDX-License-Identifier: Apache-2.0
// A classifier of numbers with the weights that it begins with, and samples for it.
#pragma once

#include <memory>
#include <string>

#include "fovea/task/classify/classifier.h"

namespace fovea {

inline LoadedClassifier untrained_frames(const std::string& encoder, PoolingKind pooling,
                                         index joints = 3) {
  LoadedClassifier loaded;
  ClassifierSettings& s = loaded.settings;
  s.text.input = InputKind::kNpz;
  s.text.max_length = s.model.block = 4;
  s.text.truncate = Truncate::kFront;
  s.model.encoder = encoder;
  s.model.pooling = pooling;
  s.model.classes = 3;
  s.model.width = 8;
  s.model.heads = 2;
  s.model.features = 2;
  s.model.joints = joints;
  s.model.init = InitScheme::kSource;
  loaded.frames = {{0, 0}, {1, 1}};
  loaded.labels = {"a", "b", "c"};
  loaded.model = std::make_unique<Classifier>(s.model, 3);
  return loaded;
}

// Samples of 2 and 5 time steps, the second cut to 4 in front.
inline FrameSet two_samples() {
  FrameSet set{.columns = 6, .values = std::vector<float>(7 * 6), .starts = {0, 2, 7}};
  for (std::size_t n = 0; n < set.values.size(); ++n) {
    set.values[n] = static_cast<float>(n * 37 % 11) / 5 - 1;
  }
  return set;
}

}  // namespace fovea

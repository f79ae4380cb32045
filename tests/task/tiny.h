// SPDX-License-Identifier: Apache-2.0
// A language model that is trained in a moment.
#pragma once

#include <fstream>
#include <string>

#include "fovea/task/language_model/language_model.h"
#include "tests/support/folder.h"

namespace fovea {

inline std::string tiny_text() {
  std::string text;
  for (int i = 0; i < 150; ++i) {
    text += i % 3 == 0   ? "the cat sees the moon\n"
            : i % 3 == 1 ? "a dog hears the sea\n"
                         : "no bird sings\n";
  }
  return text;
}

inline LanguageModelSettings tiny_settings(const TestFolder& folder) {
  std::ofstream(folder / "text.txt") << tiny_text();
  LanguageModelSettings settings;
  settings.text.train = {(folder / "text.txt").string()};
  settings.text.batch_size = 4;
  settings.model.layers = 1;
  settings.model.heads = 2;
  settings.model.width = 16;
  settings.model.block = 12;
  settings.recipe.warmup = 2;
  settings.recipe.stop_after = "30u";
  settings.recipe.eval_every = "10u";
  settings.recipe.save_every = "10u";
  return settings;
}

/// Trains into folder/model, which is the result.
inline std::filesystem::path tiny_model(const TestFolder& folder,
                                        const LanguageModelSettings& settings) {
  TrainingObserver silent;
  train_language_model(Context(2), prepare_run(settings), folder / "model", {}, silent);
  return folder / "model";
}

}  // namespace fovea

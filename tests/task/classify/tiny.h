// SPDX-License-Identifier: Apache-2.0
// A classifier that is trained in a moment.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "fovea/task/classify/run.h"
#include "tests/support/folder.h"

namespace fovea {

inline std::string write_file(const TestFolder& folder, std::string_view name,
                              std::string_view text) {
  std::ofstream(folder / name) << text;
  return (folder / name).string();
}

/// 60 reviews, half of them good.
inline std::string tiny_reviews() {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += i % 2 == 0 ? "good\tWhat a fine film, number " : "bad\tA dull film. It's number ";
    text += std::to_string(i % 5) + "\n";
  }
  return text;
}

inline ClassifierSettings tiny_classifier(const TestFolder& folder) {
  ClassifierSettings settings;
  settings.text.train = {write_file(folder, "reviews.tsv", tiny_reviews())};
  settings.text.batch_size = 8;
  settings.model.width = 8;
  settings.recipe.lr = 1e-2;
  settings.recipe.warmup = 2;
  settings.recipe.stop_after = "60u";
  settings.recipe.eval_every = "20u";
  settings.recipe.save_every = "20u";
  return settings;
}

inline std::filesystem::path trained(const TestFolder& folder, const ClassifierSettings& settings) {
  TrainingObserver silent;
  train_classifier(Context(2), prepare_run(settings), folder / "model", {}, silent);
  return folder / "model";
}

}  // namespace fovea

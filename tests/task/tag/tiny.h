// SPDX-License-Identifier: Apache-2.0
// A tagger and a segmenter that are trained in a moment.
#pragma once

#include <filesystem>
#include <string>

#include "fovea/task/tag/run.h"
#include "tests/task/classify/tiny.h"

namespace fovea {

/// 60 sentences with a name of one word or two.
inline std::string tiny_sentences() {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += i % 2 == 0 ? "Ada\tB-person\nsaw\tO\n" : "New\tB-place\nYork\tI-place\nis\tO\n";
    text += std::to_string(i % 5) + "\tO\n\n";
  }
  return text;
}

inline TaggerSettings tiny_recipe(TaggerSettings settings) {
  settings.text.batch_size = 8;
  settings.model.encoder = "bilstm:4";
  settings.model.width = 8;
  settings.recipe.lr = 2e-2;
  settings.recipe.min_lr = 2e-2;
  settings.recipe.warmup = 2;
  settings.recipe.stop_after = "60u";
  settings.recipe.eval_every = "20u";
  settings.recipe.save_every = "20u";
  return settings;
}

inline TaggerSettings tiny_tagger(const TestFolder& folder) {
  TaggerSettings settings = tiny_recipe({});
  settings.text.train = {write_file(folder, "sentences.conll", tiny_sentences())};
  return settings;
}

/// The same names with a second tag of each word, which is in the column before.
inline TaggerSettings tiny_columns(const TestFolder& folder) {
  TaggerSettings settings = tiny_recipe({});
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += i % 2 == 0 ? "Ada N B-person\nsaw V O\n" : "New N B-place\nYork N I-place\nis V O\n";
    text += std::to_string(i % 5) + " M O\n\n";
  }
  settings.text.train = {write_file(folder, "columns.conll", text)};
  settings.text.table.tag_column = {2, 3};
  settings.model.head = {TagHead::kSoftmax, TagHead::kCrf};
  return settings;
}

inline TaggerSettings tiny_segmenter(const TestFolder& folder) {
  TaggerSettings settings = tiny_recipe(TaggerSettings(TagTask::kSegment));
  std::string text;
  for (int i = 0; i < 60; ++i) text += i % 2 == 0 ? "我们 在 北京\n" : "他 学习 计算机\n";
  settings.text.train = {write_file(folder, "words.seg", text)};
  return settings;
}

inline std::filesystem::path trained(const TestFolder& folder, const TaggerSettings& settings) {
  TrainingObserver silent;
  train_tagger(Context(2), prepare_run(settings), folder / "model", {}, silent);
  return folder / "model";
}

}  // namespace fovea

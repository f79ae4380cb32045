// SPDX-License-Identifier: Apache-2.0
// The number of threads decides nothing but the time: two hundred updates end with the same bytes.
#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "fovea/base/context.h"
#include "fovea/base/file.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

// Large enough that every kernel of a step hands work over; dropout and mixed lengths on.
LanguageModelSettings wide_settings(const TestFolder& folder) {
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.data = "lines";
  settings.text.batch_size = 32;
  settings.model.layers = 2;
  settings.model.heads = 4;
  settings.model.width = 96;
  settings.model.block = 32;
  settings.model.dropout = 0.2;
  settings.recipe.accumulate = 2;
  settings.recipe.stop_after = "200u";
  settings.recipe.eval_every = "50u";
  settings.recipe.save_every = "100u";
  return settings;
}

std::map<std::string, std::string> results(const std::filesystem::path& output) {
  std::map<std::string, std::string> bytes;
  for (const char* file : {"model.safetensors", "checkpoints/step-000200/model.safetensors",
                           "checkpoints/step-000200/optimizer.safetensors"}) {
    bytes[file] = read_file(output / file);
  }
  return bytes;
}

TEST(Threads, TwoHundredUpdatesEndWithTheSameBytes) {
  const TestFolder folder;
  const LanguageModelSettings settings = wide_settings(folder);
  TrainingObserver silent;
  std::map<std::string, std::string> expected;
  for (const int threads : {1, 2, 3, 8}) {
    const index before = Context::items_run_by_helpers();
    const auto output = folder / std::to_string(threads);
    train_language_model(Context(threads), prepare_run(settings), output, {}, silent);
    const index helped = Context::items_run_by_helpers() - before;
    std::printf("%d threads: %lld items were run by helpers\n", threads,
                static_cast<long long>(helped));
    if (threads == 1) {
      EXPECT_EQ(helped, 0);
      expected = results(output);
      continue;
    }
    EXPECT_GT(helped, 200) << "less than one item an update: nothing was tested";
    for (const auto& [file, bytes] : results(output)) {
      EXPECT_EQ(bytes == expected[file], true) << file << ", " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace fovea

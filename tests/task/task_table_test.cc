// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/task_table.h"

#include "fovea/train/model_folder.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

// What kind_of_model says of a folder with this config.json.
ModelKind kind_of(const std::filesystem::path& folder, const std::string& config) {
  std::filesystem::create_directories(folder);
  write_model_files(folder, std::vector<NamedFile>{{"config.json", config}});
  return kind_of_model(folder);
}

TEST(ModelKind, IsSaidByTheConfiguration) {
  const TestFolder folder;
  EXPECT_EQ(kind_of(folder / "a", R"({"kind":"language_model"})"), ModelKind::kLanguageModel);
  EXPECT_EQ(kind_of(folder / "b", R"({"kind":"classifier"})"), ModelKind::kClassifier);
  EXPECT_EQ(kind_of(folder / "c", R"({"kind":"tagger"})"), ModelKind::kTagger);
  EXPECT_EQ(kind_of(folder / "d", R"({"kind":"translator"})"), ModelKind::kTranslator);
}

TEST(ModelKind, OthersAreErrors) {
  const TestFolder folder;
  EXPECT_THROWS(kind_of(folder / "a", R"({"kind":"painter"})"), kModelWrongKind, "got \"painter\"");
  EXPECT_THROWS(kind_of(folder / "b", "{}"), kModelWrongKind, "got none");
  EXPECT_THROWS(kind_of(folder / "c", "[]"), kModelWrongKind, "got none");
  EXPECT_THROWS(kind_of(folder / "d", "{"), kModelDamaged, "config.json");
  EXPECT_THROWS(kind_of_model(folder / "none"), kModelMissing, "none");
}

TEST(TaskTable, AnEvaluationIsOfOneTask) {
  const auto rows_of = [](std::string_view task) {
    std::vector<ModelKind> rows;
    for (const TaskRow& row : task_table()) {
      if (row.scores(task)) rows.push_back(row.kind);
    }
    return rows;
  };
  using Rows = std::vector<ModelKind>;
  for (const char* task : {"binary", "single-label", "multi-label", "regression"}) {
    EXPECT_EQ(rows_of(task), Rows{ModelKind::kClassifier}) << task;
  }
  EXPECT_EQ(rows_of("tag"), Rows{ModelKind::kTagger});
  EXPECT_EQ(rows_of("segment"), Rows{ModelKind::kTagger});
  EXPECT_EQ(rows_of("translate"), Rows{ModelKind::kTranslator});
  EXPECT_EQ(rows_of("paint"), Rows{});
}

}  // namespace
}  // namespace fovea

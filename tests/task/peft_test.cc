// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/peft.h"

#include <gmock/gmock.h>

#include <limits>

#include "fovea/base/file.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfig =
    R"({"peft_type": "LORA", "r": 2, "lora_alpha": 3, "bias": "none", "task_type": "SEQ_CLS",
        "modules_to_save": ["classifier"]})";

Tensor counted(const Shape& shape) {
  Tensor tensor = Tensor::empty(shape);
  float next = 0;
  for (float& value : tensor.vec<float>()) value = next += 0.5F;
  return tensor;
}

fs::path write_folder(const TestFolder& folder, std::string_view config,
                      const std::vector<NamedTensor>& tensors) {
  const fs::path to = folder / "peft";
  create_folders(to);
  write_file_atomically(to / kPeftFiles[1], config);
  write_file_atomically(to / kPeftFiles[0], safetensors_bytes(tensors));
  return to;
}

std::vector<NamedTensor> one_adapter(index rank) {
  return {{"base_model.model.x.lora_A.weight", counted({rank, 3})},
          {"base_model.model.x.lora_B.weight", counted({4, rank})}};
}

TEST(Peft, ChoicesOfFolders) {
  EXPECT_EQ(adapter_choice("polite").factor, 1);
  EXPECT_EQ(adapter_choice("polite=-0.5").factor, -0.5);
  EXPECT_EQ(adapter_choice("polite=-0.5").folder, "polite");
  EXPECT_EQ(adapter_choice("a=b").folder, "a=b");
  for (const char* const wrong : {"polite=nan", "polite=1001", "polite=1e400", "polite=1e-400"}) {
    EXPECT_THROWS(adapter_choice(wrong), kOptionValue, "the factor must be");
  }
  EXPECT_THROWS(require_adapter_folder({"/there/is/nothing", 1}, "folders of PEFT"), kModelMissing,
                "no such folder");
}

TEST(Peft, WhatAFolderHolds) {
  const TestFolder folder;
  const fs::path written = write_folder(folder, kConfig, one_adapter(2));
  EXPECT_TRUE(is_peft(written));
  EXPECT_FALSE(is_peft(folder.path()));
  const AdapterFolder read = read_peft(written, WholeModules::kTaken);
  EXPECT_EQ(read.rank, 2);
  EXPECT_EQ(read.scale, 1.5);
  EXPECT_EQ(read.task, "SEQ_CLS");
  EXPECT_THAT(adapted_modules(read), testing::ElementsAre("x"));
  EXPECT_THROWS(read_peft(written, WholeModules::kRefused), kModelWrongKind, "modules_to_save");
  EXPECT_EQ(adapted_module("base_model.model.a.b.lora_B.weight"), "a.b");
  EXPECT_EQ(adapted_module("base_model.model.a.b.weight"), "");
}

TEST(Peft, TheyAreGivenToAModel) {
  const TestFolder folder;
  ParameterSet set({.seed = 1});
  Parameter& weight = set.add("w", {5, 3}, Init::zeros(), Decay::kYes);
  const std::vector<LowRankTarget> targets = {{"base_model.model.x", &weight, 1, 4}};
  AdapterFolder read =
      read_peft(write_folder(folder, kConfig, one_adapter(2)), WholeModules::kTaken);
  make_adapters(set.parameters(), targets, read, {"peft", 2})->merge(Context());
  const Tensor a = counted({2, 3}), b = counted({4, 2});
  for (index n = 0; n < 5; ++n) {
    for (index c = 0; c < 3; ++c) {
      float sum = 0;
      for (index r = 0; n > 0 && r < 2; ++r)
        sum += b.rows<float>()[n - 1][r] * a.rows<float>()[r][c];
      EXPECT_FLOAT_EQ(weight.value.rows<float>()[n][c], 2 * 1.5F * sum) << n << ' ' << c;
    }
  }
  read.rank = 3;
  EXPECT_THROWS(make_adapters(set.parameters(), targets, read, {"peft", 1}), kModelWrongKind,
                "base_model.model.x.lora_A.weight' must be [3, 3]; it is");
  read.rank = 2;
  read.weights.tensors[0].tensor.vec<float>()[0] = std::numeric_limits<float>::infinity();
  EXPECT_THROWS(make_adapters(set.parameters(), targets, read, {"peft", 1}), kModelDamaged,
                "is not finite");
  EXPECT_TRUE(weight.changes.empty());
  read.magnitudes = Magnitudes::kLearned;
  EXPECT_THROWS(make_adapters(set.parameters(), targets, read, {"peft", 2}), kOptionValue,
                "count once");
}

TEST(Peft, WhatIsNotKnown) {
  const TestFolder folder;
  AdapterFolder read;
  read.weights.tensors = {{"base_model.model.x.weight", counted({2})}};
  EXPECT_THROWS(adapted_modules(read), kModelWrongKind, "is no adapter of a product");
  read.weights.tensors = {{"base_model.model.x.lora_magnitude_vector", counted({2})}};
  EXPECT_THROWS(adapted_modules(read), kModelWrongKind, "are magnitudes (DoRA)");
  for (const char* const changed : {R"("bias": "all")", R"("alpha_pattern": {"x": 2})",
                                    R"("init_lora_weights": "pissa")", R"("lora_bias": true)"}) {
    const std::string config =
        fmt::format(R"({{"peft_type": "LORA", "r": 2, "lora_alpha": 3, {}}})", changed);
    EXPECT_THROWS(read_peft(write_folder(folder, config, one_adapter(2)), WholeModules::kTaken),
                  kModelWrongKind,
                  std::string(changed).substr(1, std::string(changed).find(':') - 2));
  }
}

}  // namespace
}  // namespace fovea

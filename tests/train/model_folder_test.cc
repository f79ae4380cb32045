// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/model_folder.h"

#include <sys/stat.h>

#include "fovea/base/file.h"
#include "fovea/train/checkpoint.h"
#include "tests/support/throws.h"
#include "tests/train/overwrite.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<NamedFile> model_files(const std::string& config = "{}\n") {
  return {{"config.json", config}, {"tokenizer.txt", "a\nb\n"}};
}

std::vector<NamedTensor> weights(float value) {
  Tensor tensor(Shape{3});
  tensor.data<float>()[1] = value;
  return {{"w", tensor}};
}

class ModelFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "fovea_model_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    top_ = name;
    folder_ = top_ / "model";
  }
  void TearDown() override { fs::remove_all(top_); }

  void write_model(const fs::path& folder, const std::string& config, float value) {
    write_model_files(folder, model_files(config));
    write_model_weights(folder, weights(value), {{"step", "12"}});
  }

  std::vector<std::string> problems() const {
    std::vector<std::string> lines;
    for (const FileCheck& check : verify_model_folder(folder_)) {
      lines.push_back(check.name + ": " + check.problem);
    }
    return lines;
  }

  fs::path top_, folder_;
};

TEST_F(ModelFolderTest, WhatIsWrittenIsReadBack) {
  write_model(folder_, "{}\n", 5);
  EXPECT_EQ(read_model_file(folder_, "config.json"), "{}\n");
  const Safetensors read = read_model_weights(folder_);
  EXPECT_EQ(read.at("w").data<float>()[1], 5.0f);
  EXPECT_EQ(read.metadata.at("step"), "12");
  EXPECT_THAT(
      problems(),
      ElementsAre("MANIFEST.json: ", "config.json: ", "tokenizer.txt: ", "model.safetensors: "));
}

TEST_F(ModelFolderTest, FilesMayComeInParts) {
  const std::string more = "b\n";
  std::vector<NamedFile> files = model_files();
  files.push_back({.name = "words.txt", .bytes = "a\n", .more = {more, more}});
  write_model_files(folder_, files);
  EXPECT_EQ(read_model_file(folder_, "words.txt"), "a\nb\nb\n");
}

TEST_F(ModelFolderTest, WeightsAreReadTensorByTensor) {
  write_model(folder_, "{}\n", 5);
  const auto second = [](const ModelWeights& weights) {
    return weights.tensors().read(0).data<float>()[1];
  };
  {
    const ModelWeights weights(folder_);
    weights.verify();
    EXPECT_THAT(weights.tensors().names(), ElementsAre("w"));
    EXPECT_EQ(second(weights), 5.0f);
  }
  std::string bytes = read_file(folder_ / kWeightsName);
  bytes.back() ^= 1;
  write_file_atomically(folder_ / kWeightsName, bytes);
  EXPECT_THROWS(ModelWeights(folder_).verify(), kModelDamaged, "wrong checksum");
  write_model(top_ / "other", "{ }\n", 5);
  fs::copy_file(top_ / "other" / kWeightsName, folder_ / kWeightsName,
                fs::copy_options::overwrite_existing);
  EXPECT_THROWS(ModelWeights(folder_), kModelDamaged, "belong to another model");
  fs::remove(folder_ / kWeightsName);
  EXPECT_THROWS(ModelWeights(folder_), kModelMissing, "no weights have been saved yet");
}

TEST_F(ModelFolderTest, BetterWeightsReplaceTheOld) {
  write_model(folder_, "{}\n", 5);
  write_model_weights(folder_, weights(6));
  EXPECT_EQ(read_model_weights(folder_).at("w").data<float>()[1], 6.0f);
}

TEST_F(ModelFolderTest, WeightsMayBeRounded) {
  write_model_files(folder_, model_files());
  write_model_weights(folder_, weights(1 + 0x1.8p-8f), {{"step", "12"}}, DType::kBFloat16);
  const Safetensors read = read_model_weights(folder_);
  EXPECT_EQ(read.at("w").dtype(), DType::kBFloat16);
  EXPECT_EQ(to_float(read.at("w").data<BFloat16>()[1]), 1 + 0x1p-7f);
  EXPECT_EQ(update_of(read, folder_), 12);
  EXPECT_THAT(problems(), testing::Each(testing::EndsWith(": ")));
}

TEST_F(ModelFolderTest, SaysWhatIsNoModel) {
  EXPECT_THROWS(read_model_weights(folder_), kModelMissing, "no such folder");
  fs::create_directory(folder_);
  EXPECT_THROWS(verify_model_folder(folder_), kModelMissing, "MANIFEST.json is missing");
  EXPECT_THROWS(write_model_weights(folder_, weights(1)), kModelMissing, "no model");
  write_model_files(folder_, model_files());
  EXPECT_THROWS(read_model_weights(folder_), kModelMissing, "no weights have been saved yet");
  EXPECT_THAT(
      problems(),
      ElementsAre("MANIFEST.json: ", "config.json: ", "tokenizer.txt: ", "model.safetensors: "));
  EXPECT_TRUE(verify_model_folder(folder_).back().to_come);
  EXPECT_THROWS(read_model_file(folder_, "labels.txt"), kModelMissing, "labels.txt is missing");
  EXPECT_THROWS(read_model_weights(folder_ / "config.json"), kModelMissing, "expected the folder");
}

// A checkpoint comes after the weights.
TEST_F(ModelFolderTest, WeightsThatAreLostAreNotToCome) {
  write_model(folder_, "{}\n", 5);
  save_checkpoint(checkpoints_of(folder_), 3, model_files(), 1);
  fs::remove(folder_ / kWeightsName);
  EXPECT_THROWS(read_model_weights(folder_), kModelMissing, "model.safetensors is missing");
  EXPECT_FALSE(verify_model_folder(folder_).back().to_come);
  EXPECT_THAT(problems()[3], HasSubstr("model.safetensors is missing"));
}

TEST_F(ModelFolderTest, ABeginningThatFailsLeavesNothing) {
  auto files = model_files();
  files.push_back({std::string(300, 'n'), "x"});
  EXPECT_THROWS(write_model_files(top_ / "a" / "b", files), kWrite, "nnn");
  EXPECT_FALSE(fs::exists(top_ / "a"));
  fs::create_directory(folder_);
  EXPECT_THROWS(write_model_files(folder_, files), kWrite, "nnn");
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(ModelFolderTest, EveryFlippedBitIsFoundAndItsFileNamed) {
  write_model(folder_, "{}\n", 5);
  for (const char* name : {"config.json", "tokenizer.txt", "model.safetensors", "MANIFEST.json"}) {
    const std::string whole = read_file(folder_ / name);
    for (std::size_t bit = 0; bit < 8 * whole.size(); bit += 11) {
      std::string flipped = whole;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      overwrite(folder_ / name, flipped);
      int damaged = 0;
      for (const FileCheck& check : verify_model_folder(folder_)) {
        if (check.problem.empty()) continue;
        ++damaged;
        EXPECT_EQ(check.name, name);
      }
      EXPECT_EQ(damaged, 1) << name << " bit " << bit;
    }
    overwrite(folder_ / name, whole);
  }
}

TEST_F(ModelFolderTest, WeightsOfAnotherModelAreFound) {
  write_model(folder_, "{}\n", 5);
  write_model(top_ / "other", "{ }\n", 6);
  fs::copy_file(top_ / "other" / kWeightsName, folder_ / kWeightsName,
                fs::copy_options::overwrite_existing);
  EXPECT_THROWS(read_model_weights(folder_), kModelDamaged, "the weights belong to another model");
  EXPECT_THAT(problems()[3], HasSubstr("belong to another model"));
}

TEST_F(ModelFolderTest, WeightsThatAreNoFileAreDamage) {
  write_model(folder_, "{}\n", 5);
  const fs::path path = folder_ / kWeightsName;
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROWS(read_model_weights(folder_), kModelDamaged, "expected a regular file, got a FIFO");
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_THROWS(read_model_weights(folder_), kModelDamaged,
                "model.safetensors: expected a regular");
  EXPECT_THAT(problems().back(), HasSubstr("expected a regular file"));
}

TEST_F(ModelFolderTest, BeginningAgainLeavesNothingOfTheOldModel) {
  write_model(folder_, "{}\n", 5);
  write_model_files(folder_, model_files("{ }\n"));
  EXPECT_THROWS(read_model_weights(folder_), kModelMissing, "no weights");
  EXPECT_EQ(read_model_file(folder_, "config.json"), "{ }\n");
}

TEST_F(ModelFolderTest, ACheckpointIsAModelFolderToo) {
  auto files = model_files();
  files.push_back({std::string(kWeightsName), safetensors_bytes(weights(7))});
  const fs::path path = save_checkpoint(top_ / "checkpoints", 3, files, 1).path;
  EXPECT_EQ(read_model_file(path, "config.json"), "{}\n");
  EXPECT_EQ(read_model_weights(path).at("w").data<float>()[1], 7.0f);
  EXPECT_EQ(verify_model_folder(path).size(), 4u);
}

}  // namespace
}  // namespace fovea

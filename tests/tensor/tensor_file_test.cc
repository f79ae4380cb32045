// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/tensor_file.h"

#include <gtest/gtest.h>

#include "fovea/base/file.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(TensorFile, ItsNameSaysTheFormat) {
  const TestFolder folder;
  const std::vector<NamedTensor> tensors = {
      {"q", Tensor::of<float>({2}, std::vector<float>{1, 2})}};
  for (const char* name : {"x.npz", "x.safetensors"}) {
    write_tensors(folder / name, tensors);
    const auto read = read_tensors(folder / name);
    ASSERT_EQ(read.size(), 1u) << name;
    EXPECT_EQ(read[0].name, "q");
    EXPECT_EQ(read[0].tensor.data<float>()[1], 2.0f);
  }
  EXPECT_EQ(read_file(folder / "x.npz").substr(0, 2), "PK");
  EXPECT_EQ(read_file(folder / "x.safetensors").substr(8, 2), "{\"");
}

TEST(TensorFile, WhatCannotBeReadIsBadInput) {
  const TestFolder folder;
  for (const char* name : {"x.npz", "x.safetensors"}) {
    EXPECT_THROWS(read_tensors(folder / name), kMissingInput, name);
    write_file_atomically(folder / name, "");
    EXPECT_THROWS(read_tensors(folder / name), kEmptyInput, name);
    write_file_atomically(folder / name, "no tensors");
    EXPECT_THROWS(read_tensors(folder / name), kInputFormat, name);
  }
  write_file_atomically(folder / "x.txt", "text");
  EXPECT_THROWS(read_tensors(folder / "x.txt"), kInputFormat, "x.txt: not a name of a tensor file");
  EXPECT_THROWS(check_tensor_path("x.npy"), kUsage, "x.npy: not a name of a tensor file");
  EXPECT_THROWS(write_tensors(folder / "x.npy", {}), kUsage, "not a name of a tensor file");
}

}  // namespace
}  // namespace fovea

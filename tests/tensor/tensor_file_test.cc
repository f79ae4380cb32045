// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/tensor_file.h"

#include <gtest/gtest.h>

#include "fovea/base/file.h"
#include "fovea/tensor/npz.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

std::vector<NamedTensor> read_tensors(const std::filesystem::path& path) {
  return TensorFile(path).read();
}

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

TEST(TensorFile, ANameMayBeAnyWhereTheFormatIsSaid) {
  const TestFolder folder;
  write_file_atomically(folder / "x.bin", npz_bytes(std::vector<NamedTensor>{{"q", Tensor({2})}}));
  EXPECT_EQ(TensorFile(folder / "x.bin", ".npz").info("q").shape, Shape{2});
}

TEST(TensorFile, WhatIsKnownOfATensorIsNotItsValues) {
  const TestFolder folder;
  const std::vector<NamedTensor> tensors = {{"q", Tensor({2, 3}, DType::kInt64)},
                                            {"k", Tensor(Shape{}, DType::kFloat64)}};
  for (const char* name : {"x.npz", "x.safetensors"}) {
    write_tensors(folder / name, tensors);
    const TensorFile file(folder / name);
    EXPECT_THAT(file.names(), testing::UnorderedElementsAre("q", "k"));
    EXPECT_EQ(file.info("q").dtype, DType::kInt64);
    EXPECT_EQ(file.info("q").shape, (Shape{2, 3}));
    EXPECT_EQ(file.info("k").shape, Shape{});
    EXPECT_THROWS(file.info("v"), kShape, "there is no 'v'");
    EXPECT_TRUE(file.read(std::span<const TensorInfo>()).empty());
  }
}

TEST(TensorFile, AWrongChecksumOfTheWholeIsBadInput) {
  const TestFolder folder;
  const Tensor ones = Tensor::of<float>({2}, std::vector<float>{1, 1});
  for (const auto& [name, word] : {std::pair("x.npz", "member 'q.npy' has a wrong checksum"),
                                   std::pair("x.safetensors", "wrong checksum")}) {
    write_tensors(folder / name, std::vector<NamedTensor>{{"q", ones}});
    std::string bytes = read_file(folder / name);
    bytes[bytes.find(std::string(reinterpret_cast<const char*>(ones.bytes().data()), 8))] ^= 1;
    write_file_atomically(folder / name, bytes);
    EXPECT_THROWS(read_tensors(folder / name), kInputFormat, word);
  }
}

// Who asks for few tensors: its list has no reason to be long.
TEST(TensorFile, AHeaderOfFourMebibytesIsTheLongest) {
  const TestFolder folder;
  const std::string json =
      R"({"__metadata__":{"a":")" + std::string(std::size_t{4} << 20, 'a') + "\"}}";
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(json.size() >> (8 * i) & 0xff);
  write_file_atomically(folder / "x.safetensors", file + json);
  EXPECT_THROWS(TensorFile(folder / "x.safetensors"), kInputFormat, "at most 4194304 are allowed");
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/npz.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fovea/tensor/zip.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

std::vector<NamedTensor> three_tensors() {
  return {{"q", Tensor::of<float>({2}, std::vector<float>{1, 2})},
          {"keep", Tensor({2, 3}, DType::kUInt8)},
          {"a/b", Tensor(Shape{}, DType::kFloat64)}};
}

TEST(Npz, WhatIsWrittenIsReadBackSorted) {
  const auto read = parse_npz(npz_bytes(three_tensors()), "x");
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].name, "a/b");
  EXPECT_EQ(read[1].name, "keep");
  EXPECT_EQ(read[2].name, "q");
  EXPECT_EQ(read[2].tensor.data<float>()[1], 2.0f);
}

TEST(Npz, SameTensorsGiveSameBytesInAnyOrder) {
  auto tensors = three_tensors();
  const std::string bytes = npz_bytes(tensors);
  std::reverse(tensors.begin(), tensors.end());
  EXPECT_EQ(npz_bytes(tensors), bytes);
}

TEST(Npz, NamesTheMemberThatCannotBe) {
  const std::string good = npy_bytes(Tensor({2}));
  const auto archive = [](std::vector<ZipMember> members) { return zip_bytes(members); };
  EXPECT_THROWS(parse_npz(archive({{"q.npy", good}, {"q.npy", good}}), "x.npz"), kInputFormat,
                "x.npz: tensor 'q' is there twice");
  EXPECT_THROWS(parse_npz(archive({{"readme", "text"}}), "x.npz"), kInputFormat,
                "x.npz: member 'readme' is no .npy file");
  EXPECT_THROWS(parse_npz(archive({{"q.npy", good + "x"}}), "x.npz"), kInputFormat,
                "x.npz: tensor 'q': is float32 [2]");
  EXPECT_THROWS(npz_bytes(std::vector<NamedTensor>{{"q", Tensor({2})}, {"q", Tensor({2})}}), kShape,
                "is taken twice");
}

}  // namespace
}  // namespace fovea

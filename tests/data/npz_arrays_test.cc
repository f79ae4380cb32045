// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/npz_arrays.h"

#include <gmock/gmock.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(NpzArrays, AreFoundByName) {
  const float one[] = {1}, two[] = {2};
  const std::string bytes = npz_bytes(std::vector<NamedTensor>{{"b", Tensor::of<float>({1}, two)},
                                                               {"a", Tensor::of<float>({1}, one)}});
  const MemorySource file(bytes);
  const NpzArrays arrays(file, "f.npz");
  EXPECT_TRUE(arrays.has("a"));
  EXPECT_FALSE(arrays.has("c"));
  EXPECT_EQ(arrays.source().read(arrays.required("b", "")).data<float>()[0], 2);
  EXPECT_EQ(arrays.where("a"), "f.npz: a");
  EXPECT_THROWS(arrays.required("c", "write it"), kInputFormat,
                "f.npz: there is no array c; the file has 'a', 'b'");
}

TEST(NpzArrays, HaveTextsThatEndAtAZero) {
  const std::int32_t characters[] = {'r', 0xfc, 0x4e00, 0, 'x'};
  EXPECT_EQ(text_of_characters(characters, 5, "f"), "r\u00fc\u4e00");
  EXPECT_EQ(text_of_characters(characters, 2, "f"), "r\u00fc");
  EXPECT_EQ(text_of_characters(characters + 3, 2, "f"), "");
  for (const std::int32_t bad : {-1, 0xd800, 0x110000}) {
    EXPECT_THROWS(text_of_characters(&bad, 1, "f: word 3"), kInputFormat, "f: word 3");
  }
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/checksum.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

// The values are libxxhash's (the first is the published one for no bytes).
TEST(Checksum, IsXxh3Of128Bits) {
  EXPECT_EQ(xxh3_128(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(xxh3_128("fovea"), "b86cebb71707a8befefc876d2feefd35");
}

TEST(Checksum, PiecesAreJoined) {
  const std::string text(5000, 'x');
  EXPECT_EQ(xxh3_128({text, "", "yz"}), xxh3_128(text + "yz"));
  const std::vector<std::string_view> pieces = {"", "y", "", "z"};
  EXPECT_EQ(xxh3_128(text, pieces), xxh3_128(text + "yz"));
  EXPECT_EQ(xxh3_128("", pieces), xxh3_128("yz"));
}

// The check value of the published parameters.
TEST(Checksum, IsCrc32) {
  EXPECT_EQ(crc32(""), 0u);
  EXPECT_EQ(crc32("123456789"), 0xcbf43926u);
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/base/file.h"
#include "fovea/operator/conformance.h"
#include "fovea/operator/conformance_cases.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(ConformanceKit, WhatIsWrittenIsRead) {
  const TestFolder folder;
  write_conformance_kit(Context(1), folder / "kit");
  const std::vector<ConformanceCase> cases = conformance_cases();
  const std::vector<KitCase> kit = read_conformance_kit(folder / "kit");
  ASSERT_EQ(kit.size(), cases.size());
  for (std::size_t n = 0; n < kit.size(); ++n) {
    EXPECT_EQ(kit[n].name, cases[n].name);
    EXPECT_EQ(kit[n].settings.observe, cases[n].settings.observe);
    EXPECT_EQ(kit[n].settings.window, cases[n].settings.window);
    EXPECT_EQ(kit[n].settings.scale, cases[n].settings.scale);
    EXPECT_EQ(kit[n].settings.seed, cases[n].settings.seed);
    const auto inputs = open_kit_file(folder / "kit", kit[n].inputs).read();
    ASSERT_EQ(inputs.size(), cases[n].tensors.size());
    for (const NamedTensor& tensor : open_kit_file(folder / "kit", kit[n].expected).read()) {
      EXPECT_NE(tensor.tensor.dtype(), DType::kFloat32) << tensor.name;
    }
  }
}

// Twice the plain error and a power of two: never tighter than 16 roundings, and no looser than
// scores of hundreds need.
TEST(ConformanceKit, TolerancesAreDerived) {
  const TestFolder folder;
  write_conformance_kit(Context(1), folder / "kit");
  for (const KitCase& one : read_conformance_kit(folder / "kit")) {
    EXPECT_GE(one.tolerance.f32, 0x1p-20) << one.name;
    EXPECT_LE(one.tolerance.f32, 0x1p-14) << one.name;
    EXPECT_EQ(one.tolerance.f64, one.tolerance.f32 * 0x1p-29) << one.name;
  }
}

TEST(ConformanceKit, NothingIsReplacedAndNothingHalfWritten) {
  const TestFolder folder;
  write_file_atomically(folder / "kit", "mine");
  EXPECT_THROWS(write_conformance_kit(Context(1), folder / "kit"), kOutputExists, "kit");
  EXPECT_EQ(read_file(folder / "kit"), "mine");
  EXPECT_THROWS(write_conformance_kit(Context(1), folder / "kit" / "inside"), kWrite, "kit");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(ConformanceKit, DamageIsNoticed) {
  const TestFolder folder;
  write_conformance_kit(Context(1), folder / "kit");
  const std::vector<KitCase> kit = read_conformance_kit(folder / "kit");
  const std::filesystem::path file = folder / "kit" / kit[3].expected.name;
  std::string bytes = read_file(file);
  bytes.back() ^= 1;
  write_file_atomically(file, bytes);
  EXPECT_THROWS(read_conformance_kit(folder / "kit"), kInputFormat, kit[3].expected.name);
  EXPECT_THROWS(open_kit_file(folder / "kit", kit[3].expected), kInputFormat, "CRC-32");
  std::filesystem::remove(file);
  EXPECT_THROWS(read_conformance_kit(folder / "kit"), kMissingInput, kit[3].expected.name);
  EXPECT_THROWS(read_conformance_kit(folder / "none"), kMissingInput, "none");
}

}  // namespace
}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// The kit on every instruction set; what the command says of it is in
// tests/cli/test_conformance.py.
#include "fovea/operator/conformance.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "fovea/base/file.h"
#include "fovea/tensor/checksum.h"
#include "fovea/tensor/safetensors.h"
#include "tests/isa.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

const AttentionPrecision kBothPrecisions[] = {AttentionPrecision::kFloat32,
                                              AttentionPrecision::kFloat64};

TEST(Conformance, EveryCasePassesOnEveryInstructionSet) {
  const TestFolder folder;
  write_conformance_kit(Context(2), folder / "kit");
  const std::vector<KitCase> cases = read_conformance_kit(folder / "kit");
  for_each_isa([&] {
    for (const KitCase& one : cases) {
      for (const AttentionPrecision precision : kBothPrecisions) {
        const KitResult result = check_kit_case(Context(2), folder / "kit", one, precision);
        EXPECT_TRUE(result.passed) << one.name << ": " << result.error << " in " << result.tensor
                                   << result.place << " " << result.problem;
      }
    }
  });
}

/// One case, of tensors that a test chooses.
class Kit {
 public:
  Kit() {
    write_conformance_kit(Context(1), folder_ / "kit");
    one = read_conformance_kit(folder_ / "kit").front();
  }
  std::vector<NamedTensor> expected() {
    const std::string bytes = read_file(folder_ / "kit" / one.expected.name);
    return parse_safetensors(bytes, "kit").tensors;
  }
  void expect(const std::vector<NamedTensor>& tensors) {
    const std::string bytes = safetensors_bytes(tensors);
    one.expected = {"mine.safetensors", static_cast<index>(bytes.size()),
                    fmt::format("{:08x}", crc32(bytes))};
    write_file_atomically(folder_ / "kit" / one.expected.name, bytes);
  }
  KitResult check(AttentionPrecision precision = AttentionPrecision::kFloat64) {
    return check_kit_case(Context(1), folder_ / "kit", one, precision);
  }

  KitCase one;

 private:
  TestFolder folder_;
};

TEST(Conformance, AnotherValueFails) {
  Kit kit;
  std::vector<NamedTensor> tensors = kit.expected();
  for (NamedTensor& named : tensors) {
    if (named.name == "dq") named.tensor.data<double>()[3] += 1e-3;
  }
  kit.expect(tensors);
  for (const AttentionPrecision precision : kBothPrecisions) {
    const KitResult result = kit.check(precision);
    EXPECT_FALSE(result.passed);
    EXPECT_EQ(result.tensor, "dq");
    EXPECT_EQ(result.place, "[0, 0, 0, 3]");
    EXPECT_NEAR(result.error, 1e-3, 9e-4);
    EXPECT_EQ(result.problem, "");
  }
  kit.one.tolerance = {1, 1};
  EXPECT_TRUE(kit.check().passed);
}

TEST(Conformance, ACallThatIsRefusedFails) {
  Kit kit;
  kit.one.settings.observe = "everything";
  const KitResult result = kit.check();
  EXPECT_FALSE(result.passed);
  EXPECT_NE(result.problem.find("everything"), std::string::npos) << result.problem;
}

TEST(Conformance, NothingIsNoResult) {
  Kit kit;
  kit.expect({});
  EXPECT_FALSE(kit.check().passed);
  EXPECT_THROWS(kit.check(AttentionPrecision::kAuto), kShape, "precision");
}

}  // namespace
}  // namespace fovea

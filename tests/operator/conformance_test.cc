// SPDX-License-Identifier: Apache-2.0
// The kit on every instruction set; what the command says of it is in
// tests/cli/test_conformance.py.
#include "fovea/operator/conformance.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <limits>

#include "fovea/base/file.h"
#include "fovea/operator/conformance_cases.h"
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

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
NamedTensor tensor(const char* name, const Shape& shape, const std::vector<T>& values) {
  return {name, Tensor::of<T>(shape, values)};
}

TensorDifference difference(const NamedTensor& made, const NamedTensor& expected) {
  return largest_difference({&made, 1}, {&expected, 1});
}

double error(const std::vector<double>& made, const std::vector<double>& expected) {
  const Shape shape{static_cast<index>(made.size())};
  return difference(tensor("x", shape, made), tensor("x", shape, expected)).error;
}

TEST(TensorDifference, IsAShareOfTheLargestExpectedValue) {
  EXPECT_EQ(error({1, 2}, {1, 2}), 0);
  EXPECT_EQ(error({1, 2.5}, {1, 2}), 0.25);
  EXPECT_EQ(error({1, -9}, {1, -8}), 0.125);
  EXPECT_EQ(error({0.25, 0}, {0.5, 0}), 0.25) << "small values have the scale 1";
  EXPECT_EQ(error({-kInfinity, 5}, {-kInfinity, 4}), 0.25);
}

TEST(TensorDifference, WhatIsNotFiniteMustBeEqual) {
  EXPECT_EQ(error({kInfinity, kNaN}, {kInfinity, kNaN}), 0);
  for (const auto& [made, expected] : {std::pair{kInfinity, -kInfinity},
                                       {0.0, kNaN},
                                       {kNaN, 0.0},
                                       {1e300, kInfinity},
                                       {kInfinity, 1e300}}) {
    EXPECT_EQ(error({made}, {expected}), kInfinity);
  }
}

TEST(TensorDifference, WholeNumbersMustBeEqual) {
  const Shape shape{3};
  const auto made = tensor<std::int32_t>("x", shape, {1000, 2, 3});
  EXPECT_EQ(difference(made, made).error, 0);
  EXPECT_EQ(difference(made, tensor<std::int32_t>("x", shape, {1001, 2, 3})).error, kInfinity);
}

TEST(TensorDifference, SaysWhere) {
  const auto made = tensor<float>("dq", {2, 1, 3}, {0, 0, 0, 0, 0.5f, 0.75f});
  const auto found = difference(made, tensor<double>("dq", {2, 1, 3}, {0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(found.error, 0.75);
  EXPECT_EQ(found.tensor + found.place, "dq[1, 0, 2]");
  EXPECT_EQ(found.problem, "");
}

TEST(TensorDifference, SaysWhatIsMissing) {
  const auto a = tensor<double>("a", {2}, {1, 2}), b = tensor<double>("b", {2}, {1, 2});
  EXPECT_NE(difference(a, b).problem, "");
  EXPECT_NE(difference(a, tensor<double>("a", {1, 2}, {1, 2})).problem, "");
  const std::vector<NamedTensor> both = {a, b};
  EXPECT_EQ(largest_difference(both, {&b, 1}).problem, "") << "a is not expected";
}

}  // namespace
}  // namespace fovea

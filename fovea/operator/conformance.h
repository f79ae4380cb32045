// SPDX-License-Identifier: Apache-2.0
// The conformance kit: a folder of inputs and expected results of attention, and conformance.json,
// which lists them (docs/commands/conformance.md has every field).
// The fused operator on this machine is compared with these results.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/operator/attention_settings.h"
#include "fovea/tensor/named_tensor.h"
#include "fovea/tensor/tensor_file.h"

namespace fovea {

/// The error of a value is its distance from the expected value, divided by the largest finite
/// magnitude expected in its tensor, or by 1 if that is larger. Whole numbers and values that are
/// not finite must be equal: otherwise the error is infinite.
struct TensorDifference {
  double error = 0;          ///< the largest of all
  std::string tensor = {};   ///< the tensor with the largest error
  std::string place = {};    ///< "[0, 3, 1]"
  std::string problem = {};  ///< a tensor that is missing or has another shape; "" if there is
                             ///< none
};

/// The problem with the shape of an expected tensor; "" if there is none. Needs no values.
std::string shape_problem(std::span<const NamedTensor> made, std::string_view name,
                          const Shape& expected);

/// The largest difference over all expected tensors. Other tensors in `made` are ignored.
TensorDifference largest_difference(std::span<const NamedTensor> made,
                                    std::span<const NamedTensor> expected);

inline constexpr std::string_view kKitName = "conformance.json";

struct KitFile {
  std::string name;
  index size = 0;
  std::string crc32;  ///< of the whole file: 8 hexadecimal digits
};

/// The largest error of TensorDifference that passes.
struct KitTolerance {
  double f32, f64;
};

struct KitCase {
  std::string name;
  AttentionSettings settings;
  KitFile inputs, expected;
  KitTolerance tolerance;
};

/// Writes every case of conformance_cases(), with the results of the definition in double as
/// expected values. The tolerance of float32 is twice the error of plain loops in float32, but at
/// least 16 roundings, rounded up to a power of two; that of float64 is as many roundings of a
/// double. The folder appears as a whole or not at all, and has the same bytes each time on one
/// machine. Throws kOutputExists, kWrite, kDiskFull.
void write_conformance_kit(const Context& context, const std::filesystem::path& folder);

/// The cases of a kit, which fovea or another library has written. Checks that its folder has
/// exactly the files of the cases and that they are intact. Throws kMissingInput, kInputFormat.
std::vector<KitCase> read_conformance_kit(const std::filesystem::path& folder);

/// Opens one file of a kit and checks that it is intact. Throws as above.
TensorFile open_kit_file(const std::filesystem::path& folder, const KitFile& file);

struct KitResult {
  std::string name;
  AttentionPrecision precision = AttentionPrecision::kFloat32;
  bool passed = false;
  double error = 0;
  double tolerance = 0;
  std::string tensor = {};
  std::string place = {};
  std::string problem = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("name", name, "the case");
    visit("precision", precision, "in which it was computed");
    visit("passed", passed, "whether every value is near enough");
    visit("error", error, "the largest");
    visit("tolerance", tolerance, "the largest that passes");
    visit("tensor", tensor, "where the largest error is");
    visit("place", place, "in it");
    visit("problem", problem, "why not all could be compared");
  }
};

/// Runs a case on the current instruction set, in float32 or float64, and compares every expected
/// tensor. If the operator rejects the call or does not compute a tensor, the case has not passed.
/// Throws what open_kit_file does.
KitResult check_kit_case(const Context& context, const std::filesystem::path& folder,
                         const KitCase& one, AttentionPrecision precision);

}  // namespace fovea

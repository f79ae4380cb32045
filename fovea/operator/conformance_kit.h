// SPDX-License-Identifier: Apache-2.0
// The conformance kit: a folder of inputs and expected results of attention, and conformance.json,
// which lists them (docs/commands/conformance.md has every field).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/operator/attention_settings.h"
#include "fovea/tensor/tensor_file.h"

namespace fovea {

inline constexpr std::string_view kKitName = "conformance.json";

struct KitFile {
  std::string name;
  index size = 0;
  std::string crc32;  ///< of the whole file: 8 hexadecimal digits
};

/// The largest error (tensor_difference.h) that passes.
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

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
// The conformance kit: a folder of inputs and expected results of attention, and conformance.json,
// which lists them (docs/commands/conformance.md has every field).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/task/attention_settings.h"
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

/// Writes every case of conformance_cases(), what is expected by the definition in doubles. The
/// tolerance of float32 is twice the error of its plain loops in float32, or 16 roundings where
/// that is more, and then the next power of two; that of float64 is as many roundings of a double.
/// The folder appears whole or not at all, and holds the same bytes whenever this machine writes
/// it. Throws kOutputExists, kWrite, kDiskFull.
void write_conformance_kit(const Context& context, const std::filesystem::path& folder);

/// The cases of a folder, ours or another library's, whose files are all there and whole, with no
/// others beside them. Throws kMissingInput, kInputFormat.
std::vector<KitCase> read_conformance_kit(const std::filesystem::path& folder);

/// One of its files, whole. Throws as above.
TensorFile open_kit_file(const std::filesystem::path& folder, const KitFile& file);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "fovea/base/version.h"

namespace fovea::cli {

inline constexpr const char* kVersion = FOVEA_VERSION;
inline constexpr const char* kVersionDay = "2026-11-29";  ///< that manual pages show
#if defined(__clang__)
inline constexpr const char* kCompiler = "clang " __clang_version__;
#else
inline constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

}  // namespace fovea::cli

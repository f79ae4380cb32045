// SPDX-License-Identifier: Apache-2.0
// The version of fovea, for #if. CMake reads it from here.
#pragma once

#define FOVEA_VERSION_MAJOR 0
#define FOVEA_VERSION_MINOR 1
#define FOVEA_VERSION_PATCH 0
#define FOVEA_VERSION "0.1.0"

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace fovea {

/// Makes a name from an untrusted file safe to print on a terminal: in quotes, at most 60 bytes of
/// it. Control and format characters, and bytes that are not UTF-8, are written as \xNN.
std::string printable(std::string_view name);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace fovea {

/// A name from a file that is not trusted, in quotes, fit for a message on a terminal: at most 60
/// bytes of it, and everything but printable ASCII as \xNN.
std::string printable(std::string_view name);

}  // namespace fovea

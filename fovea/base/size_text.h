// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>

namespace fovea {

/// A number of bytes as people read it, in the largest unit that gives at least 1: "512 B",
/// "1.50 KiB", "67.1 MiB", "859 GiB", "64.0 TiB". From KiB on it has three digits or more.
std::string size_text(double bytes);

template <std::integral T>
std::string size_text(T bytes) {
  return size_text(static_cast<double>(bytes));
}

}  // namespace fovea

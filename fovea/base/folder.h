// SPDX-License-Identifier: Apache-2.0
// Lists and removes folders. This replaces the iterators of std::filesystem, which end the process
// when memory runs out (libstdc++ 12): they allocate in a function that may not throw.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace fovea {

/// The names in a folder, in no particular order. On an error, those found before it. Throws
/// std::bad_alloc if memory runs out.
std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& error);

/// The names in a folder, in no particular order; throws Error(kRead) on an error.
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// Removes a file, or a folder with all that is in it; links are not followed. A path that does not
/// exist is no error. After an error it goes on and removes the rest as far as it can.
void remove_tree(const std::filesystem::path& path, std::error_code& error);

}  // namespace fovea

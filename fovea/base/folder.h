// SPDX-License-Identifier: Apache-2.0
// What is in a folder. std::filesystem could say so, too; but where memory runs out, its iterators
// (libstdc++ 12) end the process: they allocate in a function that may not throw.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace fovea {

/// The names in a folder, in no order. Those before an error, if there is one; std::bad_alloc where
/// it is memory that is missing.
std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& error);

/// The same; an error is Error(kRead).
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// Removes a file, or a folder with all that is in it; links are not followed. What is not there is
/// removed. On an error the rest is removed all the same, as far as it can be.
void remove_tree(const std::filesystem::path& path, std::error_code& error);

}  // namespace fovea

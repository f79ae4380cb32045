// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace fovea {

/// The text of a file of fovea/report/page, such as "page.css"; cmake/FoveaPage.cmake compiles them
/// in. Empty if there is none of that name.
std::string_view page_file(std::string_view name);
/// The SHA-256 of that file, 32 bytes, computed during the build.
std::string_view page_file_sha256(std::string_view name);

}  // namespace fovea

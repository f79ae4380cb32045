// SPDX-License-Identifier: Apache-2.0
// The file that a page is to be written to.
#pragma once

#include <string>
#include <string_view>

#include "fovea/report/html.h"

namespace fovea::cli {

struct PageFile {
  std::string_view option;  ///< that names it, with dashes
  std::string file;
  bool overwrite = false;  ///< a page that fovea has written may be replaced; nothing else is
  std::string_view kind = "page", ending = ".html";  ///< its name in messages, and its usual suffix
  std::string_view mark = kGeneratorMark;  ///< in the first lines of what fovea has written
};

/// Before anything is computed. Throws kOptionValue for no name, kWrite where no file can be, and
/// kOutputExists.
void check_page_file(const PageFile& page);

}  // namespace fovea::cli

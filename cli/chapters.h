// SPDX-License-Identifier: Apache-2.0
// The chapters of the course (docs/learn), which the command carries.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/report/html.h"

namespace fovea::cli {

struct Chapter {
  index number;
  std::string name;  ///< "03-masks"
  std::string title = {}, summary = {};
  std::string text;  ///< Markdown
};

/// All chapters in this language, in their order.
std::vector<Chapter> chapters_in(PageLanguage language);

/// The code of all blocks of this kind, "sh" or "python".
std::vector<std::string> code_blocks(std::string_view markdown, std::string_view kind);

/// A chapter for a terminal of so many columns: headings are underlined, code is indented, links
/// and marks are gone, paragraphs are wrapped.
std::string plain_text(std::string_view markdown, index columns);

/// The texts of docs/learn, as cmake/FoveaChapters.cmake packs them.
std::string_view packed_chapters();
int chapter_count();

}  // namespace fovea::cli

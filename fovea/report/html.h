// SPDX-License-Identifier: Apache-2.0
// The shell of all pages: one self-contained HTML file that asks for nothing from outside.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/fields.h"

namespace fovea {

enum class PageLanguage { kEnglish, kChinese };
inline constexpr EnumName<PageLanguage> kPageLanguageNames[] = {{PageLanguage::kEnglish, "en"},
                                                                {PageLanguage::kChinese, "zh"}};
inline std::span<const EnumName<PageLanguage>> enum_names(PageLanguage) {
  return kPageLanguageNames;
}

/// A text of a page in both languages.
struct Phrase {
  std::string_view english, chinese;

  std::string_view in(PageLanguage language) const {
    return language == PageLanguage::kChinese ? chinese : english;
  }
};

/// Text for HTML, also inside quoted attributes: & < > " ' are escaped; bytes that are not UTF-8
/// and characters that HTML forbids become U+FFFD. It may still hold characters that turn the
/// direction of writing: put names of others into <bdi>.
std::string html_text(std::string_view text);

/// A name of others: html_text() in <bdi>.
std::string bdi(std::string_view text);

/// A JSON string, with its quotes, that cannot end a <script>: < > & and U+2028, U+2029 are
/// written as \uNNNN. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

/// Data for the scripts of a page: <script type="application/json" id="ID">JSON</script>. `id` is
/// ours; `json` is made of numbers, our own words and json_text().
struct PageData {
  std::string id, json;
};

struct HtmlPage {
  PageLanguage language = PageLanguage::kEnglish;
  std::string_view title = {};  ///< plain text
  std::string_view style = {};  ///< more CSS; it may use the variables of page/page.css
  std::string_view body = {};   ///< HTML of <main>
  std::vector<PageData> data = {};
  std::vector<std::string_view> scripts = {};  ///< names of page files
};

/// The whole file: UTF-8, valid HTML and well-formed XML. Its policy (CSP) forbids every request;
/// only the given scripts may run, by their SHA-256. The shell adds a heading with the title, a
/// switch of light and dark (without one, as the system says), rules for printing and for focus.
/// Inline styles are allowed, so that SVG pictures keep theirs; `img` may hold data: URLs. Handlers
/// in attributes (onclick=) are not.
std::string draw_html(const HtmlPage& page);
/// The mark in the first lines of each page, and of no other file.
inline constexpr std::string_view kGeneratorMark = "<meta name=\"generator\" content=\"fovea\">";

/// The text of a file of fovea/report/page, such as "page.css"; cmake/FoveaPage.cmake compiles them
/// in. Empty if there is none of that name.
std::string_view page_file(std::string_view name);
/// The SHA-256 of that file, 32 bytes, computed during the build.
std::string_view page_file_sha256(std::string_view name);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/html.h"

#include <gmock/gmock.h>

#include "fovea/base/words.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string hash_of(std::string_view script) {
  return "'sha256-" + base64(page_file_sha256(script)) + "'";
}

TEST(Html, EscapesWhatEndsATextOrAnAttribute) {
  EXPECT_EQ(html_text("<b a=\"1\" c='2'>&"), "&lt;b a=&quot;1&quot; c=&apos;2&apos;&gt;&amp;");
  EXPECT_EQ(html_text("\u597D\t\n"), "\u597D\t\n");
  EXPECT_EQ(html_text(std::string_view("\0\x01\xFF\x7F", 4)), "\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(Html, JsonCannotEndAScript) {
  EXPECT_EQ(json_text("</script><!--&"), "\"\\u003c/script\\u003e\\u003c!--\\u0026\"");
  EXPECT_EQ(json_text("\"\\\n\u2028\u2029"), "\"\\u0022\\u005c\\u000a\\u2028\\u2029\"");
  EXPECT_EQ(json_text("\u597D\xFF"), "\"\u597D\uFFFD\"");
}

TEST(Html, AllowsItsOwnScriptsAlone) {
  const std::string html = draw_html({.title = "<title>",
                                      .style = ".mine{}",
                                      .body = "<p>body</p>",
                                      .data = {{"numbers", "[1,2]"}},
                                      .scripts = {"weights.js"}});
  EXPECT_THAT(html, HasSubstr("default-src 'none'; script-src " + hash_of("page.js") + " " +
                              hash_of("weights.js") + "; style-src"));
  EXPECT_THAT(html, HasSubstr("<title>&lt;title&gt;</title>"));
  EXPECT_THAT(html, HasSubstr("<main>\n<p>body</p></main>"));
  EXPECT_THAT(html, HasSubstr("<script type=\"application/json\" id=\"numbers\">[1,2]</script>"));
  EXPECT_THAT(html, HasSubstr("<script>" + std::string(page_file("weights.js")) + "</script>"));
  EXPECT_THAT(html, HasSubstr(".mine{}</style>"));
  for (const char* word : {"http:", "https:", "//cdn", "@import", "url(http", "onclick"}) {
    EXPECT_THAT(html, Not(HasSubstr(word)));
  }
}

TEST(Html, SpeaksBothLanguages) {
  EXPECT_THAT(draw_html({}), HasSubstr("<html lang=\"en\">"));
  const std::string chinese = draw_html({.language = PageLanguage::kChinese});
  EXPECT_THAT(chinese, HasSubstr("<html lang=\"zh-CN\">"));
  EXPECT_THAT(chinese, HasSubstr("aria-label=\"浅色或深色\""));
}

TEST(PageFile, HasTheFilesOfThePages) {
  for (const char* name :
       {"page.css", "page.js", "attention.css", "attention.js", "weights.js", "lines.js"}) {
    const std::string_view text = page_file(name);
    EXPECT_THAT(std::string(text), HasSubstr("SPDX-License-Identifier")) << name;
    EXPECT_EQ(text.find("</script"), std::string_view::npos) << name;
    EXPECT_EQ(text.find("<!--"), std::string_view::npos) << name;
  }
  EXPECT_EQ(page_file("nothing.js"), "");
}

}  // namespace
}  // namespace fovea

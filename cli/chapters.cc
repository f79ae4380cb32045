// SPDX-License-Identifier: Apache-2.0
#include "cli/chapters.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>

#include "fovea/base/bytes.h"
#include "fovea/base/words.h"
#include "fovea/report/terminal.h"
#include "fovea/text/compressed.h"

namespace fovea::cli {

namespace {

constexpr char kSeparator = '\x1e';  // before the name of each text
constexpr std::string_view kFence = "```", kChinese = ".zh-CN.md", kEnglish = ".md";
// A line does not begin with one of these, nor end with one of those.
constexpr std::string_view kClosing[] = {"，", "。", "、", "；", "：", "？", "！", "）", "》",
                                         "”",  ")",  ",",  ".",  ";",  ":",  "?",  "!",  "%"};
constexpr std::string_view kOpening[] = {"（", "《", "“", "("};

std::string all_chapters() {
  const auto stream = unpacked(std::make_unique<MemoryStream>(packed_chapters()), "chapters");
  return read_whole(*stream, "chapters", "free some memory", std::numeric_limits<index>::max());
}

// "# 3. Title", and the line "> What it is about."
Chapter chapter_of(std::string_view name, std::string_view text) {
  Chapter chapter{.number = 0, .name = std::string(name), .text = std::string(text)};
  std::from_chars(name.data(), name.data() + name.size(), chapter.number);
  for (const std::string_view line : parts_between(text, '\n')) {
    if (chapter.title.empty() && line.starts_with("# ")) {
      chapter.title = line.substr(line.find(". ") + 2);
    }
    if (!line.starts_with("> ")) continue;
    chapter.summary = line.substr(2);
    break;
  }
  return chapter;
}

// "[text](link)" becomes "text", "![text](link)" "[text]", "**text**" "text"; tags are left out.
std::string without_marks(std::string_view line) {
  std::string plain;
  while (!line.empty()) {
    const bool image = line.starts_with("![");
    const std::size_t middle = line.find(']');  // "[C, C] and [text](link)" begins with no link
    const bool links = middle != line.npos && line.substr(middle).starts_with("](");
    const std::size_t end = links ? line.find(')', middle) : line.npos;
    if ((image || line.starts_with("[")) && end != line.npos) {
      const std::string_view text = line.substr(image ? 2 : 1, middle - (image ? 2 : 1));
      plain += image ? fmt::format("[{}]", text) : std::string(text);
      line.remove_prefix(end + 1);
    } else if (line.starts_with("**")) {
      line.remove_prefix(2);
    } else if (line.starts_with("<") && line.find('>') != line.npos) {
      line.remove_prefix(line.find('>') + 1);
    } else {
      const std::size_t next = std::min(line.find_first_of("![*<", 1), line.size());
      plain += line.substr(0, next);
      line.remove_prefix(next);
    }
  }
  return plain;
}

// The parts of a text between which a line may end: words, and single characters of Chinese.
std::vector<std::string> units_of(std::string_view text) {
  std::vector<std::string> units;
  bool new_one = true, was_wide = false;
  for (const std::string& glyph : glyphs_of(text)) {
    if (glyph == " ") {
      if (!units.empty()) units.back() += ' ';
      new_one = true;
      continue;
    }
    const bool is_wide = display_width(glyph) > 1;
    const bool joined = !new_one && (contains(kClosing, glyph) || (!is_wide && !was_wide) ||
                                     contains(kOpening, units.back()));
    if (joined) {
      units.back() += glyph;
    } else {
      units.push_back(glyph);
    }
    new_one = false;
    was_wide = is_wide;
  }
  return units;
}

// Lines of at most so many columns; those after the first are indented.
std::string wrapped_text(std::string_view text, index columns, std::string_view indent) {
  std::string lines, line;
  const auto end_line = [&] {
    lines += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    line = indent;
  };
  for (const std::string& unit : units_of(text)) {
    const std::string_view word(unit.data(), unit.find_last_not_of(' ') + 1);
    if (line != indent && display_width(line) + display_width(word) > columns) end_line();
    line += unit;
  }
  if (!line.empty()) end_line();
  return lines;
}

std::string heading(std::string_view line, index columns) {
  const std::size_t level = line.find(' ');
  const std::string text = without_marks(line.substr(level + 1));
  const index width = std::min(display_width(text), columns);
  return text + "\n" + std::string(static_cast<std::size_t>(width), level == 1 ? '=' : '-') + "\n";
}

// Columns of what stands before the text of an entry of a list.
std::size_t list_mark(std::string_view line) {
  if (line.starts_with("- ")) return 2;
  const std::size_t digits = line.find_first_not_of("0123456789");
  return digits > 0 && digits != line.npos && line.substr(digits).starts_with(". ") ? digits + 2
                                                                                    : 0;
}

std::string plain_line(std::string_view line, index columns) {
  if (line.starts_with("#")) return heading(line, columns);
  if (line.starts_with("|---")) return "";
  if (line.starts_with("|")) return without_marks(line) + "\n";
  const std::size_t mark = line.starts_with("> ") ? 0 : list_mark(line);
  const std::string text = without_marks(line.starts_with("> ") ? line.substr(2) : line);
  return wrapped_text(text, columns, std::string(mark, ' '));
}

}  // namespace

std::vector<Chapter> chapters_in(PageLanguage language) {
  const std::string all = all_chapters();
  std::vector<Chapter> chapters;
  for (const std::string_view part : parts_between(all, kSeparator)) {
    const std::string_view name = part.substr(0, part.find('\n'));
    if (name.empty() || name.ends_with(kChinese) != (language == PageLanguage::kChinese)) continue;
    const std::string_view ending = name.ends_with(kChinese) ? kChinese : kEnglish;
    chapters.push_back(
        chapter_of(name.substr(0, name.size() - ending.size()), part.substr(name.size() + 1)));
  }
  return chapters;
}

std::vector<std::string> code_blocks(std::string_view markdown, std::string_view kind) {
  std::vector<std::string> blocks;
  bool in_block = false, wanted = false;
  for (const std::string_view line : parts_between(markdown, '\n')) {
    if (line.starts_with(kFence)) {
      wanted = !in_block && line.substr(kFence.size()) == kind;
      in_block = !in_block;
      if (wanted) blocks.emplace_back();
    } else if (wanted) {
      blocks.back().append(line).append("\n");
    }
  }
  return blocks;
}

std::string plain_text(std::string_view markdown, index columns) {
  std::string text;
  bool in_code = false;
  const auto end_paragraph = [&] {
    if (!text.empty() && !text.ends_with("\n\n")) text += "\n";
  };
  for (const std::string_view line : parts_between(markdown, '\n')) {
    const bool is_navigation = line.starts_with("[") && line.find("](README") != line.npos;
    if (line.starts_with(kFence)) {
      in_code = !in_code;
    } else if (in_code) {
      text += line.empty() ? "\n" : fmt::format("    {}\n", line);
    } else if (line.empty() || line.starts_with("</details>")) {
      end_paragraph();
    } else if (!is_navigation) {
      text += plain_line(line, columns);
    }
  }
  return text;
}

}  // namespace fovea::cli

// SPDX-License-Identifier: Apache-2.0
#include "fovea/catalogue/catalogue.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <unordered_map>
#include <vector>

#include "fovea/catalogue/entry.h"

namespace fovea {

/// The text of zh_CN.po, which cmake/FoveaCatalogue.cmake compiles in.
std::string_view chinese_po();

namespace {

// A part of a message may hold a message, as that of a file that an option names does.
constexpr int kDeepest = 3;
constexpr std::string_view kSemicolon = "；";
// So often a text is cut in two at one kind of separator: a text of others may have any number.
constexpr int kMostCuts = 3;
// A longer line is no message of fovea.
constexpr std::size_t kLongest = 1000;

std::size_t letters_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }));
}

// Whether a character of this first byte is a Chinese one (U+4E00 to U+9FFF, and a few behind).
bool begins_chinese(unsigned char byte) { return byte >= 0xE4 && byte <= 0xE9; }

// With a blank between Chinese and Latin, as it is set.
void append(std::string& text, std::string_view more) {
  if (!text.empty() && !more.empty()) {
    const auto last = static_cast<unsigned char>(text.back());
    const auto next = static_cast<unsigned char>(more.front());
    const bool ends_chinese =
        text.size() >= 3 && begins_chinese(static_cast<unsigned char>(text[text.size() - 3]));
    if ((ends_chinese && (std::isalnum(next) != 0 || next == '-')) ||
        (std::isalnum(last) != 0 && begins_chinese(next))) {
      text += ' ';
    }
  }
  text += more;
}

// A format of so many letters does not match by chance.
constexpr std::size_t kEnough = 8;

// Which parts a message may have. kShort: none with "; ", behind which another sentence begins.
enum class MatchParts { kAny, kShort };

struct Pattern {
  FormatPieces english, chinese;
  std::size_t letters = 0;  // of the English literals
};

class Catalogue {
 public:
  Catalogue() {
    for (CatalogueEntry& entry : read_po(chinese_po())) add(std::move(entry));
    // The first that matches counts: those that say more come first.
    std::stable_sort(patterns_.begin(), patterns_.end(),
                     [](const Pattern& a, const Pattern& b) { return a.letters > b.letters; });
  }

  static const Catalogue& get() {
    static const Catalogue catalogue;
    return catalogue;
  }

  std::optional<std::string> find(std::string_view text, int depth,
                                  MatchParts may_be = MatchParts::kAny) const {
    const Found found = look_up(text, depth, may_be);
    return found.letters == 0 ? std::nullopt : std::optional(translated(found, depth));
  }

  std::string translate(std::string_view text, int depth) const {
    if (text.empty()) return {};
    if (text.size() > kLongest) {
      auto lines = depth > 0 ? in_parts(text, "\n", "\n", depth) : std::nullopt;
      return lines ? *lines : std::string(text);
    }
    if (std::optional<std::string> whole = whole_or_tail(text, depth)) return *whole;
    if (depth == 0) return std::string(text);
    if (auto parts = in_parts(text, "\n", "\n", depth)) return *parts;
    if (auto parts = in_parts(text, "; ", kSemicolon, depth)) return *parts;
    if (auto found = find(text, depth)) return *found;
    if (auto parts = in_parts(text, ": ", "：", depth)) return *parts;
    if (auto parts = listed(text, depth)) return *parts;
    return std::string(text);
  }

 private:
  // A text or a format of the catalogue. Without letters: none.
  struct Found {
    std::size_t letters = 0;  // of what the text shares with it
    const std::string* text = nullptr;
    const Pattern* pattern = nullptr;
    std::vector<std::string_view> parts = {};
  };

  Found look_up(std::string_view text, int depth, MatchParts may_be) const {
    if (const auto found = texts_.find(std::string(text)); found != texts_.end()) {
      return {.letters = letters_of(text) + 1, .text = &found->second};
    }
    if (depth == 0) return {};
    for (const Pattern& pattern : patterns_) {
      auto parts = match_format(pattern.english, text);
      if (!parts || (may_be == MatchParts::kShort && !are_short(*parts))) continue;
      if (depth < kDeepest && !says_enough(pattern, *parts)) continue;
      if (is_likely(pattern, *parts, depth)) {
        return {.letters = pattern.letters + 1, .pattern = &pattern, .parts = std::move(*parts)};
      }
    }
    return {};
  }

  // Whether a part of a message is ours: a name of the user's may hold "is" or "or", too, but
  // hardly beside a number.
  static bool says_enough(const Pattern& pattern, const std::vector<std::string_view>& parts) {
    return pattern.letters >= kEnough || std::ranges::any_of(parts, [](std::string_view part) {
             return !part.empty() && part.find_first_not_of("+-.0123456789") == part.npos;
           });
  }

  // A part may hold several sentences only as one text of the catalogue.
  bool are_short(const std::vector<std::string_view>& parts) const {
    return std::ranges::all_of(parts, [&](std::string_view part) {
      return part.find("; ") == part.npos || texts_.count(std::string(part)) > 0;
    });
  }

  std::string translated(const Found& found, int depth) const {
    return found.text != nullptr ? *found.text : put_in(*found.pattern, found.parts, depth);
  }

  // The whole text, or what stands behind the name of a file or an option, whichever shares more
  // with a text of the catalogue: "a.tsv:3: expected a label, got none" is more than "{}: expected
  // {}, got {}".
  std::optional<std::string> whole_or_tail(std::string_view text, int depth) const {
    Found best = look_up(text, depth, MatchParts::kShort);
    std::string_view head;
    int cuts = 0;
    for (std::size_t at = 0; depth > 0 && cuts < kMostCuts; at += 2, ++cuts) {
      at = text.find(": ", at);
      if (at == text.npos) break;
      Found tail = look_up(text.substr(at + 2), depth - 1, MatchParts::kShort);
      // Behind a sentence a tail says less than the whole, however long it is.
      const bool behind_name = text.starts_with("--") || text.substr(0, at).find(' ') == text.npos;
      if (tail.letters <= best.letters || (best.letters > kEnough && !behind_name)) continue;
      best = std::move(tail);
      head = text.substr(0, at);
    }
    if (best.letters == 0) return std::nullopt;
    if (head.empty()) return translated(best, depth);
    return part(head, depth - 1) + "：" + translated(best, depth - 1);
  }

  // A list of texts that are all known.
  std::optional<std::string> listed(std::string_view text, int depth) const {
    std::string list;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(", ", begin), text.size());
      const auto one = find(text.substr(begin, end - begin), depth - 1, MatchParts::kShort);
      if (!one) return std::nullopt;
      list += (begin == 0 ? "" : "，") + *one;
      begin = end + 2;
    }
    return list;
  }

  // A format of few words, such as "{} is {}", matches many a sentence: its parts must be known.
  bool is_likely(const Pattern& pattern, const std::vector<std::string_view>& parts,
                 int depth) const {
    return pattern.letters >= kEnough || std::ranges::all_of(parts, [&](std::string_view part) {
             constexpr std::string_view kNames =
                 "'\"/-";  // of files and options, and what is in quotes
             return part.find(' ') == part.npos || kNames.find(part.front()) != kNames.npos ||
                    find(part, depth - 1);
           });
  }

  void add(CatalogueEntry entry) {
    if (entry.is_word) {
      words_.emplace(std::move(entry.english), std::move(entry.chinese));
      return;
    }
    if (entry.english.starts_with("; ") && entry.chinese.starts_with(kSemicolon)) {
      texts_.emplace(entry.english.substr(2), entry.chinese.substr(kSemicolon.size()));
    }
    if (entry.english.ends_with(' ')) {  // a name is put behind it
      entry.english += "{}";
      entry.chinese += "{}";
    }
    std::optional<FormatPieces> english = pieces_of(entry.english);
    std::optional<FormatPieces> chinese = pieces_of(entry.chinese);
    if (english && chinese && !english->places.empty()) {
      std::size_t letters = 0;
      for (const std::string& literal : english->literals) letters += letters_of(literal);
      patterns_.push_back({std::move(*english), std::move(*chinese), letters});
    }
    texts_.emplace(std::move(entry.english), std::move(entry.chinese));
  }

  std::string put_in(const Pattern& pattern, const std::vector<std::string_view>& parts,
                     int depth) const {
    const FormatPieces& format = pattern.chinese;
    std::string text = format.literals.front();
    for (std::size_t n = 0; n < format.places.size(); ++n) {
      const std::size_t argument = format.places[n].argument;
      if (argument < parts.size()) {
        const auto word = words_.find(std::string(parts[argument]));
        const bool is_word = word != words_.end() && is_of_ours(pattern.english, argument);
        append(text, is_word ? word->second : part(parts[argument], depth - 1));
      }
      append(text, format.literals[n + 1]);
    }
    return text;
  }

  // Whether this place holds a word of ours, and no name of the user's: what cannot be done, a
  // unit, with the s of its plural behind it, or the verb of a number.
  static bool is_of_ours(const FormatPieces& english, std::size_t place) {
    const std::string& before = english.literals[place];
    const std::string& behind = english.literals[place + 1];
    return before.ends_with("cannot ") || behind.starts_with(" not ") ||
           (behind.starts_with('s') &&
            (behind.size() == 1 || std::isalpha(static_cast<unsigned char>(behind[1])) == 0));
  }

  // A part may be a name of a user's, so one word alone stays as it is.
  std::string part(std::string_view text, int depth) const {
    if (text.find(' ') == std::string_view::npos) return std::string(text);
    return translate(text, depth);
  }

  // The text cut at the first `between` where one of both sides is known.
  std::optional<std::string> in_parts(std::string_view text, std::string_view between,
                                      std::string_view chinese, int depth) const {
    int cuts = 0;
    for (std::size_t at = 0; cuts < kMostCuts; at += between.size(), ++cuts) {
      at = text.find(between, at);
      if (at == text.npos) break;
      const std::string_view head = text.substr(0, at), tail = text.substr(at + between.size());
      const std::string first = part(head, depth - 1), second = part(tail, depth - 1);
      if (first == head && second == tail) continue;
      return first + std::string(chinese) + second;
    }
    return std::nullopt;
  }

  std::unordered_map<std::string, std::string> texts_, words_;
  std::vector<Pattern> patterns_;
};

// "[0.1]", the default that help shows behind the text of an option.
std::size_t default_at(std::string_view help) {
  const std::size_t at = help.rfind(" [");
  return help.ends_with(']') && at != std::string_view::npos ? at : help.size();
}

constexpr std::string_view kExample = "  fovea ";

// A line by itself: of an example or a table, whose lines are indented, what stands in the last
// column, behind two blanks.
std::string line_in_chinese(std::string_view line) {
  if (!line.starts_with("  ")) return in_chinese(line);
  const std::size_t gap = line.find("  ", 2);
  if (gap == std::string_view::npos) return std::string(line);
  const std::size_t last = line.find_first_not_of(' ', gap);
  if (last == std::string_view::npos) return std::string(line);
  return std::string(line.substr(0, last)) + in_chinese(line.substr(last));
}

// A paragraph. The command may have filled it into lines, which the catalogue does not know.
std::string block_in_chinese(const std::string& block) {
  const Catalogue& catalogue = Catalogue::get();
  if (std::optional<std::string> found = catalogue.find(block, kDeepest)) return *found;
  std::string line;
  for (const char c : block) {
    if (c != '\n' && (c != ' ' || !line.ends_with(' '))) line += c;
    if (c == '\n') line += ' ';
  }
  std::string filled = in_chinese(line);
  if (filled != line) return filled;
  std::string text;
  for (std::size_t begin = 0; begin <= block.size();) {
    const std::size_t end = std::min(block.find('\n', begin), block.size());
    text += line_in_chinese(std::string_view(block).substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  text.pop_back();
  return text;
}

}  // namespace

std::string in_chinese(std::string_view english) {
  const Catalogue& catalogue = Catalogue::get();
  const std::size_t at = default_at(english);
  if (at < english.size()) {
    if (std::optional<std::string> found = catalogue.find(english.substr(0, at), 0)) {
      return *found + std::string(english.substr(at));
    }
  }
  return catalogue.translate(english, kDeepest);
}

std::string epilog_in_chinese(std::string_view english) {
  std::string text, block;
  const auto close_block = [&] {
    if (block.empty()) return;
    block.pop_back();
    text += block_in_chinese(block) + "\n";
    block.clear();
  };
  for (std::size_t begin = 0; begin <= english.size();) {
    const std::size_t end = std::min(english.find('\n', begin), english.size());
    const std::string_view line = english.substr(begin, end - begin);
    begin = end + 1;
    if (!line.empty() && !line.starts_with(kExample)) {
      block.append(line).append("\n");
      continue;
    }
    close_block();
    text += line_in_chinese(line) + "\n";
  }
  close_block();
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace fovea

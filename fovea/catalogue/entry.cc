// SPDX-License-Identifier: Apache-2.0
#include "fovea/catalogue/entry.h"

#include <algorithm>

#include "fovea/base/check.h"

namespace fovea {

namespace {

// A place is tried at every occurrence of the literal behind it. A text of others may be long and
// repeat that literal: after this many steps it counts as not made with the format.
constexpr int kMostSteps = 2000;

bool is_number_type(std::string_view spec) {
  return !spec.empty() && (std::string_view("dfegx%").find(spec.back()) != std::string_view::npos ||
                           spec.find('.') != std::string_view::npos);
}

constexpr std::string_view kNumbers = "0123456789+-.eE";

bool looks_like_number(std::string_view text) {
  if (text == "nan" || text == "inf" || text == "-inf" || text == "-nan") return true;
  return !text.empty() && text.find_first_not_of(kNumbers) == std::string_view::npos;
}

class Matcher {
 public:
  Matcher(const FormatPieces& format, std::string_view text) : format_(format), text_(text) {}

  bool run() {
    parts_.resize(format_.places.size());
    if (!text_.starts_with(format_.literals.front())) return false;
    return rest(0, format_.literals.front().size());
  }
  std::vector<std::string_view> take() { return std::move(parts_); }

 private:
  // Whether the text from `at` on is made of the places from number `n` on.
  bool rest(std::size_t n, std::size_t at) {
    if (n == format_.places.size()) return at == text_.size();
    if (++steps_ > kMostSteps) return false;
    const std::string& behind = format_.literals[n + 1];
    // A number ends where its digits end, also where another place follows at once.
    if (format_.places[n].is_number && behind.empty()) {
      const std::size_t end = std::min(text_.find_first_not_of(kNumbers, at), text_.size());
      return take_part(n, at, end) && rest(n + 1, end);
    }
    // Of two places side by side behind a text, the first has a word, if that fits.
    if (behind.empty() && n + 1 < format_.places.size() && !format_.literals[n].empty()) {
      const std::size_t end = std::min(text_.find_first_of(" ,;:", at), text_.size());
      if (take_part(n, at, end) && rest(n + 1, end)) return true;
    }
    const bool is_last = n + 1 == format_.places.size();
    if (is_last) {
      const std::string_view left = text_.substr(at);
      if (!left.ends_with(behind)) return false;
      return take_part(n, at, text_.size() - behind.size());
    }
    for (std::size_t end = at; end <= text_.size(); ++end) {
      if (++steps_ > kMostSteps) return false;
      end = text_.find(behind, end);
      if (end == std::string_view::npos) return false;
      if (take_part(n, at, end) && rest(n + 1, end + behind.size())) return true;
    }
    return false;
  }

  bool take_part(std::size_t n, std::size_t begin, std::size_t end) {
    parts_[n] = text_.substr(begin, end - begin);
    if (parts_[n].find('\n') != std::string_view::npos) return false;
    return !format_.places[n].is_number || looks_like_number(parts_[n]);
  }

  const FormatPieces& format_;
  std::string_view text_;
  std::vector<std::string_view> parts_;
  int steps_ = 0;
};

// Where the place that begins at `at` ends. It may hold another one: {:.{}g}.
std::size_t end_of_place(std::string_view format, std::size_t at) {
  int open = 0;
  for (; at < format.size(); ++at) {
    if (format[at] == '{') ++open;
    if (format[at] == '}' && --open == 0) return at;
  }
  return std::string_view::npos;
}

// The text between the quotes of a line of a .po file, appended.
void append_quoted(std::string_view line, int number, std::string& text) {
  const std::size_t begin = line.find('"');
  const std::size_t end = line.rfind('"');
  if (begin == std::string_view::npos || end == begin) {
    fail(ErrorCode::kInternal, "catalogue, line {}: expected a text in quotes", number);
  }
  for (std::size_t at = begin + 1; at < end; ++at) {
    if (line[at] != '\\' || at + 1 == end) {
      text += line[at];
      continue;
    }
    ++at;
    text += line[at] == 'n' ? '\n' : line[at] == 't' ? '\t' : line[at];
  }
}

}  // namespace

std::optional<FormatPieces> pieces_of(std::string_view format) {
  FormatPieces pieces;
  std::string literal;
  for (std::size_t at = 0; at < format.size(); ++at) {
    const char c = format[at];
    const bool is_twice = at + 1 < format.size() && format[at + 1] == c;
    if ((c == '{' || c == '}') && is_twice) {
      literal += c;
      ++at;
      continue;
    }
    if (c == '}') return std::nullopt;
    if (c != '{') {
      literal += c;
      continue;
    }
    const std::size_t end = end_of_place(format, at);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inside = format.substr(at + 1, end - at - 1);
    const std::string_view name = inside.substr(0, inside.find(':'));
    FormatPieces::Place place{.argument = pieces.places.size()};
    if (name.find_first_not_of("0123456789") != std::string_view::npos || name.size() > 2) {
      return std::nullopt;
    }
    if (!name.empty()) place.argument = static_cast<std::size_t>(std::stoi(std::string(name)));
    if (name.size() < inside.size()) {
      place.is_number = is_number_type(inside.substr(name.size() + 1));
    }
    pieces.literals.push_back(std::move(literal));
    literal.clear();
    pieces.places.push_back(place);
    at = end;
  }
  pieces.literals.push_back(std::move(literal));
  return pieces;
}

std::vector<CatalogueEntry> read_po(std::string_view file) {
  std::vector<CatalogueEntry> entries;
  CatalogueEntry entry;
  std::string context;
  std::string* open = nullptr;  // where a line that begins with a quote goes
  const auto close = [&] {
    entry.is_word = context == "word";
    if (!entry.english.empty() && !entry.chinese.empty()) entries.push_back(std::move(entry));
    entry = {};
    context.clear();
    open = nullptr;
  };
  int number = 0;
  for (std::size_t begin = 0; begin < file.size();) {
    const std::size_t end = std::min(file.find('\n', begin), file.size());
    const std::string_view line = file.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("msgctxt ")) {
      close();
      open = &context;
    } else if (line.starts_with("msgid ")) {
      if (open != &context) close();
      open = &entry.english;
    } else if (line.starts_with("msgstr ")) {
      open = &entry.chinese;
    }
    if (open == nullptr) fail(ErrorCode::kInternal, "catalogue, line {}: expected msgid", number);
    append_quoted(line, number, *open);
  }
  close();
  return entries;
}

std::optional<std::vector<std::string_view>> match_format(const FormatPieces& format,
                                                          std::string_view text) {
  Matcher matcher(format, text);
  if (!matcher.run()) return std::nullopt;
  return matcher.take();
}

}  // namespace fovea

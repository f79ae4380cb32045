// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/text_rules.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

#include "fovea/text/utf8.h"

namespace fovea::text_rule {

namespace {

// What a rule makes of a text.
class Written {
 public:
  Written(std::string_view text, GrowingText& growing) : growing_(growing) {
    out_.reserve(text.size());
  }

  void add(std::string_view part) {
    growing_.count(part);
    out_ += part;
  }
  std::string take() { return std::move(out_); }

 private:
  GrowingText& growing_;
  std::string out_;
};

bool is_blank_at(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] == ' ';
}

std::size_t end_of_character(std::string_view text, std::size_t begin) {
  return begin + static_cast<std::size_t>(decode_character(text.substr(begin)).length);
}

struct Range {
  char32_t first, last;
};

template <std::size_t N>
bool is_in(const Range (&ranges)[N], char32_t c) {
  const Range* const found =
      std::lower_bound(std::begin(ranges), std::end(ranges), c,
                       [](const Range& range, char32_t value) { return range.last < value; });
  return found != std::end(ranges) && found->first <= c;
}

// Since Unicode 16: what joins the character before it.
constexpr Range kLaterMarks[] = {
    {0x897, 0x897},     {0x1acf, 0x1add},   {0x1ae0, 0x1aeb},   {0x10d69, 0x10d6d},
    {0x10efa, 0x10efc}, {0x113b8, 0x113c0}, {0x113c2, 0x113c2}, {0x113c5, 0x113c5},
    {0x113c7, 0x113ca}, {0x113cc, 0x113d0}, {0x113d2, 0x113d2}, {0x113e1, 0x113e2},
    {0x11b60, 0x11b67}, {0x11f5a, 0x11f5a}, {0x1611e, 0x1612f}, {0x1e5ee, 0x1e5ef},
    {0x1e6e3, 0x1e6e3}, {0x1e6e6, 0x1e6e6}, {0x1e6ee, 0x1e6ef}, {0x1e6f5, 0x1e6f5},
};

// Code points without a character that nothing joins.
constexpr Range kControls[] = {
    {0x2065, 0x2065},   {0xfff0, 0xfff8},   {0xe0000, 0xe0000},
    {0xe0002, 0xe001f}, {0xe0080, 0xe00ff}, {0xe01f0, 0xe0fff},
};

// What stands for a character where clusters end: one that each version of Unicode knows.
char32_t known(char32_t c) {
  constexpr char32_t kAcute = 0x301, kBell = 7;
  return is_in(kLaterMarks, c) ? kAcute : is_in(kControls, c) ? kBell : c;
}

// Since Unicode 10: marks that have a place among others, and letters that are made of others.
constexpr Range kLaterThan9[] = {
    {0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},
    {0xc3c, 0xc3c},     {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0xece, 0xece},
    {0x1715, 0x1715},   {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},   {0xa82c, 0xa82c},
    {0x105c9, 0x105c9}, {0x105e4, 0x105e4}, {0x10d24, 0x10d27}, {0x10eab, 0x10eac},
    {0x10efd, 0x10eff}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85}, {0x11070, 0x11070},
    {0x1133b, 0x1133b}, {0x11383, 0x113c9}, {0x1145e, 0x1145e}, {0x11839, 0x1183a},
    {0x11930, 0x11938}, {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0},
    {0x11a34, 0x11a34}, {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42},
    {0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16121, 0x16128},
    {0x16d68, 0x16d6a}, {0x16ff0, 0x16ff1}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136},
    {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef},
};

// Characters that no rule of normal form C changes, whatever stands beside them.
bool stays_composed(char32_t c) {
  return c < 0x300 || (c >= 0x3001 && c <= 0x3029) || (c >= 0x4e00 && c <= 0x9fff) ||
         (c >= 0xff00 && c <= 0xffef) || (c >= 0x2010 && c <= 0x2027);
}

// The end of the extended grapheme cluster that begins at `begin`.
std::size_t end_of_cluster(std::string_view text, std::size_t begin) {
  std::int32_t state = 0;
  std::size_t end = end_of_character(text, begin);
  char32_t before = known(decode_character(text.substr(begin)).value);
  while (end < text.size()) {
    const char32_t behind = known(decode_character(text.substr(end)).value);
    if (is_grapheme_break(before, behind, state)) break;
    end = end_of_character(text, end);
    before = behind;
  }
  return end;
}

}  // namespace

TextRule prepend(std::string front) {
  return [front = std::move(front)](std::string_view text, GrowingText& growing) {
    Written out(text, growing);
    if (!text.empty()) out.add(front);
    out.add(text);
    return out.take();
  };
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                     GrowingText& growing) {
  if (from.empty()) return std::string(text);
  Written out(text, growing);
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from)) {
    out.add(text.substr(0, at));
    out.add(to);
    text.remove_prefix(at + from.size());
  }
  out.add(text);
  return out.take();
}

TextRule replace(std::string from, std::string to) {
  return [from = std::move(from), to = std::move(to)](std::string_view text, GrowingText& growing) {
    return replaced(text, from, to, growing);
  };
}

TextRule replace_with_blanks(std::string from, std::string to) {
  return [from = std::move(from), to = std::move(to)](std::string_view text, GrowingText& growing) {
    if (from.empty()) return std::string(text);
    Written out(text, growing);
    for (std::size_t at = text.find(from); at != text.npos; at = text.find(from)) {
      const std::size_t end = at + from.size();
      out.add(text.substr(0, at > 0 && text[at - 1] == ' ' ? at - 1 : at));
      out.add(to);
      text.remove_prefix(is_blank_at(text, end) ? end + 1 : end);
    }
    out.add(text);
    return out.take();
  };
}

TextRule replace_runs(std::string to) {
  return [to = std::move(to)](std::string_view text, GrowingText& growing) {
    Written out(text, growing);
    for (std::size_t at = text.find("  "); at != text.npos; at = text.find("  ")) {
      out.add(text.substr(0, at));
      out.add(to);
      text.remove_prefix(std::min(text.find_first_not_of(' ', at), text.size()));
    }
    out.add(text);
    return out.take();
  };
}

TextRule replace_at_ends(std::string to) {
  return [to = std::move(to)](std::string_view text, GrowingText& growing) {
    Written out(text, growing);
    for (std::size_t at = 0; at < text.size(); ++at) {
      const bool begins = at == 0 || text[at - 1] == '\n';
      const bool ends = at + 1 == text.size() || text[at + 1] == '\n';
      out.add(text[at] == ' ' && (begins || ends) ? std::string_view(to) : text.substr(at, 1));
    }
    return out.take();
  };
}

TextRule strip(Ends ends) {
  return [ends](std::string_view text, GrowingText&) {
    while (ends != Ends::kRight) {
      const std::size_t bytes = white_space_at_front(text);
      if (bytes == 0) break;
      text.remove_prefix(bytes);
    }
    while (ends != Ends::kLeft && !text.empty()) {
      std::size_t last = text.size() - 1;
      while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xc0) == 0x80) --last;
      if (white_space_at_front(text.substr(last)) == 0) break;
      text = text.substr(0, last);
    }
    return std::string(text);
  };
}

std::string composed_by_unicode_9(std::string_view text) {
  std::string out;
  std::size_t begin = 0, at = 0;
  bool stays = true;
  const auto end_part = [&] {
    const std::string_view part = text.substr(begin, at - begin);
    if (stays) {
      out += part;
    } else {
      out += composed(part);
    }
    stays = true;
  };
  while (at < text.size()) {
    const auto c = decode_character(text.substr(at));
    const auto bytes = static_cast<std::size_t>(c.length);
    if (stays_composed(c.value)) {
      at += bytes;
    } else if (!is_in(kLaterThan9, c.value) && !is_in(kLaterMarks, c.value)) {
      stays = false;
      at += bytes;
    } else {
      end_part();
      out += text.substr(at, bytes);
      begin = at += bytes;
    }
  }
  end_part();
  return out;
}

TextRule compose() {
  return [](std::string_view text, GrowingText&) { return composed_by_unicode_9(text); };
}

TextRule precompiled(std::string_view charsmap, std::string_view name) {
  // The longest cluster that `tokenizers` looks for as a whole.
  constexpr std::size_t kLongestCluster = 5;
  return [map = std::make_shared<const CharsMap>(charsmap, name)](std::string_view text,
                                                                  GrowingText& growing) {
    Written out(text, growing);
    const auto rewrite = [&](std::string_view part) {
      const CharsMap::Match rule = map->shortest(part);
      if (rule.length > 0) out.add(rule.replacement);
      return rule.length > 0;
    };
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = end_of_cluster(text, begin);
      const std::string_view cluster = text.substr(begin, end - begin);
      if (cluster.size() > kLongestCluster || !rewrite(cluster)) {
        for (std::size_t at = begin; at < end;) {
          const std::size_t next = end_of_character(text, at);
          const std::string_view one = text.substr(at, next - at);
          if (!rewrite(one)) out.add(one);
          at = next;
        }
      }
      begin = end;
    }
    return out.take();
  };
}

}  // namespace fovea::text_rule

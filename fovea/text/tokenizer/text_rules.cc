// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/tokenizer/text_rules.h"

#include <algorithm>
#include <cstdint>
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

// The end of the extended grapheme cluster that begins at `begin`.
std::size_t end_of_cluster(std::string_view text, std::size_t begin) {
  std::int32_t state = 0;
  std::size_t end = end_of_character(text, begin);
  char32_t before = decode_character(text.substr(begin)).value;
  while (end < text.size()) {
    const char32_t behind = decode_character(text.substr(end)).value;
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

TextRule compose() {
  return [](std::string_view text, GrowingText&) { return composed(text); };
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

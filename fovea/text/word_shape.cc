// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/word_shape.h"

#include "fovea/text/utf8.h"

namespace fovea {

namespace {

struct Counts {
  index capitals = 0, small = 0, digits = 0, marks_of_numbers = 0, others = 0;
  bool first_is_capital = false;
};

Counts count(std::string_view word) {
  constexpr std::string_view kMarks = ".,:/-+";
  Counts n;
  for (bool first = true; !word.empty(); first = false) {
    const DecodedCharacter c = decode_character(word);
    word.remove_prefix(static_cast<std::size_t>(c.length));
    if (c.value >= '0' && c.value <= '9') {
      ++n.digits;
    } else if (lower_character(c.value) != c.value) {
      ++n.capitals;
      n.first_is_capital |= first;
    } else if (is_word_character(c.value)) {
      ++n.small;
    } else if (c.value < 0x80 && kMarks.find(static_cast<char>(c.value)) != kMarks.npos) {
      ++n.marks_of_numbers;
    } else {
      ++n.others;
    }
  }
  return n;
}

std::int32_t letters_of(const Counts& n) {
  if (n.capitals == 0) return n.small == 0 ? 0 : 1;
  if (n.small == 0 && n.capitals > 1) return 3;
  return n.first_is_capital && n.capitals == 1 ? 2 : 4;
}

}  // namespace

std::int32_t word_shape(std::string_view word) {
  const Counts n = count(word);
  const bool is_number = n.digits > 0 && n.capitals + n.small + n.others == 0;
  const std::int32_t digits = n.digits == 0 ? 0 : is_number ? 2 : 1;
  const bool address = word.size() > 1 && (word.starts_with('@') || word.starts_with('#') ||
                                           word.starts_with("http") || word.starts_with("www."));
  const bool other = n.others > 0 || (n.marks_of_numbers > 0 && !is_number);
  return 9 * letters_of(n) + 3 * digits + (address ? 2 : other ? 1 : 0);
}

}  // namespace fovea

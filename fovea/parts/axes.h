// SPDX-License-Identifier: Apache-2.0
// The axes of a tensor in words: "B H|1 2s+1". A letter is one size throughout a call, "H|1" is H
// or 1, "2H" is twice H, "2s+1" one more than twice s, and a number is that size.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/attention/tile.h"

namespace fovea {

std::vector<std::string_view> axis_words(std::string_view axes);

/// The axes as a message shows them: "[B, H or 1, 2]" for "B H|1 2".
std::string axes_text(std::string_view axes);

/// A parsed word of `axes`: times * (size of the letter) + more.
struct AxisWord {
  std::string_view letter = {};  ///< "" for a number
  index times = 1;
  index more = 0;
  bool or_one = false;

  index size(index of_letter) const { return times * of_letter + more; }
};
/// Parses a word; the result refers to its characters.
AxisWord axis_word(std::string_view word);

/// The size of a letter in a call: B T S H G D Dv; of any other letter, `other`.
index size_of_letter(std::string_view letter, const AttentionSizes& sizes, index other);

}  // namespace fovea

// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/line_pieces.h"

#include <algorithm>
#include <string>

namespace fovea {

namespace {

// Whether token n begins a word.
bool begins_word(const Tokenizer& tokenizer, std::span<const token> ids, index n) {
  if (!tokenizer.separator().empty()) return true;
  std::string before, here;
  tokenizer.append_bytes(before, ids[static_cast<std::size_t>(n - 1)]);
  tokenizer.append_bytes(here, ids[static_cast<std::size_t>(n)]);
  return before.ends_with(' ') || here.starts_with(' ');
}

}  // namespace

std::vector<index> ends_of_pieces(const Tokenizer& tokenizer, std::span<const token> ids,
                                  index most) {
  const index length = std::ssize(ids), pieces = (length + most - 1) / most;
  std::vector<index> ends;
  for (index p = 1, first = 0; p < pieces; ++p, first = ends.back()) {
    const index least = std::max(first + 1, length - most * (pieces - p)),
                furthest = std::min(first + most, length - 1),
                middle = std::clamp(length * p / pieces, least, furthest);
    index end = middle;
    for (index away = 0; away <= std::max(middle - least, furthest - middle); ++away) {
      const index back = middle - away, on = middle + away;
      if (back >= least && begins_word(tokenizer, ids, back)) {
        end = back;
        break;
      }
      if (on <= furthest && begins_word(tokenizer, ids, on)) {
        end = on;
        break;
      }
    }
    ends.push_back(end);
  }
  if (length > 0) ends.push_back(length);
  return ends;
}

}  // namespace fovea

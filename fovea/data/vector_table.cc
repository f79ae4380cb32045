// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/vector_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "fovea/base/error.h"
#include "fovea/base/machine.h"
#include "fovea/text/utf8.h"

namespace fovea {

index WordVectors::count(VectorMatch wanted) const {
  return std::count(match.begin(), match.end(), wanted);
}

VectorTable::VectorTable(std::span<const std::string> words, index width)
    : words_(static_cast<index>(words.size())) {
  found_.width = width;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty()) continue;
    exact_.emplace(words[i], static_cast<index>(i));
    lower_[lower_text(words[i])].push_back(static_cast<index>(i));
  }
}

void VectorTable::begin(index width, const std::string& name) {
  if (found_.width > 0 && found_.width != width) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("{}: its vectors have {} numbers; the rows of words are to have {}", name,
                    width, found_.width),
        fmt::format("leave the width out, or say {} (--width; of a tagger --word-width)", width));
  }
  found_.width = width;
  const double bytes = static_cast<double>(words_) * static_cast<double>(width) * sizeof(float);
  require_memory("the vectors of the words", bytes, "take narrower vectors, or fewer words");
  found_.rows.resize(static_cast<std::size_t>(words_ * width));
  found_.match.resize(static_cast<std::size_t>(words_));
}

void VectorTable::take(const std::string& word, const std::function<void(std::span<float>)>& fill) {
  if (const auto found = exact_.find(word); found != exact_.end()) {
    const bool again = found_.match[static_cast<std::size_t>(found->second)] == VectorMatch::kExact;
    if (again) ++repeated_;
    if (!again) store(found->second, VectorMatch::kExact, fill);
  }
  const auto others = lower_.find(lower_text(word));
  if (others == lower_.end()) return;
  for (const index other : others->second) {
    if (found_.match[static_cast<std::size_t>(other)] != VectorMatch::kNone) continue;
    store(other, VectorMatch::kLower, fill);
  }
  lower_.erase(others);  // all of them have been found
}

void VectorTable::store(index word, VectorMatch match,
                        const std::function<void(std::span<float>)>& fill) {
  const auto width = static_cast<std::size_t>(found_.width);
  fill({found_.rows.data() + static_cast<std::size_t>(word) * width, width});
  found_.match[static_cast<std::size_t>(word)] = match;
}

}  // namespace fovea
